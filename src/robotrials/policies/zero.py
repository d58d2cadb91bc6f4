"""``--policy.type=zero``: the zero action, always; on most robots it means to stand still."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.checks import at_least_one


class ZeroPolicy(Policy):
    """Zeros of the task's action size, ``n_action_steps`` at a time."""

    draws_globally = False
    plain = True

    def __init__(self, n_action_steps: int = 1) -> None:
        self._n_action_steps = at_least_one("n_action_steps", n_action_steps)

    def spec(self) -> PolicySpec:
        return PolicySpec("zero", n_action_steps=self._n_action_steps)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """(B, n_action_steps, A) float32."""
        return np.zeros((len(sessions), self._n_action_steps, sessions[0].task.action.dim), np.float32)
