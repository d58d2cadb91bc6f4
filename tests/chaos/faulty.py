"""The toy benchmark and its policies with faults below Python: native code that hangs, memory that runs out."""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Session
from tests.toy import Seer, Toy, ToyEnv

_A_LEAK = 64 * 2**20
_ROOM = 200 * 2**20
"""Three leaks fit, the fourth does not."""


class Faulty(Toy):
    """More kinds of ``trouble``: ``sleep_once`` and ``gil_once`` hang in native code, without and with Python's lock;
    ``leak`` is memory that an episode does not give back, under a limit; ``memory_once`` one allocation too large."""

    def make(self, task: TaskSpec) -> Env:
        super().make(task)
        return FaultyEnv(self.config)


class FaultyEnv(ToyEnv):
    def _maybe_fail(self) -> None:
        super()._maybe_fail()
        if self._step != 3:
            return
        if self._troubled("sleep_once") and self._first_time():
            ctypes.CDLL(None).sleep(3600)
        if self._troubled("gil_once") and self._first_time():
            ctypes.PyDLL(None).sleep(3600)
        if self._troubled("memory_once") and self._first_time():
            np.ones(2**50, np.uint8)
        if self._troubled("leak"):
            _leak()


def _leak() -> None:
    """As a simulator in C++ does whose allocation fails: std::bad_alloc, which nobody catches, aborts the process."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + _ROOM
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    if libc.malloc(ctypes.c_size_t(_A_LEAK)) is None:
        os.abort()


class RaisesOnTwo(Seer):
    """Cannot act in the third episode of any task (index 2). It finds out while the rows before have drawn noise."""

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        chunks = []
        for session, observation in zip(sessions, observations, strict=True):
            if session.episode.index == 2:
                raise RuntimeError("no plan for episode two")
            chunks.append(super().act([session], [observation]))
        return np.concatenate(chunks)
