from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robotrials.errors import ConfigError, ContractError
from robotrials.policies.replay import ReplayPolicy
from tests.policies.scenes import a_task, an_episode

ACTIONS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.fixture
def one(tmp_path: Path) -> str:
    np.save(tmp_path / "one.npy", ACTIONS)
    return str(tmp_path / "one.npy")


def played(policy: ReplayPolicy, calls: int, index: int = 0) -> np.ndarray:
    session = policy.new_session(an_episode(index), a_task())
    return np.concatenate([policy.act([session], [{}])[0] for _ in range(calls)])


def test_one_array_is_played_in_every_episode_from_its_start(one: str) -> None:
    policy = ReplayPolicy(one)
    np.testing.assert_array_equal(played(policy, 3), ACTIONS)
    np.testing.assert_array_equal(played(policy, 3, index=1), ACTIONS)


def test_the_last_action_is_held_unless_told_otherwise(one: str) -> None:
    np.testing.assert_array_equal(played(ReplayPolicy(one), 5)[3:], ACTIONS[[2, 2]])


def test_after_zero_follows_with_zeros(one: str) -> None:
    np.testing.assert_array_equal(played(ReplayPolicy(one, after="zero"), 5)[3:], np.zeros((2, 2)))


def test_after_error_plays_all_and_then_errs(one: str) -> None:
    policy = ReplayPolicy(one, after="error")
    np.testing.assert_array_equal(played(policy, 3), ACTIONS)
    with pytest.raises(ContractError, match="toys/spin/0 goes on after its 3 recorded actions"):
        played(policy, 4)


@pytest.mark.parametrize("after", ["hold", "zero"])
def test_the_length_of_a_chunk_does_not_change_the_actions(one: str, after: str) -> None:
    single = played(ReplayPolicy(one, after=after), 8)
    np.testing.assert_array_equal(played(ReplayPolicy(one, after=after, n_action_steps=2), 4), single)
    np.testing.assert_array_equal(played(ReplayPolicy(one, after=after, n_action_steps=8), 1), single)


def test_sessions_side_by_side_do_not_disturb_each_other(one: str) -> None:
    policy = ReplayPolicy(one)
    early, late = (policy.new_session(an_episode(i), a_task()) for i in range(2))
    policy.act([early], [{}])
    np.testing.assert_array_equal(policy.act([early, late], [{}, {}])[:, 0], ACTIONS[[1, 0]])


def test_an_npz_holds_one_array_an_episode(tmp_path: Path) -> None:
    file = tmp_path / "many.npz"
    np.savez(file, **{"toys/spin/0": ACTIONS, "toys/spin/1": ACTIONS[::-1]})
    np.testing.assert_array_equal(played(ReplayPolicy(str(file)), 3, index=1), ACTIONS[::-1])


def test_a_folder_holds_one_file_an_episode(tmp_path: Path) -> None:
    (tmp_path / "toys" / "spin").mkdir(parents=True)
    np.save(tmp_path / "toys" / "spin" / "1.npy", ACTIONS)
    np.testing.assert_array_equal(played(ReplayPolicy(str(tmp_path)), 3, index=1), ACTIONS)
    with pytest.raises(ContractError, match="no recording for episode toys/spin/0; it has 1: toys/spin/1"):
        played(ReplayPolicy(str(tmp_path)), 1, index=0)


def test_an_episode_that_was_not_recorded_lists_what_was(tmp_path: Path) -> None:
    file = tmp_path / "many.npz"
    np.savez(file, **{"toys/spin/1": ACTIONS})
    with pytest.raises(ContractError, match="no recording for episode toys/spin/0; it has 1: toys/spin/1"):
        played(ReplayPolicy(str(file)), 1)


@pytest.mark.parametrize(
    ("actions", "shown"),
    [
        (np.zeros((4, 3)), r"float64\[4, 3\]"),
        (np.zeros(4), r"float64\[4\]"),
        (np.zeros((0, 2)), r"float64\[0, 2\]"),
        (np.array([["a", "b"]]), r"<U1\[1, 2\]"),
    ],
)
def test_actions_of_another_shape_name_both_sides(tmp_path: Path, actions: np.ndarray, shown: str) -> None:
    np.save(tmp_path / "odd.npy", actions)
    with pytest.raises(ContractError, match=shown + r".*task spin takes \[T, 2\]"):
        played(ReplayPolicy(str(tmp_path / "odd.npy")), 1)


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    objects = np.array([[1, 2]], dtype=object)
    np.save(tmp_path / "pickled.npy", objects, allow_pickle=True)
    with pytest.raises(ConfigError, match="pickled ones are refused"):
        ReplayPolicy(str(tmp_path / "pickled.npy"))
    np.savez(tmp_path / "pickled.npz", **{"toys/spin/0": objects})
    with pytest.raises(ConfigError, match="pickled ones are refused"):
        played(ReplayPolicy(str(tmp_path / "pickled.npz")), 1)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_a_file_that_is_no_array_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not numpy")
    with pytest.raises(ConfigError, match="cannot be read as a plain numpy array"):
        ReplayPolicy(str(tmp_path / name))


def test_wrong_options_are_refused(one: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file or folder"):
        ReplayPolicy(str(tmp_path / "gone.npy"))
    with pytest.raises(ConfigError, match=r"one of hold, zero, error; got 'holt' \(did you mean hold\?\)"):
        ReplayPolicy(one, after="holt")
    with pytest.raises(ConfigError, match="n_action_steps=1, not 2"):
        ReplayPolicy(one, after="error", n_action_steps=2)
    with pytest.raises(ConfigError, match="n_action_steps must be at least 1"):
        ReplayPolicy(one, n_action_steps=0)
    (tmp_path / "actions.csv").touch()
    with pytest.raises(ConfigError, match=r"replay reads \.npy, \.npz, or a folder"):
        ReplayPolicy(str(tmp_path / "actions.csv"))
