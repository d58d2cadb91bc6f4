"""How many workers a run gets when nobody says it."""

from __future__ import annotations

import os
from pathlib import Path

from robotrials.running.threads import available_cores

WAITING = 8
"""Workers beyond one a core when a policy server acts for them: so many may wait for its next batch while every core
simulates. Two batches of the padded size on a CPU, one on a GPU."""

BYTES_A_WORKER = 1.5e9
"""What a worker may come to hold (LIBERO with two cameras), for how many there is memory besides one a core."""


def auto_workers(served: bool) -> int:
    """For ``--eval.batch_size=0``: one a core, and more where a policy server acts for them, as far as memory goes."""
    cores = available_cores()
    if not served:
        return cores
    return max(cores, min(cores + WAITING, int(available_memory() / BYTES_A_WORKER)))


def available_memory() -> float:
    """Bytes to be had without swapping: the machine's, cut by the cgroup's limit (v1, v2); infinite if unknown."""
    limits = [_machine(), *_cgroup()]
    return min((limit for limit in limits if limit is not None), default=float("inf"))


def _machine() -> float | None:
    text = _read("/proc/meminfo") or ""
    for line in text.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024.0
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _cgroup() -> list[float]:
    """What is left below the limit of the control group; nothing where there is none."""
    left = []
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        top, now = _read(limit), _read(used)
        if top and now and top.isdigit() and now.isdigit():
            left.append(float(max(0, int(top) - int(now))))
    return left


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
