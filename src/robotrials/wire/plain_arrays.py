"""Messages of other projects' policy servers: one msgpack map with arrays in it, decoded without trusting the peer.

Two dialects write an array as a map of its bytes: openpi's (``openpi-client`` 0.1, ``msgpack_numpy``), whose marks are
bytes (``b"__ndarray__"``), and vla-eval's (0.8, ``protocol/numpy_codec.py``), whose marks are text. Both are read here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

import msgpack
import numpy as np

from robotrials.errors import WireError
from robotrials.wire.arrays import MAX_DIMENSIONS, AnyArray

MAX_FOREIGN_BYTES = 128 * 2**20
"""One message: eight 1080p images are 50 MB."""
MAX_ITEMS = 1 << 16
"""Entries of one list or map."""

_DTYPE = re.compile(r"[<>|=]?[biuf](1|2|4|8)")
"""Numbers and booleans. An object array's bytes would become pointers, so its type is not even handed to NumPy."""

_WORDS = frozenset({"bfloat16", "V2", "<V2", "|V2", ">V2", "V1", "<V1", "|V1"})
"""How NumPy writes the types that extensions of it define."""


def decode_plain(data: bytes, max_bytes: int = MAX_FOREIGN_BYTES) -> dict[Any, Any]:
    """The map that ``data`` holds, its arrays as NumPy arrays (read-only views), its scalars as NumPy scalars.

    Raises:
        WireError: not msgpack, no map, too large, or an array that is not what it says.
    """
    if len(data) > max_bytes:
        raise WireError(f"a message of {len(data)} bytes exceeds the limit of {max_bytes}")
    try:
        plain = msgpack.unpackb(
            data,
            raw=False,
            strict_map_key=True,
            object_hook=_revive,
            max_array_len=MAX_ITEMS,
            max_map_len=MAX_ITEMS,
            max_ext_len=0,
        )
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError, msgpack.UnpackException) as error:
        raise WireError(f"not a message: {error}") from None
    if not isinstance(plain, dict):
        raise WireError(f"not a message: a {type(plain).__name__}")
    return plain


def encode_openpi(content: Mapping[str, Any]) -> bytes:
    """``content`` in openpi's dialect."""
    return _pack(content, _openpi_array)


def encode_vla_eval(content: Mapping[str, Any]) -> bytes:
    """``content`` in vla-eval's dialect; images raw, because a lossy format would change results."""
    return _pack(content, _vla_eval_array)


def _pack(content: Mapping[str, Any], default: Any) -> bytes:
    return msgpack.packb(content, default=default, use_bin_type=True)  # type: ignore[no-any-return]


def _openpi_array(value: Any) -> Any:
    array = _plain_array(value)
    return {b"__ndarray__": True, b"data": array.tobytes(), b"dtype": array.dtype.str, b"shape": array.shape}


def _vla_eval_array(value: Any) -> Any:
    array = _plain_array(value)
    return {"__ndarray__": True, "data": array.tobytes(), "dtype": array.dtype.str, "shape": list(array.shape)}


def _plain_array(value: Any) -> AnyArray:
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind not in "biuf":
        raise WireError(f"{type(value).__name__} does not cross the wire: numbers and booleans alone are sent")
    return np.asarray(value)


def _revive(value: dict[Any, Any]) -> Any:
    """A map that msgpack has just read: an array or scalar where it says so, else itself."""
    for mark, key in (("__ndarray__", str), (b"__ndarray__", bytes), ("__image__", str)):
        if mark in value:
            return _array(value, key)
    if b"__npgeneric__" in value:
        number = value.get(b"data")
        if not isinstance(number, (bool, int, float)):
            raise WireError(f"a scalar that is a {type(number).__name__}")
        return _dtype(value.get(b"dtype")).type(number)
    return value


def _array(value: dict[Any, Any], key: type) -> AnyArray:
    def part(name: str) -> Any:
        return value.get(name.encode() if key is bytes else name)

    if part("format") not in (None, "raw"):
        raise WireError(f"an image in the format {part('format')!r}: raw arrays alone are read")
    dtype, data, shape = _dtype(part("dtype")), part("data"), part("shape")
    if not isinstance(data, bytes) or not isinstance(shape, (list, tuple)) or len(shape) > MAX_DIMENSIONS:
        raise WireError("an array without data or shape")
    if not all(type(side) is int and 0 <= side <= MAX_FOREIGN_BYTES for side in shape):
        raise WireError("an array with a side that is no size")
    if prod(max(side, 1) for side in shape) > MAX_FOREIGN_BYTES or prod(shape) * dtype.itemsize != len(data):
        raise WireError(f"an array of {len(data)} bytes that says it is {dtype.str}{list(shape)}")
    if not data:
        return np.zeros(shape, dtype)
    return np.frombuffer(data, dtype).reshape(shape)


def _dtype(name: Any) -> np.dtype[Any]:
    text = name.decode("ascii", "replace") if isinstance(name, bytes) else name
    if isinstance(text, str) and text in _WORDS:
        raise WireError(
            f"an array of dtype {text!r}, raw words that do not say what they mean (bfloat16 perhaps): convert it to "
            "float32 before it is sent"
        )
    if not isinstance(text, str) or not _DTYPE.fullmatch(text):
        raise WireError(f"a dtype {str(text)[:40]!r}; numbers and booleans alone are read")
    try:
        return np.dtype(text)
    except TypeError:
        raise WireError(f"no dtype {text!r}") from None
