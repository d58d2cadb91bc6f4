"""Policy and benchmark are compared before anything is built, and messages name both sides."""

from __future__ import annotations

import pytest

from robotrials.errors import ContractError
from robotrials.plan.task import Feature
from robotrials.policies.fit import check_fit
from tests.toy import Toy, ToyConfig

TASKS = Toy(ToyConfig(task="a")).tasks()


def test_matching_needs_pass() -> None:
    check_fit("p", {"observation.state": Feature((2,)), "observation.image": None, "task": None}, 1, TASKS, {})


def test_missing_key_names_what_there_is() -> None:
    with pytest.raises(ContractError, match=r"reads observation\.sonar.*a does not have.*observation\.state float32"):
        check_fit("p", {"observation.sonar": None}, 1, TASKS, {})


def test_other_shape_names_both() -> None:
    with pytest.raises(ContractError, match=r"float32\[7\], but a gives observation\.state float32\[2\]"):
        check_fit("p", {"observation.state": Feature((7,))}, 1, TASKS, {})


def test_other_action_size_names_both() -> None:
    with pytest.raises(ContractError, match="actions of 7 numbers, but a takes 1"):
        check_fit("p", {}, 7, TASKS, {})


def test_renamed_key_is_looked_up_under_its_own_name() -> None:
    check_fit("p", {"observation.images.top": None}, 1, TASKS, {"observation.image": "observation.images.top"})


def test_rename_of_a_key_that_is_not_there_is_refused() -> None:
    with pytest.raises(ContractError, match=r"renames observation\.picture, which a does not have"):
        check_fit("p", {}, 1, TASKS, {"observation.picture": "observation.images.top"})
