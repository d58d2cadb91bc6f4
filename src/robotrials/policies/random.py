"""``--policy.type=random``: uniform actions within the task's bounds, the floor that every policy should beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.errors import ContractError
from robotrials.plan.config import PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.checks import at_least_one


class RandomPolicy(Policy):
    """Draws from the episode's own generator, so an episode's actions are the same in every run and for every
    ``n_action_steps``: a longer chunk draws the same numbers earlier."""

    draws_globally = False
    plain = True

    def __init__(self, n_action_steps: int = 1) -> None:
        self._n_action_steps = at_least_one("n_action_steps", n_action_steps)

    def spec(self) -> PolicySpec:
        return PolicySpec("random", n_action_steps=self._n_action_steps)

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Session:
        """Raises:
        ContractError: the task's action bounds are not finite.
        """
        _require_bounds(task)
        return super().new_session(episode, task, env)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """(B, n_action_steps, A) float32."""
        return np.stack([self._draw(session) for session in sessions])

    def _draw(self, session: Session) -> np.ndarray:
        action = session.task.action
        return session.rng.uniform(action.low, action.high, (self._n_action_steps, action.dim)).astype(np.float32)


def fitted(choice: PolicyChoice, tasks: Sequence[TaskSpec], rename_map: Mapping[str, str]) -> PolicyChoice:
    """``choice`` as it is, once every task has action bounds to draw within.

    Raises:
        ContractError: one has none.
    """
    for task in tasks:
        _require_bounds(task)
    return choice


def _require_bounds(task: TaskSpec) -> None:
    if not np.isfinite([*task.action.low, *task.action.high]).all():
        raise ContractError(
            f"policy random draws within the action bounds, which task {task.name} leaves open: "
            f"low {list(task.action.low)}, high {list(task.action.high)}"
        )
