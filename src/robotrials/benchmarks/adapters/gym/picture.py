"""From what ``render()`` returns to a picture for the video, (H, W, 3) uint8, by rules that hold for all environments.

A frame may be grey, have an alpha channel (which is dropped), its channels first, a leading axis of one, or be floats:
shares of 255 where none is above 1. Several views at once, in a list, a map or a batch, stand side by side; of a film
(``render_mode="rgb_array_list"``) the last frame counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.gym.answers import as_numpy
from robotrials.errors import ContractError

FILM = "rgb_array_list"
DRAWS = ("rgb_array", FILM)
"""Render modes in which ``render()`` returns pictures."""


def picture_of(drawn: Any, who: str, is_film: bool = False) -> np.ndarray | None:
    """The picture, an array of the caller's own; None where nothing was drawn.

    Raises:
        ContractError: ``drawn`` is neither a picture nor several.
    """
    if isinstance(drawn, Mapping):
        drawn = list(drawn.values())
    if isinstance(drawn, (list, tuple)):
        views = [picture_of(one, who) for one in (drawn[-1:] if is_film else drawn)]
        return _side_by_side([view for view in views if view is not None])
    if drawn is None:
        return None
    array = np.asarray(as_numpy(drawn))
    if array.ndim == 4:
        return picture_of(list(array), who)
    if array.dtype.kind not in "biuf" or array.ndim not in (2, 3) or array.size == 0:
        raise ContractError(f"{who} draws {_words(drawn, array)}; right is uint8 (H, W, 3)")
    return _colours(_bytes(array), who)


def _bytes(array: np.ndarray) -> np.ndarray:
    """As uint8: truth values are black and white, floats up to 1 shares of 255."""
    if array.dtype == np.uint8:
        return np.array(array, order="C")
    numbers = np.nan_to_num(array.astype(np.float64))
    if array.dtype.kind == "b" or (array.dtype.kind == "f" and numbers.max() <= 1.0):
        numbers = numbers * 255.0
    return np.rint(np.clip(numbers, 0.0, 255.0)).astype(np.uint8)


def _colours(array: np.ndarray, who: str) -> np.ndarray:
    """(H, W, 3) of grey, RGB or RGBA, channels last or first."""
    if array.ndim == 2:
        array = array[..., None]
    if array.shape[-1] not in (1, 3, 4) and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    channels = array.shape[-1]
    if channels not in (1, 3, 4):
        raise ContractError(f"{who} draws a picture of shape {array.shape}; right is uint8 (H, W, 3)")
    return np.ascontiguousarray(np.repeat(array, 3, axis=-1) if channels == 1 else array[..., :3])


def _side_by_side(views: list[np.ndarray]) -> np.ndarray | None:
    """All of them in one row; smaller ones have black below."""
    if len(views) < 2:
        return views[0] if views else None
    height = max(len(view) for view in views)
    return np.concatenate([np.pad(view, ((0, height - len(view)), (0, 0), (0, 0))) for view in views], axis=1)


def _words(drawn: Any, array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape}" if array.ndim and array.dtype.kind in "biuf" else f"a {type(drawn).__name__}"
