from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.gym.action import ActionFitter
from robotrials.errors import ContractError

spaces = pytest.importorskip("gymnasium.spaces")


def fitted(space: Any, *action: float, dtype: Any = np.float64) -> list[Any]:
    command = ActionFitter(space)(np.array(action, dtype))
    assert command.dtype == space.dtype
    assert command.shape == space.shape
    answer: list[Any] = command.reshape(-1).tolist()
    return answer


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_whole_numbers_are_clipped_and_never_wrap(dtype: Any) -> None:
    whole = np.iinfo(dtype)
    space = spaces.Box(whole.min, whole.max, (3,), dtype)
    assert fitted(space, 1e300, -1e300, 7.4) == [whole.max, whole.min, 7]
    assert fitted(space, float(whole.max), float(whole.min), 2.5) == [whole.max, whole.min, 2]


def test_whole_numbers_are_clipped_to_the_bounds_of_the_space_not_of_the_dtype() -> None:
    assert fitted(spaces.Box(-1, 1, (4,), np.int32), 300, -300, 0.6, -0.4) == [1, -1, 1, 0]
    assert fitted(spaces.Box(0, 1, (2,), np.int8), -0.7, 0.5) == [0, 0]
    assert fitted(spaces.Box(0, 255, (1, 2), np.uint8), 300, -3, dtype=np.int64) == [255, 0]


def test_float_actions_are_handed_over_as_they_are() -> None:
    assert fitted(spaces.Box(-1.0, 1.0, (2,), np.float32), 7.5, -0.25) == [7.5, -0.25]


@pytest.mark.parametrize("space", [spaces.Box(0, 255, (2,), np.uint8), spaces.Box(-1.0, 1.0, (2,), np.float32)])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(space: Any, odd: float) -> None:
    with pytest.raises(ContractError, match="not finite"):
        ActionFitter(space)(np.array([0.0, odd]))


def test_what_the_dtype_cannot_hold_is_refused() -> None:
    with pytest.raises(ContractError, match=r"float32 actions, and \[1e\+300\]"):
        ActionFitter(spaces.Box(-np.inf, np.inf, (1,), np.float32))(np.array([1e300]))


def test_another_number_of_entries_is_refused() -> None:
    with pytest.raises(ContractError, match=r"shape \[2\], but got \[3\]"):
        ActionFitter(spaces.Box(-1.0, 1.0, (2,), np.float32))(np.zeros(3))
