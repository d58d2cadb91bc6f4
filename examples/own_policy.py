"""A policy of your own, with an option and with something it remembers of each episode.

robotrials eval --policy.type=examples/own_policy.py:Reacher --policy.gain=8 \\
    --env.type=metaworld --env.task=reach-v3 --eval.n_episodes=10

A class in a package that is installed is named ``package.module:Class`` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import Feature, TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session

STATE = "observation.environment_state"


@dataclass
class ReacherSession(Session):
    """What is remembered of one episode belongs here, never in the policy: several episodes may run at once."""

    last: np.ndarray = field(default_factory=lambda: np.zeros(4))


class Reacher(Policy):
    """Moves the hand straight to the goal, smoothly: each action is blended with the one before."""

    def __init__(self, gain: float = 10.0, smoothing: float = 0.5) -> None:
        """``--policy.gain=8`` arrives as the float 8.0; an option that is not named here is refused."""
        self.gain, self.smoothing = gain, smoothing

    def spec(self) -> PolicySpec:
        """What it looks at (no camera, so none is rendered), and the size of its actions."""
        return PolicySpec("reacher", {STATE: Feature((39,))}, action_dim=4)

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> ReacherSession:
        return ReacherSession(episode, task, episode.rng("policy"))

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """(B, T, A): one row for each session, of one action each."""
        return np.stack([[self._next(s, np.asarray(o[STATE]))] for s, o in zip(sessions, observations, strict=True)])

    def _next(self, session: Session, state: np.ndarray) -> np.ndarray:
        assert isinstance(session, ReacherSession)
        hand, goal = state[:3], state[36:39]
        wanted = np.append(self.gain * (goal - hand), 0.0)
        session.last = np.clip(self.smoothing * session.last + (1 - self.smoothing) * wanted, -1, 1)
        return session.last
