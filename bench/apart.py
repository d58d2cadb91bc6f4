"""For benches of simulators: one way of playing, measured in a process of its own, so that memory is its own too."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from robotrials.rendering.gl import gl_environment

Figures = dict[str, float]


def resident_mb() -> float:
    """Without psutil, which a simulator's own environment has not."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(make: Callable[[], Callable[[], object]], steps: int) -> Figures:
    """``make`` builds and resets, and returns what plays one step; drawing contexts are made in the first few."""
    step = make()
    for _ in range(min(11, steps)):
        step()
    began = time.process_time()
    for _ in range(steps):
        step()
    spent = time.process_time() - began
    return {
        "cpu_ms_per_step": round(1e3 * spent / steps, 2),
        "resident_mb": round(resident_mb()),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10),
    }


def run(name: str, ways: Mapping[str, Callable[[], Figures]]) -> dict[str, Figures]:
    """Every way in a process of its own; called with a way's name on the command line, that way in this one."""
    if len(sys.argv) > 1:
        print(json.dumps(ways[sys.argv[1]]()))
        sys.stdout.flush()
        os._exit(0)
    environment = {**os.environ, **gl_environment(os.environ), "OMP_NUM_THREADS": "1", "LP_NUM_THREADS": "1"}
    found: dict[str, Figures] = {}
    print(f"{name:36} {'CPU ms/step':>12} {'resident MB':>12} {'peak MB':>9}")
    for way in ways:
        done = subprocess.run(
            [sys.executable, sys.argv[0], way], env=environment, capture_output=True, text=True, check=True
        )
        figures = found[way] = json.loads(done.stdout.splitlines()[-1])
        row = (figures["cpu_ms_per_step"], figures["resident_mb"], figures["peak_mb"])
        print(f"{way:36} {row[0]:12.2f} {row[1]:12.0f} {row[2]:9.0f}", flush=True)
    return found
