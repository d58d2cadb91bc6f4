"""How the observations of somebody else's environment are read, and actions handed to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from robotrials.benchmarks.adapters.gym.reading import ObservationReader
from robotrials.benchmarks.base import Observation


class Reader(Protocol):
    """From what one environment shows, and the sentence of its task, to an observation under LeRobot's names."""

    def __call__(self, raw: Any, sentence: str, cameras: Sequence[str] | None) -> Observation:
        """All vectors, and the images of ``cameras`` (None: all)."""

    def require(self, raw: Any) -> None:
        """
        Raises:
            ContractError: it is not what the environment declares.
        """

    def action(self, action: np.ndarray) -> np.ndarray:
        """The policy's action (A,) as the environment takes it."""


class PlainReader:
    """By the layout that ``--env.type=gym`` uses (``gym_layout``)."""

    def __init__(self, reader: ObservationReader) -> None:
        self._reader = reader

    def __call__(self, raw: Any, sentence: str, cameras: Sequence[str] | None) -> Observation:
        return self._reader.read(raw, tuple(self._reader.layout.images) if cameras is None else cameras)

    def require(self, raw: Any) -> None:
        self._reader.require(raw)

    def action(self, action: np.ndarray) -> np.ndarray:
        return action
