"""How many threads the libraries of a worker or a policy server may start.

Left alone, each of them takes one per core of the machine, and W workers on C cores run W x C threads: measured 2 to 15
times slower than one thread each.
"""

from __future__ import annotations

import os

_POOLS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TBB_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "LP_NUM_THREADS",  # llvmpipe, Mesa's software renderer
)


def thread_limits(count: int) -> dict[str, str]:
    """Environment variables that hold every known library to ``count`` threads. They win over the user's own settings:
    a thread count can change the last bits of a matrix product."""
    return dict.fromkeys(_POOLS, str(count))


def available_cores() -> int:
    """The cores that this process may really use: its affinity, cut by the cgroup's CPU quota (v1 and v2)."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:  # macOS
        cores = os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, min(cores, int(quota)) if quota else cores)


def _cgroup_quota() -> float | None:
    """CPU quota in cores; None without one."""
    limits = [quota for quota in (_quota_v2(), _quota_v1()) if quota is not None]
    return min(limits) if limits else None


def _quota_v2() -> float | None:
    # A parent's quota binds its children: walk from this process's group up to the root.
    path = _own_cgroup("")
    if path is None:
        return None
    limits = []
    while True:
        text = _read(f"/sys/fs/cgroup{path.rstrip('/')}/cpu.max")
        if text and not text.startswith("max"):
            quota, period = text.split()[:2]
            limits.append(int(quota) / int(period))
        if path in ("/", ""):
            return min(limits) if limits else None
        path = os.path.dirname(path)


def _quota_v1() -> float | None:
    path = _own_cgroup("cpu") or "/"
    for folder in (f"/sys/fs/cgroup/cpu{path}", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"):
        quota, period = _read(f"{folder}/cpu.cfs_quota_us"), _read(f"{folder}/cpu.cfs_period_us")
        if quota and period and int(quota) > 0:
            return int(quota) / int(period)
    return None


def _own_cgroup(controller: str) -> str | None:
    """This process's path in the hierarchy of ``controller`` (empty: the unified one of v2)."""
    for line in (_read("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(",") if controller else not controllers:
            return path
    return None


def _read(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None
