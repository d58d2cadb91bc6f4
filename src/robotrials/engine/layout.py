"""How many workers and policy servers a run gets when nobody says it, and whether the limits allow so many."""

from __future__ import annotations

import glob
import sys
from collections.abc import Mapping

from robotrials.errors import ConfigError
from robotrials.machine.limits import allow_descriptors
from robotrials.machine.memory import available_memory
from robotrials.machine.threads import available_cores

WAITING = 6
"""Workers beyond one a core when a policy server acts for them: so many may wait for its next batch while every core
simulates. One batch of the padded size in the pass, half of one gathering (measured: two more change nothing)."""

BYTES_A_WORKER = 1.5e9
"""What a worker may come to hold (LIBERO with two cameras), for how many there is memory besides one a core."""


def auto_workers(served: bool) -> int:
    """For ``--eval.batch_size=0``: one a core, and more where a policy server acts for them, as far as memory goes."""
    cores = available_cores()
    if not served:
        return cores
    return max(cores, min(cores + WAITING, int(available_memory() / BYTES_A_WORKER)))


WORKERS_A_SERVER = 4
"""Fewer workers do not keep a further server busy, and loading one costs seconds."""
BYTES_A_SERVER = 2e9
"""What a policy server may come to hold (LeRobot, torch, a small policy); half of the memory is theirs."""


def auto_servers(options: Mapping[str, object], looks_every_step: bool, n_workers: int) -> int:
    """For ``--eval.policy_servers=0``, of a policy with these options that wants one: one where it computes on a GPU.

    On the processor a server has one thread, so there is one for every second core, or one for every core where the
    policy looks at every step and simulators wait for it most of the time.
    """
    cores = available_cores()
    if not _computes_on_processor(options):
        return 1
    by_cores = cores if looks_every_step else cores // 2
    by_memory = int(min(available_memory() / 2 / BYTES_A_SERVER, cores))
    return max(1, min(by_cores, -(-n_workers // WORKERS_A_SERVER), by_memory))


_DESCRIPTORS = 32
"""Files that a coordinator or a policy server holds open besides those for workers (measured: 20), and some more."""
_FEWEST_DESCRIPTORS = 64
"""What a worker's process may come to need."""
_FOR_OTHERS = 1024
"""Connections of workers that join, and of strangers who reach the address."""


def require_descriptors(n_workers: int, n_servers: int, listens: bool) -> None:
    """Let this process, and those it starts, open as many files as the layout needs.

    Raises:
        ConfigError: the hard limit does not allow it.
    """
    coordinator = _DESCRIPTORS + 2 * (n_workers + n_servers)
    server = _DESCRIPTORS + 3 * -(-n_workers // n_servers) if n_servers else 0
    needed = max(coordinator, server, _FEWEST_DESCRIPTORS)
    soft, hard = allow_descriptors(needed + (_FOR_OTHERS if listens else 0))
    if soft < needed:
        layout = f"{n_workers} workers" + (f" and {n_servers} policy servers" if n_servers else "")
        raise ConfigError(
            f"{layout} need up to {needed} open files in one process, but the hard limit is {hard}: raise it "
            f"(ulimit -n {needed}), or use fewer workers (--eval.batch_size)"
        )


def _computes_on_processor(options: Mapping[str, object]) -> bool:
    device = options.get("device")
    if device is not None:
        return str(device) == "cpu"
    accelerators = ("/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg")
    return sys.platform == "linux" and not any(glob.glob(pattern) for pattern in accelerators)
