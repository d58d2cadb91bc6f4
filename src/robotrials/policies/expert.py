"""``--policy.type=expert``: the benchmark's scripted expert, which looks into the simulator itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotrials.benchmarks.base import Env, Expert, Observation
from robotrials.errors import ContractError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session


@dataclass
class ExpertSession(Session):
    """Holds the expert of this episode once it has acted."""

    expert: Expert | None = None


class ExpertPolicy(Policy):
    """One action at a time from ``Env.expert()``. It observes nothing, so no camera is ever rendered for it."""

    plain = True

    def spec(self) -> PolicySpec:
        return PolicySpec("expert", needs_env=True)

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> ExpertSession:
        """Raises:
        ContractError: there is no environment to look into, as on a policy server.
        """
        if env is None:
            raise ContractError("policy expert looks into the simulator: it runs in the environment's process only")
        return ExpertSession(episode, task, episode.rng("policy"), env)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """(B, 1, A) in the expert's own precision: rounding it would change what the expert does."""
        return np.stack([self._expert(session).act()[None] for session in sessions])

    @staticmethod
    def _expert(session: Session) -> Expert:
        # Made at the first action, not in new_session: the scene of the episode need not stand before that.
        assert isinstance(session, ExpertSession)
        assert session.env is not None
        if session.expert is None:
            session.expert = session.env.expert()
        return session.expert
