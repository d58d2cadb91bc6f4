"""A policy whose sessions each have the global random generators to themselves, whatever runs beside them.

A policy should draw from ``session.rng``. Many draw from the global generators of Python, NumPy or torch instead, and
then an episode's numbers would depend on its neighbours, in the process and in the batch. Here every session's calls
find its own stream there; rows of a policy that draws are therefore run one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.errors import ContractError, RobotrialsError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.global_random import Generators, standing, word_of
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.checks import plain_array


class DrawnInBatchError(RobotrialsError):
    """Raised when a policy drew from a global generator for several sessions at once: whose numbers they were is
    unknown. It happens at most once; from then on sessions act alone."""


class OwnGenerators(Policy):
    """``policy`` with generators for each session. See ``own_generators`` for which policies need it."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._draws = False
        self._has_acted = False
        self._shared = Generators(0)

    @property
    def has_own_device(self) -> bool:  # type: ignore[override]
        return self._policy.has_own_device

    @property
    def infer_s(self) -> float | None:  # type: ignore[override]
        return self._policy.infer_s

    def spec(self) -> PolicySpec:
        return self._policy.spec()

    def describe(self) -> dict[str, Any]:
        return self._policy.describe()

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Session:
        generators = Generators(word_of(episode, "policy-global"))
        with standing(generators) as drawn:
            session = self._policy.new_session(episode, task, env)
        if not isinstance(session, Session):
            raise ContractError(
                f"policy {self.spec().name} began an episode with {type(session).__name__}; right is a Session "
                "(robotrials.policies.base)"
            )
        self._draws |= drawn.drew
        session.generators = generators
        return session

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """As ``policy``, all rows at once unless it has ever drawn from a global generator.

        The first call is made row by row, so that most policies that draw are known before they act for several.

        Raises:
            DrawnInBatchError: it has drawn now, for several. Calling again is right if no session keeps state.
        """
        alone = len(sessions) == 1
        if not alone and (self._draws or not self._has_acted):
            pairs = zip(sessions, observations, strict=True)
            return np.concatenate([plain_array(self._act_alone(*pair)) for pair in pairs])
        if alone:
            return plain_array(self._act_alone(sessions[0], observations[0]))
        return plain_array(self._act_together(sessions, observations))

    def _act_alone(self, session: Session, observation: Observation) -> np.ndarray:
        if session.generators is None:
            raise self._drawn_in_batch()
        with standing(session.generators) as drawn:
            actions = self._policy.act([session], [observation])
        self._draws |= drawn.drew
        self._has_acted = True
        return actions

    def _act_together(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        with standing(self._shared) as drawn:
            actions = self._policy.act(sessions, observations)
        if not drawn.drew:
            return actions
        self._draws = True
        for session in sessions:
            if type(session) is not Session:  # it may have moved on, so that asking again would be another question
                session.generators = None
        raise self._drawn_in_batch()

    def _drawn_in_batch(self) -> DrawnInBatchError:
        return DrawnInBatchError(
            f"policy {self.spec().name} drew from a global random generator for several episodes at once; they are "
            "tried again, each alone (draw from session.rng instead, and they share a batch)"
        )


def own_generators(policy: Policy) -> Policy:
    """``policy`` in ``OwnGenerators`` if it may draw from the global generators. A policy that looks into the simulator
    is left as it is: the two share a process in every layout, and its generators are the episode's."""
    return policy if not getattr(policy, "draws_globally", True) or policy.spec().needs_env else OwnGenerators(policy)
