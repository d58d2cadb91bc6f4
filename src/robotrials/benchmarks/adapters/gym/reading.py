"""From what a Gymnasium environment shows to an observation: its layout, and the little that simulators get wrong.

A leading axis of one, which simulators that step batches leave on everything, is taken off; tensors become arrays. An
entry that the observation space declares and the observation lacks, or holds as None, is named.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.gym.answers import as_numpy
from robotrials.benchmarks.adapters.gym.layout import ObservationLayout, lay_out
from robotrials.benchmarks.base import Observation
from robotrials.errors import ContractError

_PICTURES_IN_A_BATCH = 4
"""Axes of a Box that holds pictures (N, H, W, C)."""


class ObservationReader:
    """Reads what the environment ``who`` shows in ``space``; ``state``, ``environment_state`` and ``ignore`` as in
    ``lay_out``.

    Raises:
        ConfigError: as ``lay_out`` does.
    """

    def __init__(
        self,
        space: Any,
        who: str,
        state: Sequence[str] = (),
        environment_state: Sequence[str] = (),
        ignore: Sequence[str] = (),
    ) -> None:
        self._space = _without_batch(space)
        self._who = who
        self.layout: ObservationLayout = lay_out(self._space, state, environment_state, ignore)

    def read(self, raw: Any, cameras: Sequence[str]) -> Observation:
        """All vectors, and the images of ``cameras``.

        Raises:
            ContractError: an entry that is read is missing or None.
        """
        return self.layout.read(_view(raw, self._space, self._who, ""), cameras)

    def require(self, raw: Any) -> None:
        """
        Raises:
            ContractError: an entry is missing, None, or has another shape or dtype than the space declares.
        """
        seen = self.read(raw, tuple(self.layout.images))
        for key, feature in self.layout.features.items():
            value = np.asarray(seen[key])
            if value.shape != feature.shape or value.dtype != feature.dtype:
                raise ContractError(
                    f"{self._who}: its observation holds {key} as {value.dtype}{list(value.shape)}, but its "
                    f"observation space declares {feature}: change one of them"
                )


class _View:
    """A map of an observation, whose entries are checked when they are read."""

    def __init__(self, raw: Any, space: Any, who: str, path: str) -> None:
        self._raw, self._space, self._who, self._path = raw, space, who, path

    def __getitem__(self, key: str) -> Any:
        raw, path = self._raw, f"{self._path}{key}"
        if isinstance(raw, (tuple, list)):
            raw = {str(position): entry for position, entry in enumerate(raw)}
        if not isinstance(raw, Mapping):
            raise ContractError(
                f"{self._who}: its observation{_at(self._path)} is a {type(raw).__name__}, but its observation space "
                f"declares a dict with the entry {key}"
            )
        if key not in raw:
            has = ", ".join(map(str, raw)) or "nothing"
            raise ContractError(
                f"{self._who}: its observation lacks {path}, which its observation space declares; it has {has}"
            )
        return _view(raw[key], _children(self._space)[key], self._who, f"{path}/")


def _view(raw: Any, space: Any, who: str, path: str) -> Any:
    if raw is None:
        raise ContractError(f"{who}: its observation{_at(path)} is None; its observation space declares {space}")
    if _children(space):
        return _View(raw, space, who, path)
    value: Any = np.asarray(as_numpy(raw))
    batch = (1, *(space.shape or ()))
    return np.squeeze(value, axis=0) if value.shape == batch else value


def _children(space: Any) -> Mapping[str, Any]:
    """The entries of a Dict or Tuple space by name; a Tuple's are called 0, 1, ..."""
    children = getattr(space, "spaces", None)
    if isinstance(children, (tuple, list)):
        return {str(position): child for position, child in enumerate(children)}
    return children if isinstance(children, Mapping) else {}


def _at(path: str) -> str:
    return f" {path[:-1]}" if path else ""


def _without_batch(space: Any) -> Any:
    """The space with pictures (1, H, W, C) as pictures. Vectors are flattened anyway, and stay."""
    children = getattr(space, "spaces", None)
    if isinstance(children, Mapping):
        changed = OrderedDict((key, _without_batch(child)) for key, child in children.items())
        same = all(changed[key] is child for key, child in children.items())
        return space if same else type(space)(changed)
    shape: tuple[int, ...] = getattr(space, "shape", None) or ()
    if len(shape) == _PICTURES_IN_A_BATCH and shape[0] == 1 and hasattr(space, "low"):
        return type(space)(low=space.low[0], high=space.high[0], dtype=space.dtype)
    return space
