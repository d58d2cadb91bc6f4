"""The toy benchmark as workers in containers run it: it tells what it may do there, and can want too much memory."""

from __future__ import annotations

import glob
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from robotrials.benchmarks.base import Env, Observation, StepOutcome
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Session
from tests.toy import Seer, Toy, ToyEnv

MARK = "container: "
"""Begins the line that a worker writes into its log."""


class Contained(Toy):
    """``trouble=hog@task/index``: memory without end at the third step, the first time."""

    def make(self, task: TaskSpec) -> Env:
        sys.stderr.write(MARK + json.dumps(what_it_may()) + "\n")
        return ContainedEnv(self.config)


class ContainedEnv(ToyEnv):
    def step(self, action: np.ndarray) -> StepOutcome:
        if self._step == 2 and self._troubled("hog") and self._first_time_in_run():
            held = []
            while True:
                held.append(np.ones(1 << 20))
        return super().step(action)

    def _first_time_in_run(self) -> bool:
        # The one folder that outlives a container is that of the coordinator's socket.
        (shared,) = (path for path in map(Path, glob.glob("/tmp/robotrials-*")) if (path / "coordinator").exists())
        mark = shared / "hogged"
        if mark.exists():
            return False
        mark.touch()
        return True


class SeesSharedMemory(Seer):
    """In a policy server: refuses observations that did not come through shared memory."""

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        if "memfd:robotrials" not in Path("/proc/self/maps").read_text():
            raise RuntimeError("no shared memory is mapped here")
        return super().act(sessions, observations)


def what_it_may() -> dict[str, object]:
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    return {
        "user": os.getuid(),
        "capabilities": int(status["CapEff"], 16),
        "no_new_privileges": status["NoNewPrivs"],
        "interfaces": sorted(os.listdir("/sys/class/net")),
        "writes": [place for place in ("/", "/usr", "/opt", "/var", "/tmp") if _writes(place)],
        "token": "ROBOTRIALS_TOKEN" in os.environ,
    }


def _writes(place: str) -> bool:
    try:
        Path(place, "probe").write_text("")
    except OSError:
        return False
    return True
