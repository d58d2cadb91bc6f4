"""A policy's action as a Gymnasium environment takes it: in the shape and dtype of its action space.

Numbers of a float space are handed over as they are. Numbers of an integer space are rounded to the nearest whole
number (halves to the even one) and clipped to the space's bounds: what lies outside would wrap around in the dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robotrials.errors import ContractError


class ActionFitter:
    """Turns the actions of a policy into those of ``space``, a ``gymnasium.spaces.Box``."""

    def __init__(self, space: Any) -> None:
        self._dtype, self._shape = np.dtype(space.dtype), tuple(space.shape)
        self._whole = self._dtype.kind in "biu"
        if self._whole:
            self._low, self._high = np.asarray(space.low), np.asarray(space.high)
            # As floats: int64's largest number is 2**63 then, one more than it holds.
            self._float_low, self._float_high = self._low.astype(np.float64), self._high.astype(np.float64)

    def __call__(self, action: np.ndarray) -> np.ndarray:
        """
        Args:
            action: (A,) numbers, A being the number of entries of the space.

        Returns:
            The action in the space's shape and dtype.

        Raises:
            ContractError: another number of entries, or one that is no finite number of that dtype.
        """
        values = np.asarray(action)
        if values.size != int(np.prod(self._shape)):
            raise ContractError(
                f"the environment takes actions of shape {list(self._shape)}, but got {list(values.shape)}"
            )
        values = values.reshape(self._shape)
        if self._whole:
            return self._rounded(values)
        with np.errstate(over="ignore"):
            fitted: np.ndarray = values.astype(self._dtype)
        return self._finite(fitted, values)

    def _rounded(self, values: np.ndarray) -> np.ndarray:
        whole = np.rint(self._finite(values.astype(np.float64), values))
        above, below = whole >= self._float_high, whole <= self._float_low
        inside = np.where(above | below, 0.0, whole).astype(self._dtype)
        fitted: np.ndarray = np.where(above, self._high, np.where(below, self._low, inside))
        return fitted

    def _finite(self, fitted: np.ndarray, given: np.ndarray) -> np.ndarray:
        if not np.isfinite(fitted).all():
            raise ContractError(
                f"the environment takes {self._dtype} actions, and {given.reshape(-1)[:8].tolist()} "
                "has a number that is not finite there"
            )
        return fitted
