"""Arrays across a process border: a layout of names, dtypes and shapes, and one run of bytes.

Decoding never trusts the peer: dtype kinds other than ``b i u f`` are refused (an object array's bytes would become
pointers), sizes are checked against limits and against the bytes that are there before anything is made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from robotrials.errors import WireError

MAX_BYTES = 1 << 30
"""One observation, or one batch of actions; eight 1080p cameras over four steps are 200 MB."""
MAX_ARRAYS = 256
MAX_DIMENSIONS = 8
_KINDS = "biuf"
_ALIGNMENT = 64
_LONGEST_DTYPE = 16

AnyArray = npt.NDArray[np.generic]


@dataclass(frozen=True)
class ArrayHeader:
    """One array within the bytes: ``dtype`` as NumPy writes it (``|u1``, ``<f4``)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class ArrayLayout:
    """Where each array lies in ``n_bytes`` bytes. Made by ``of``; a peer's is to be ``check``-ed before use."""

    arrays: tuple[ArrayHeader, ...]
    n_bytes: int

    @classmethod
    def of(cls, arrays: Mapping[str, AnyArray]) -> ArrayLayout:
        """Lay ``arrays`` out one after the other, each at a multiple of 64 bytes.

        Raises:
            WireError: a dtype that does not cross the wire, or more than the limits allow.
        """
        headers, end = [], 0
        for name, array in arrays.items():
            headers.append(ArrayHeader(name, array.dtype.str, array.shape, end))
            end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        layout = cls(tuple(headers), end)
        layout.check()
        return layout

    def matches(self, arrays: Mapping[str, AnyArray]) -> bool:
        """Whether ``arrays`` are of this very layout."""
        if len(arrays) != len(self.arrays):
            return False
        return all(
            name == header.name and array.shape == header.shape and array.dtype.str == header.dtype
            for (name, array), header in zip(arrays.items(), self.arrays, strict=True)
        )

    def check(self) -> None:
        """
        Raises:
            WireError: a dtype, shape, size or place that is not to be trusted.
        """
        if not 0 <= self.n_bytes <= MAX_BYTES:
            raise WireError(f"arrays of {self.n_bytes} bytes; the limit is {MAX_BYTES}")
        if len(self.arrays) > MAX_ARRAYS:
            raise WireError(f"{len(self.arrays)} arrays; the limit is {MAX_ARRAYS}")
        for header in self.arrays:
            dtype = _dtype(header)
            # Beside a side of 0 the others can be of any size, and NumPy would refuse them in ways of its own.
            sides = [max(side, 1) for side in header.shape]
            if len(sides) > MAX_DIMENSIONS or min(header.shape, default=0) < 0 or prod(sides) > MAX_BYTES:
                raise WireError(f"array {header.name!r} has shape {header.shape}")
            size = prod(header.shape) * dtype.itemsize
            if header.offset < 0 or header.offset + size > self.n_bytes:
                raise WireError(f"array {header.name!r} does not lie within its {self.n_bytes} bytes")

    def write(self, arrays: Mapping[str, AnyArray], target: memoryview) -> None:
        """Copy ``arrays`` (of this layout) into ``target``."""
        for header, array in zip(self.arrays, arrays.values(), strict=True):
            place = np.frombuffer(target, array.dtype, array.size, header.offset).reshape(array.shape)
            place[...] = array

    def read(self, source: memoryview) -> dict[str, AnyArray]:
        """Views into ``source``: copy what is to outlive it.

        Raises:
            WireError: ``source`` is shorter than the layout says.
        """
        if len(source) < self.n_bytes:
            raise WireError(f"{len(source)} bytes where the layout needs {self.n_bytes}")
        return {
            header.name: np.frombuffer(source, _dtype(header), prod(header.shape), header.offset).reshape(header.shape)
            for header in self.arrays
        }


def _dtype(header: ArrayHeader) -> np.dtype[np.generic]:
    try:
        if len(header.dtype) > _LONGEST_DTYPE:
            raise TypeError
        dtype: np.dtype[np.generic] = np.dtype(header.dtype)
    except (TypeError, ValueError, SyntaxError, OverflowError):
        raise WireError(f"array {header.name!r} has no dtype {header.dtype[:40]!r}") from None
    if dtype.kind not in _KINDS or dtype.names is not None or dtype.subdtype is not None:
        raise WireError(f"array {header.name!r} has dtype {header.dtype[:40]!r}; numbers and booleans alone are sent")
    return dtype
