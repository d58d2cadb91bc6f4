"""How often each brightness occurs in the pictures of an episode: all that their statistics need, in 6 kB."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

LEVELS = 256
_ENOUGH_PIXELS = 150
"""Pictures are thinned to about this many pixels a side, as LeRobot does; statistics hardly move, time does."""


def count_levels(frame: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """(3, 256) int64: for each channel of an (H, W, 3) uint8 picture, how many of its pixels have each level."""
    stride = max(1, min(frame.shape[:2]) // _ENOUGH_PIXELS)
    pixels: npt.NDArray[Any] = frame[::stride, ::stride]
    return np.stack([np.bincount(pixels[..., channel].ravel(), minlength=LEVELS) for channel in range(3)])
