from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.gym.success import SuccessRule, find, parse
from robotrials.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("info:solved", SuccessRule(key="solved")),
        ("terminated", SuccessRule()),
        ("reward>=0.5", SuccessRule(reward=0.5)),
        (" reward >= -1e3 ", SuccessRule(reward=-1000.0)),
        ("", None),
    ],
)
def test_each_form_is_read(text: str, rule: SuccessRule | None) -> None:
    assert parse(text) == rule


@pytest.mark.parametrize(
    "text", ["info:", "reward>0.5", "reward>=high", "reward>=nan", "reward>=inf", "always", "success"]
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write info:KEY, terminated or reward>=NUMBER"):
        parse(text)


@pytest.mark.parametrize("value", [True, 1, np.float32(1.0), np.array([True]), np.True_])
def test_a_truth_value_may_come_in_many_types(value: Any) -> None:
    assert SuccessRule(key="solved").read(0.0, False, False, {"solved": value}) is True


def test_a_value_that_is_no_truth_value_is_refused() -> None:
    for value in (np.zeros(2), "yes", None, 0.3, -1, 2, float("nan"), np.float32(0.999)):
        with pytest.raises(ConfigError, match=r"info:solved.*no truth value"):
            SuccessRule(key="solved").read(0.0, False, False, {"solved": value})


def test_a_share_is_named_as_it_was_given() -> None:
    with pytest.raises(ConfigError, match=r"info:solved: it holds 0\.3, which is no truth value"):
        SuccessRule(key="solved").read(0.0, True, False, {"solved": 0.3})


def test_a_key_that_is_missing_means_not_yet_and_at_the_end_that_nothing_was_said() -> None:
    rule = SuccessRule(key="solved")
    assert rule.read(1.0, False, False, {}) is False
    assert rule.read(1.0, True, False, {}) is None
    assert rule.read(1.0, False, True, {}) is None


def test_reward_and_termination_decide_without_info() -> None:
    assert SuccessRule(reward=0.5).read(0.5, False, False, {}) is True
    assert SuccessRule(reward=0.5).read(0.4, True, False, {"is_success": True}) is False
    assert SuccessRule().read(0.0, True, False, {}) is True
    assert SuccessRule().read(0.0, False, True, {}) is False


def test_known_keys_are_found_in_their_order() -> None:
    assert find({"success": 0, "is_success": 0}, "it") == SuccessRule(key="is_success")
    assert find({"succeed": False}, "it") == SuccessRule(key="succeed")


def test_success_is_never_guessed() -> None:
    with pytest.raises(ConfigError, match=r"toy does not say .*info holds distance, won, and none of is_success"):
        find({"won": True, "distance": 1.0}, "toy")
