"""Which entries of a Gymnasium observation space are cameras, and how each becomes uint8 (H, W, 3).

=====================================  ==============================================================================
entry                                  becomes
=====================================  ==============================================================================
uint8 (H, W, 3), (H, W, 4)             itself
numbers with bounds 0 and 255          rounded
floats with bounds 0 and 1             multiplied by 255 and rounded
(H, W), (H, W, 1)                      three equal channels
(C, H, W), C being 1, 3 or 4           with channels last
(1, H, W, C), a batch of one           its only picture
anything else that looks like one      refused, by name, shape and dtype: depth, segmentation, stacks of frames
=====================================  ==============================================================================

An entry looks like a camera if it is uint8 or uint16 with at least two axes, or has two axes of 16 or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.errors import ConfigError, ContractError
from robotrials.plan.task import Feature

_CHANNELS = (1, 3, 4)
_LEAST_SIDE = 16
"""Two axes as long make a picture; the poses and histories that states hold are smaller."""


@dataclass(frozen=True)
class Camera:
    """One camera, as the space declares it; ``name`` is how messages call it, ``scale`` what its numbers are
    multiplied by."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float = 1.0

    @property
    def feature(self) -> Feature:
        """What ``read`` returns."""
        body = _without_batch(self.shape)
        if len(body) == 2:
            return Feature((*body, 3), "uint8")
        height, width, channels = (*body[1:], body[0]) if _channels_first(body) else body
        return Feature((height, width, max(channels, 3)), "uint8")

    def read(self, value: Any) -> np.ndarray:
        """The picture of one observation, uint8 (H, W, C), the caller's to keep.

        Raises:
            ContractError: it has not the shape and dtype that the space declares, or numbers beyond its bounds.
        """
        picture = np.asarray(value)
        if picture.shape != self.shape or not _fits(picture.dtype, np.dtype(self.dtype)):
            raise ContractError(
                f"{self.name}: the observation space declares {self.dtype}{list(self.shape)}, but the environment gave "
                f"{picture.dtype}{list(picture.shape)}"
            )
        body = _without_batch(self.shape)
        picture = picture.reshape(body)
        if len(body) == 2:
            picture = picture[..., None]
        elif _channels_first(body):
            picture = np.moveaxis(picture, 0, -1)
        levels = picture if picture.dtype == np.uint8 else self._levels(picture)
        return np.repeat(levels, 3, axis=-1) if levels.shape[-1] == 1 else np.array(levels, order="C")

    def _levels(self, picture: np.ndarray) -> np.ndarray:
        """The numbers as levels of brightness, 0 to 255."""
        levels = np.rint(picture * self.scale)
        if not (levels.min() >= 0 and levels.max() <= 255):  # also where one is NaN
            raise ContractError(
                f"{self.name}: the observation space declares numbers between 0 and {255 / self.scale:g}, but the "
                f"environment gave some between {picture.min():g} and {picture.max():g}"
            )
        return levels.astype(np.uint8)


def camera_of(name: str, box: Any, remedy: str) -> Camera | None:
    """How the entry ``name`` of the space ``box`` is read; None if it does not look like a camera.

    Raises:
        ConfigError: it looks like one, and no rule converts it; the message ends with ``remedy``.
    """
    if not all(hasattr(box, bound) for bound in ("low", "high")):
        return None
    shape, dtype = tuple(int(n) for n in box.shape), np.dtype(box.dtype)
    if not looks_like_camera(shape, dtype):
        return None
    low, high = float(np.min(box.low)), float(np.max(box.high))
    problem = _shape_problem(_without_batch(shape))
    scale = _scale(dtype, low, high, bool(np.min(box.high) == high))
    if problem is None and scale is None:
        problem = "its numbers are no levels of brightness"
    if problem is None and scale is not None:
        return Camera(name, shape, str(dtype), scale)
    raise ConfigError(
        f"{name}, {dtype}{list(shape)} between {low:g} and {high:g}, looks like a camera, but {problem}: a camera is "
        f"uint8, or has the bounds 0 and 255, or 0 and 1 (floats), with 1, 3 or 4 channels. {remedy}"
    )


def _scale(dtype: np.dtype[Any], low: float, high: float, one_high: bool) -> float | None:
    if dtype == np.uint8:
        return 1.0
    if low < 0 or not one_high or dtype.kind == "b":
        return None
    if high == 255:
        return 1.0
    return 255.0 if high == 1 and dtype.kind == "f" else None


def looks_like_camera(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether numbers of that shape and dtype are taken for a picture, of whatever kind."""
    body = _without_batch(shape)
    if dtype in (np.uint8, np.uint16):
        return len(body) > 2 or (len(body) == 2 and min(body) > 1)
    return sum(n >= _LEAST_SIDE for n in body) >= 2


def _shape_problem(body: tuple[int, ...]) -> str | None:
    if len(body) > 3:
        return f"it has {len(body)} axes, a stack of pictures"
    if len(body) == 3 and body[0] not in _CHANNELS and body[-1] not in _CHANNELS:
        return f"neither {body[0]} nor {body[-1]} is a number of channels"
    return None


def _without_batch(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the only picture of a batch of one."""
    while len(shape) > 3 and shape[0] == 1:
        shape = shape[1:]
    return shape


def _channels_first(body: tuple[int, ...]) -> bool:
    return len(body) == 3 and body[0] in _CHANNELS and body[-1] not in _CHANNELS


def _fits(found: np.dtype[Any], declared: np.dtype[Any]) -> bool:
    if declared == np.uint8:
        return found == np.uint8
    return found.kind == declared.kind or found.kind + declared.kind in ("iu", "ui")
