from __future__ import annotations

import numpy as np
import pytest

from robotrials.errors import ConfigError, ContractError
from robotrials.policies.random import RandomPolicy
from tests.policies.scenes import a_task, an_episode


def drawn(policy: RandomPolicy, index: int, calls: int) -> np.ndarray:
    """(calls * n_action_steps, A): what one episode is told."""
    session = policy.new_session(an_episode(index), a_task())
    return np.concatenate([policy.act([session], [{}])[0] for _ in range(calls)])


def test_actions_are_float32_chunks_that_fill_the_tasks_bounds() -> None:
    actions = drawn(RandomPolicy(n_action_steps=50), 0, 40)
    assert actions.shape == (2000, 2)
    assert actions.dtype == np.float32
    assert (actions >= [-1, 0]).all()
    assert (actions <= [1, 10]).all()
    np.testing.assert_allclose(actions.mean(0), [0, 5], atol=0.3)
    np.testing.assert_allclose(np.ptp(actions, axis=0), [2, 10], rtol=0.01)


def test_an_episode_gets_the_same_actions_in_every_run_and_another_episode_others() -> None:
    np.testing.assert_array_equal(drawn(RandomPolicy(), 0, 5), drawn(RandomPolicy(), 0, 5))
    assert not np.array_equal(drawn(RandomPolicy(), 0, 5), drawn(RandomPolicy(), 1, 5))


def test_the_length_of_a_chunk_does_not_change_the_actions() -> None:
    np.testing.assert_array_equal(drawn(RandomPolicy(), 0, 12), drawn(RandomPolicy(n_action_steps=4), 0, 3))


def test_what_runs_beside_an_episode_does_not_change_its_actions() -> None:
    policy = RandomPolicy()
    sessions = [policy.new_session(an_episode(i), a_task()) for i in range(3)]
    together = np.stack([policy.act(sessions, [{}] * 3)[:, 0] for _ in range(4)], axis=1)
    for index in range(3):
        np.testing.assert_array_equal(together[index], drawn(RandomPolicy(), index, 4))


def test_open_bounds_are_refused() -> None:
    with pytest.raises(ContractError, match="task spin leaves open"):
        RandomPolicy().new_session(an_episode(), a_task(low=(-np.inf,), high=(1.0,)))


def test_a_chunk_of_no_action_is_refused() -> None:
    with pytest.raises(ConfigError, match="n_action_steps must be at least 1, got 0"):
        RandomPolicy(n_action_steps=0)
