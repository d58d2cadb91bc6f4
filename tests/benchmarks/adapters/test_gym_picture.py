from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.gym.picture import picture_of
from robotrials.errors import ContractError

RGB = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
GREY = RGB[..., 0]


@pytest.mark.parametrize(
    ("drawn", "right"),
    [
        (RGB, RGB),
        (GREY, np.repeat(GREY[..., None], 3, -1)),
        (GREY[..., None], np.repeat(GREY[..., None], 3, -1)),
        (np.concatenate([RGB, RGB[..., :1]], -1), RGB),
        (np.moveaxis(RGB, -1, 0), RGB),
        (RGB[None], RGB),
        ([RGB], RGB),
        ((RGB, None), RGB),
        (RGB / 255.0, RGB),
        (RGB.astype(np.float32), RGB),
        (RGB.astype(np.int64), RGB),
        (RGB > 30, (RGB > 30).astype(np.uint8) * 255),
        (np.full((4, 6, 3), np.nan), np.zeros((4, 6, 3))),
        ([RGB, RGB[:2]], np.concatenate([RGB, np.concatenate([RGB[:2], np.zeros_like(RGB[:2])])], 1)),
        ({"front": RGB, "wrist": RGB}, np.concatenate([RGB, RGB], 1)),
        (np.stack([RGB, RGB]), np.concatenate([RGB, RGB], 1)),
    ],
)
def test_what_is_drawn_becomes_a_picture_by_a_rule(drawn: Any, right: np.ndarray) -> None:
    picture = picture_of(drawn, "Toy")
    assert picture is not None
    assert picture.dtype == np.uint8
    assert picture.tolist() == right.tolist()
    assert not np.shares_memory(picture, RGB)


def test_of_a_film_the_last_frame_counts() -> None:
    picture = picture_of([RGB, RGB + 1], "Toy", is_film=True)
    assert picture is not None
    assert picture.tolist() == (RGB + 1).tolist()


@pytest.mark.parametrize("drawn", [None, [], {}, [None]])
def test_nothing_drawn_is_no_picture(drawn: Any) -> None:
    assert picture_of(drawn, "Toy") is None


@pytest.mark.parametrize("drawn", ["a map of text", np.zeros(5), np.zeros((5, 6, 2)), object()])
def test_what_is_no_picture_is_refused(drawn: Any) -> None:
    with pytest.raises(ContractError, match=r"Toy draws .*; right is uint8 \(H, W, 3\)"):
        picture_of(drawn, "Toy")
