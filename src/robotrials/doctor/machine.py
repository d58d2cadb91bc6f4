"""Cores, memory and shared memory as this process may really use them, not as the machine has them."""

from __future__ import annotations

import os
from pathlib import Path

from robotrials.doctor.finding import OK, PROBLEM, WARNING, Finding
from robotrials.machine.memory import memory_left
from robotrials.machine.threads import available_cores

_LEAST_SHM = 256e6
_LEAST_MEMORY = 2e9
_GB = 1e9


def examine() -> list[Finding]:
    """Cores, memory and /dev/shm."""
    return [cores(available_cores(), os.cpu_count() or 1), memory(Path("/")), shared_memory("/dev/shm")]


def cores(usable: int, present: int) -> Finding:
    """How many workers run side by side."""
    what = f"{usable} usable" if usable == present else f"{usable} usable of {present} (affinity, or a cgroup's quota)"
    return Finding("cores", OK, f"{what}: --eval.batch_size=0 takes these")


def memory(root: Path) -> Finding:
    """What is left below the machine's memory and below the limits of the cgroups that this process is in; ``root`` is
    where /proc and /sys lie.
    """
    left = memory_left(root)
    if not left:
        return Finding("memory", WARNING, "unknown: /proc/meminfo cannot be read")
    who, least = min(left.items(), key=lambda item: item[1])
    what = f"{least / _GB:.1f} GB available, bounded by {who}"
    if least < _LEAST_MEMORY:
        return Finding(
            "memory",
            WARNING,
            what,
            "a worker takes 0.1 GB (PushT) to 3 GB (ALOHA, LIBERO): give fewer of them with --eval.batch_size",
        )
    return Finding("memory", OK, what)


def shared_memory(folder: str) -> Finding:
    """The size of /dev/shm: robotrials needs none of it, but PyTorch and some simulators do."""
    try:
        status = os.statvfs(folder)
    except OSError as error:
        return Finding("/dev/shm", PROBLEM, f"{error.strerror}", "mount it: mount -t tmpfs tmpfs /dev/shm")
    size, free = status.f_frsize * status.f_blocks, status.f_frsize * status.f_bavail
    what = f"{size / _GB:.2f} GB, {free / _GB:.2f} GB free"
    if free < _LEAST_SHM:
        return Finding("/dev/shm", WARNING, what, "in a container: docker run --shm-size=2g, or --ipc=host")
    return Finding("/dev/shm", OK, what)
