"""Arrays cross the wire bit for bit, and nothing but numbers does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from robotrials.errors import WireError
from robotrials.wire.arrays import MAX_BYTES, ArrayHeader, ArrayLayout

dtypes = (
    hnp.boolean_dtypes() | hnp.integer_dtypes() | hnp.unsigned_integer_dtypes() | hnp.floating_dtypes(sizes=(32, 64))
)


@given(st.dictionaries(st.text(max_size=8), hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_side=5)), max_size=4))
def test_arrays_survive_bit_for_bit(arrays: dict[str, np.ndarray]) -> None:
    layout = ArrayLayout.of(arrays)
    assert layout.matches(arrays)
    buffer = memoryview(bytearray(layout.n_bytes))
    layout.write(arrays, buffer)
    back = layout.read(buffer)
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].tobytes() == array.tobytes()


def test_layout_tells_another_shape_dtype_or_name_apart() -> None:
    layout = ArrayLayout.of({"a": np.zeros(3), "b": np.zeros((2, 2), np.uint8)})
    assert not layout.matches({"a": np.zeros(4), "b": np.zeros((2, 2), np.uint8)})
    assert not layout.matches({"a": np.zeros(3), "b": np.zeros((2, 2), np.int8)})
    assert not layout.matches({"a": np.zeros(3), "c": np.zeros((2, 2), np.uint8)})
    assert not layout.matches({"a": np.zeros(3)})


@pytest.mark.parametrize("array", [np.array([object()]), np.array(["text"]), np.array([1j]), np.array([b"x"])])
def test_arrays_of_anything_but_numbers_are_refused_by_the_sender(array: np.ndarray) -> None:
    with pytest.raises(WireError, match="numbers and booleans alone"):
        ArrayLayout.of({"a": array})


@pytest.mark.parametrize(
    ("header", "n_bytes", "words"),
    [
        (ArrayHeader("a", "|O", (1,), 0), 64, "numbers and booleans alone"),
        (ArrayHeader("a", "<M8[s]", (1,), 0), 64, "numbers and booleans alone"),
        (ArrayHeader("a", "V8", (1,), 0), 64, "numbers and booleans alone"),
        (ArrayHeader("a", "f4,O", (1,), 0), 64, "numbers and booleans alone"),
        (ArrayHeader("a", "(9,)f4", (1,), 0), 64, "numbers and booleans alone|does not lie"),
        (ArrayHeader("a", "nonsense", (1,), 0), 64, "no dtype"),
        (ArrayHeader("a", "<f4", (-1,), 0), 64, "has shape"),
        (ArrayHeader("a", "<f4", (1,) * 40, 0), 64, "has shape"),
        (ArrayHeader("a", "<f4", (17,), 0), 64, "does not lie within"),
        (ArrayHeader("a", "<f4", (1,), -4), 64, "does not lie within"),
        (ArrayHeader("a", "<f4", (2**62, 2**62), 0), 64, "has shape"),
        (ArrayHeader("a", "<f4", (1,), 0), MAX_BYTES + 1, "the limit is"),
        (ArrayHeader("a", "<f4", (1,), 0), -1, "the limit is"),
    ],
)
def test_layout_from_a_peer_is_checked_before_use(header: ArrayHeader, n_bytes: int, words: str) -> None:
    with pytest.raises(WireError, match=words):
        ArrayLayout((header,), n_bytes).check()


def test_too_few_bytes_are_refused() -> None:
    layout = ArrayLayout.of({"a": np.zeros(8)})
    with pytest.raises(WireError, match="32 bytes where the layout needs 64"):
        layout.read(memoryview(bytes(32)))


@given(
    st.text(max_size=12),
    st.lists(st.integers(-5, 2**40), max_size=10),
    st.integers(-10, 2**40),
    st.integers(-10, 2**40),
)
def test_any_header_is_checked_without_allocating(dtype: str, shape: list[int], offset: int, n_bytes: int) -> None:
    try:
        ArrayLayout((ArrayHeader("a", dtype, tuple(shape), offset),), n_bytes).check()
    except WireError:
        return
    assert 0 <= n_bytes <= MAX_BYTES
