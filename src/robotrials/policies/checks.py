"""Checks that several policies make of their options, and of what they hand out."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from robotrials.errors import ConfigError, ContractError


def at_least_one(name: str, value: int) -> int:
    """``value`` of ``--policy.<name>``; ConfigError when it is below 1."""
    if value < 1:
        raise ConfigError(f"--policy.{name} must be at least 1, got {value}")
    return value


def plain_array(answer: Any) -> np.ndarray:
    """What a policy handed out as a NumPy array: a torch tensor from whatever device and graph it is in, and numbers of
    a type that NumPy does not have (bfloat16, float8) as float32, which holds all of their values."""
    torch: Any = sys.modules.get("torch")
    is_tensor: bool = torch is not None and isinstance(answer, getattr(torch, "Tensor", ()))
    if is_tensor:
        answer = answer.detach().cpu()
        if answer.is_floating_point() and answer.dtype not in (torch.float16, torch.float32, torch.float64):
            answer = answer.float()
        answer = answer.numpy()
    array = np.asarray(answer)
    is_foreign = array.dtype.kind != "f" and array.dtype.type.__module__.partition(".")[0] == "ml_dtypes"
    if is_foreign or (array.dtype.kind == "f" and array.dtype.itemsize == 1):
        return array.astype(np.float32)
    return array


def require_numbers(policy: str, actions: np.ndarray) -> None:
    """
    Raises:
        ContractError: ``actions`` of ``policy`` are no integers or floats; the message names what they are.
    """
    kind, dtype = actions.dtype.kind, actions.dtype
    if kind in "fiu":
        return
    what = {
        "V": f"raw words (dtype {dtype.str}), bfloat16 perhaps",
        "O": "Python objects",
        "U": "text",
        "S": "text",
        "b": "truth values (dtype bool)",
    }.get(kind, f"dtype {dtype}")
    if kind == "O" and not actions.ndim:
        what = f"type {type(actions.item()).__name__}"
    raise ContractError(f"policy {policy} returned actions of {what}; right are numbers, such as float32")
