from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.gym.answers import read_reset, read_step
from robotrials.errors import ContractError

SEEN = np.zeros(3)


@pytest.mark.parametrize(
    ("reward", "flag"), [(1.5, True), (np.array([1.5]), np.array([True])), (np.float32(1.5), np.array([1.0]))]
)
def test_a_number_in_an_array_of_one_is_that_number(reward: Any, flag: Any) -> None:
    step = read_step((SEEN, reward, flag, np.array([False]), None), "Toy")
    assert step[1:] == (1.5, True, False, {})
    assert (type(step.reward), type(step.terminated)) == (float, bool)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((SEEN, 1.0, False, {}), r"step\(\) returns 4 values, as Gym before 0\.26 did; right are five values"),
        (SEEN, r"step\(\) returns an ndarray of shape \(3,\); right are five values"),
        (None, r"step\(\) returns None; right are five values"),
        ((SEEN, None, False, False, {}), "step() returns None as reward; right is one number"),
        ((SEEN, np.zeros(2), False, False, {}), "an ndarray of shape (2,) as reward; right is one number"),
        ((SEEN, 1.0, None, False, {}), "None as terminated; right is True or False"),
        ((SEEN, 1.0, False, 0.5, {}), "0.5 as truncated; right is True or False"),
        ((SEEN, 1.0, False, np.zeros(2, bool), {}), "an ndarray of shape (2,) as truncated"),
        ((SEEN, 1.0, False, False, [{}]), "step() returns a list as info; right is a dict"),
    ],
)
def test_a_step_that_is_not_gymnasiums_is_refused_in_a_sentence(answer: Any, says: str) -> None:
    with pytest.raises(ContractError) as refusal:
        read_step(answer, "Toy")
    assert says.replace("\\", "") in str(refusal.value)
    assert str(refusal.value).startswith("Toy: ")


@pytest.mark.parametrize("answer", [SEEN, np.zeros(2), (SEEN, SEEN), {"a": 1}, None])
def test_a_reset_without_info_is_refused(answer: Any) -> None:
    with pytest.raises(ContractError, match=r"Toy: reset\(\) returns .*; right is \(observation, info\)"):
        read_reset(answer, "Toy")


def test_an_info_of_none_is_an_empty_one() -> None:
    assert read_reset((SEEN, None), "Toy") is SEEN
