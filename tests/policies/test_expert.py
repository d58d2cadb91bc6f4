from __future__ import annotations

import numpy as np
import pytest

from robotrials.benchmarks.base import Env, Observation, StepOutcome
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.episode import EpisodeSpec
from robotrials.policies.expert import ExpertPolicy
from tests.policies.scenes import a_task, an_episode
from tests.toy import ToyConfig, ToyEnv


def test_it_plays_the_benchmarks_expert_one_action_at_a_time() -> None:
    env = ToyEnv(ToyConfig())
    policy = ExpertPolicy()
    env.reset(an_episode())
    session = policy.new_session(an_episode(), a_task(), env)
    env.goal, env.position = 2.0, 1.75
    assert policy.act([session], [{}]).tolist() == [[[0.25]]]
    env.position = 2.5
    assert policy.act([session], [{}]).tolist() == [[[-0.5]]]


def test_it_looks_at_nothing_and_needs_the_environment() -> None:
    spec = ExpertPolicy().spec()
    assert spec.needs_env
    assert not spec.observations
    assert spec.n_action_steps == 1


def test_every_episode_gets_an_expert_of_its_own_made_after_the_reset() -> None:
    made = []

    class Counting(ToyEnv):
        def expert(self):  # type: ignore[no-untyped-def]
            made.append(self.episode.index)
            return super().expert()

    env, policy = Counting(ToyConfig()), ExpertPolicy()
    for index in range(2):
        session = policy.new_session(an_episode(index), a_task(), env)  # before the reset, as a runner may
        env.reset(an_episode(index))
        policy.act([session], [{}])
        policy.act([session], [{}])
    assert made == [0, 1]


def test_several_sessions_each_get_their_own_experts_action() -> None:
    policy, sessions = ExpertPolicy(), []
    for index in range(3):
        env = ToyEnv(ToyConfig())
        env.reset(an_episode(index))
        env.position = env.goal - 0.1 * (index + 1)
        sessions.append(policy.new_session(an_episode(index), a_task(), env))
    np.testing.assert_allclose(policy.act(sessions, [{}] * 3)[:, 0, 0], [0.1, 0.2, 0.3])


def test_without_an_environment_it_says_where_it_can_run() -> None:
    with pytest.raises(ContractError, match="environment's process"):
        ExpertPolicy().new_session(an_episode(), a_task())


def test_a_benchmark_without_experts_is_named() -> None:
    class Plain(Env):
        def reset(self, episode: EpisodeSpec) -> None: ...
        def observe(self, cameras: object) -> Observation:
            return {}

        def step(self, action: np.ndarray) -> StepOutcome:
            return StepOutcome(0.0, False, False, False)

        def render(self) -> np.ndarray:
            return np.zeros((1, 1, 3), np.uint8)

        def close(self) -> None: ...

    policy, env = ExpertPolicy(), Plain()
    env.reset(an_episode())
    with pytest.raises(ConfigError, match="Plain has no scripted expert"):
        policy.act([policy.new_session(an_episode(), a_task(), env)], [{}])
