"""What policies hand out, as NumPy's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robotrials.errors import ContractError
from robotrials.policies.checks import plain_array, require_numbers


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"])
def test_types_that_extensions_of_numpy_define_become_float32(name: str) -> None:
    extension = pytest.importorskip("ml_dtypes")
    array = plain_array(np.array([[[0.5, -2.0]]]).astype(getattr(extension, name)))
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array[..., 1], -2.0)
    require_numbers("mine", array)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float64", "int32", "float8_e5m2"])
def test_tensors_become_arrays_with_or_without_a_gradient(name: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([[[1.0, -2.0]]], requires_grad=name.startswith("float3")).to(getattr(torch, name))
    array = plain_array(tensor)
    expected = name if name in ("float16", "float32", "float64", "int32") else "float32"
    assert array.dtype == expected
    np.testing.assert_array_equal(array, [[[1.0, -2.0]]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64"])
def test_numpys_own_numbers_stay_as_they_are(dtype: str) -> None:
    array = np.ones((1, 1, 2), dtype)
    assert plain_array(array) is array
    require_numbers("mine", array)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (np.zeros((1, 1, 2), "V2"), r"raw words \(dtype \|V2\), bfloat16 perhaps"),
        (np.zeros((1, 1, 2), complex), "dtype complex128"),
        (np.array([[[0.5, None]]]), "Python objects"),
        ([[["0.5", "0.1"]]], "text"),
        (np.ones((1, 1, 2), bool), r"truth values \(dtype bool\)"),
        (None, "type NoneType"),
        ({"action": 1}, "type dict"),
    ],
)
def test_what_is_no_number_is_named(answer: Any, says: str) -> None:
    with pytest.raises(ContractError, match=f"policy mine returned actions of {says}; right are numbers"):
        require_numbers("mine", plain_array(answer))
