"""Which GPU a policy server gets where there are several: one each, in turn."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping

VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus(environ: Mapping[str, str], n_devices: Callable[[], int] | None = None) -> list[str]:
    """What CUDA may use, as CUDA_VISIBLE_DEVICES names it; without that, all that the kernel shows."""
    named = environ.get(VISIBLE)
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip() and name.strip() != "-1"]
    count = n_devices() if n_devices is not None else len(glob.glob("/dev/nvidia[0-9]*"))
    return [str(number) for number in range(count)]


def gpu_of_server(slot: int, gpus: list[str], device: str | None) -> dict[str, str]:
    """Variables of the policy server in ``slot``. Nothing where there is no choice, or where the user has chosen:
    ``device`` is ``--policy.device``, and a number in it counts all GPUs."""
    if len(gpus) < 2 or (device is not None and device != "cuda"):
        return {}
    return {VISIBLE: gpus[slot % len(gpus)]}
