"""A policy whose actions depend on every pixel it sees, on its history and on the episode's noise."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.policies.base import Policy, PolicySpec, Session


class PixelPolicy(Policy):
    """One changed bit in an image changes all that follows."""

    def spec(self) -> PolicySpec:
        observations = {"observation.image": None, "observation.state": None}
        return PolicySpec("pixels", observations, n_action_steps=4, n_obs_steps=2)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        return np.stack([self._chunk(s, o) for s, o in zip(sessions, observations, strict=True)])

    @staticmethod
    def _chunk(session: Session, observation: Observation) -> np.ndarray:
        image = np.ascontiguousarray(observation["observation.image"])
        rng = np.random.default_rng([zlib.crc32(image), int(session.rng.integers(2**32))])
        low, high = np.array(session.task.action.low), np.array(session.task.action.high)
        return rng.uniform(low, high, (4, session.task.action.dim)).astype(np.float32)
