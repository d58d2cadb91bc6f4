"""``--policy.device``: whether this machine, and the torch of this interpreter, have it. Imports no torch."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import runpy
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.options import nearest

KINDS = ("cpu", "cuda", "mps", "xpu")
"""Devices that LeRobot knows."""
_DEVICE = re.compile(r"([a-z]+)(?::(\d+))?")


def require_device(device: str) -> None:
    """Refuse a device that does not exist here; ``xpu`` is left to torch, which alone can tell.

    Raises:
        ConfigError: no such kind of device, a torch built without it, no driver, or a number beyond the last GPU.
    """
    kind, number = parse_device(device)
    if kind == "mps":
        raise ConfigError(f"--policy.device={device} exists on macOS only; use cpu or cuda")
    if kind != "cuda":
        return
    version = _torch_version()
    if version and not version.get("cuda") and not version.get("hip"):
        raise ConfigError(
            f"--policy.device={device}: torch {version.get('__version__')} is built without CUDA. "
            "Install a CUDA build of torch, or leave the option out"
        )
    if version.get("hip"):
        return
    count = count_cuda_devices()
    if not count:
        raise ConfigError(
            f"--policy.device={device}: this machine has no usable CUDA GPU (no driver, or CUDA_VISIBLE_DEVICES "
            "hides it). Leave the option out, or use --policy.device=cpu"
        )
    if number is not None and number >= count:
        raise ConfigError(f"--policy.device={device}: this machine has {count} CUDA GPU(s), numbered from 0")


def parse_device(device: str) -> tuple[str, int | None]:
    """Kind and number of ``cuda:1``; None without a number.

    Raises:
        ConfigError: it is no device's name.
    """
    match = _DEVICE.fullmatch(device)
    if match is None or match[1] not in KINDS:
        raise ConfigError(
            f"--policy.device={device}: unknown device{nearest(device.partition(':')[0], KINDS)}; "
            f"use one of {', '.join(KINDS)}, with a number as in cuda:0 where there are several"
        )
    return match[1], int(match[2]) if match[2] else None


def count_cuda_devices() -> int:
    """GPUs that CUDA programs of this process may use, asked of the driver itself; 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def _torch_version() -> dict[str, Any]:
    """What ``torch/version.py`` defines (``__version__``, ``cuda``, ``hip``); empty where torch is missing."""
    spec = importlib.util.find_spec("torch")
    file = Path(spec.origin).parent / "version.py" if spec and spec.origin else None
    return runpy.run_path(str(file)) if file is not None and file.is_file() else {}
