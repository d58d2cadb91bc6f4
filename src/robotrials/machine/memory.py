"""The memory that this process may really use: the machine's, and what the control groups it is in leave of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def available_memory(root: Path = Path("/")) -> float:
    """Bytes to be had without swapping; infinite where nothing tells."""
    return min(memory_left(root).values(), default=float("inf"))


def memory_left(root: Path = Path("/")) -> dict[str, float]:
    """Bytes by who bounds them; empty where nothing tells. ``root`` is where /proc and /sys lie."""
    return {**dict(_machine(root)), **dict(_cgroup_rests(root))}


def _machine(root: Path) -> Iterator[tuple[str, float]]:
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield "the machine", int(line.split()[1]) * 1024.0


def _cgroup_rests(root: Path) -> Iterator[tuple[str, float]]:
    """What each limit leaves; a parent's limit binds its children, so all of them up to the root are looked at."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            base, limit, usage = "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            base, limit, usage = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # In a container /proc names the path outside, and the files lie at the root: both are tried.
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts), -1, -1):
            folder = root.joinpath(base, *parts[:depth])
            top, now = _read(folder / limit), _read(folder / usage)
            if top.isdigit() and now.isdigit() and int(top) < 2**60:
                yield f"the cgroup /{'/'.join(parts[:depth])}", float(max(0, int(top) - int(now)))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
