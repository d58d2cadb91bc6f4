from __future__ import annotations

import numpy as np
import pytest

from robotrials.errors import ConfigError
from robotrials.policies.zero import ZeroPolicy
from tests.policies.scenes import a_task, an_episode


def test_actions_are_zeros_of_the_tasks_size() -> None:
    policy = ZeroPolicy(n_action_steps=3)
    sessions = [policy.new_session(an_episode(i), a_task()) for i in range(2)]
    actions = policy.act(sessions, [{}, {}])
    assert actions.dtype == np.float32
    np.testing.assert_array_equal(actions, np.zeros((2, 3, 2)))


def test_a_chunk_of_no_action_is_refused() -> None:
    with pytest.raises(ConfigError, match="n_action_steps must be at least 1, got 0"):
        ZeroPolicy(n_action_steps=0)
