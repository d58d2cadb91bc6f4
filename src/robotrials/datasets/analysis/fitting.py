"""Mixtures fitted one after the other, or by several processes where there is enough to do.

Fitting holds Python's lock for most of its time, so threads would not help. Each further process is this module with
its pipes: a line of JSON and an array's bytes in, a line of JSON out. Which process fits what changes no number, since
every job brings its own seed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import IO

import numpy as np

from robotrials.datasets.analysis.mixture import Mixture, fit_mixture, single_thread

log = logging.getLogger("robotrials.datasets.analysis.fitting")  # the name, since this module runs as __main__

_WORTH_S = 8.0
"""Further processes start when so much is left to compute: each takes some two seconds to import what it needs."""


@dataclass(frozen=True)
class FittingJob:
    """Choose the mixture of ``features`` (N, C, J), floats, from ``starts`` starts for each candidate."""

    features: np.ndarray
    seed: tuple[int, ...]
    starts: int

    def run(self) -> Mixture:
        return fit_mixture(self.features, np.random.default_rng(self.seed), self.starts)


class Fitters:
    """``processes`` of them, this one included; the others start when they are worth it and end with the context."""

    def __init__(self, processes: int = 1) -> None:
        self._more = processes - 1
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Fitters:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for child in self._children:
            child.kill()
        for child in self._children:
            with child:  # closes its pipes and waits
                pass
        self._children = []

    def fit(self, jobs: Sequence[FittingJob]) -> list[Mixture]:
        """The mixture of each job, in their order."""
        done: dict[int, Mixture] = {}
        todo = deque(enumerate(jobs))
        with single_thread():
            while todo and not self._children:
                began = time.monotonic()
                _next(todo, done)
                if self._more and len(todo) * (time.monotonic() - began) > _WORTH_S:
                    self._children = [_start() for _ in range(self._more)]
            if todo:
                self._share(todo, done)
            for lost in [number for number in range(len(jobs)) if number not in done]:  # with a process that ended
                done[lost] = jobs[lost].run()
        return [done[number] for number in range(len(jobs))]

    def _share(self, todo: deque[tuple[int, FittingJob]], done: dict[int, Mixture]) -> None:
        with ThreadPoolExecutor(len(self._children)) as threads:
            try:
                fed = [threads.submit(_feed, child, todo, done) for child in self._children]
                while todo:
                    _next(todo, done)
                for one in fed:
                    one.result()
            finally:
                todo.clear()  # interrupted: nobody takes another
        self._children = [child for child in self._children if child.poll() is None]
        self._more = len(self._children)


def _next(todo: deque[tuple[int, FittingJob]], done: dict[int, Mixture]) -> None:
    with contextlib.suppress(IndexError):  # another took the last one
        number, job = todo.popleft()
        done[number] = job.run()


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "robotrials.datasets.analysis.fitting"]
    alone = {**os.environ, "PYTHONSAFEPATH": "1"}  # a module of the same name in this folder is not ours
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=alone)


def _feed(child: subprocess.Popen[bytes], todo: deque[tuple[int, FittingJob]], done: dict[int, Mixture]) -> None:
    """Let ``child`` fit until nothing is left to do, or it ends."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        while True:
            number, job = todo.popleft()
            features = np.ascontiguousarray(job.features)
            head = {"dtype": features.dtype.str, "shape": features.shape, "seed": job.seed, "starts": job.starts}
            child.stdin.write(json.dumps(head).encode() + b"\n" + features.tobytes())
            child.stdin.flush()
            answer = child.stdout.readline()
            if not answer:
                raise BrokenPipeError
            told = json.loads(answer)
            done[number] = Mixture(**{**told, "bic": tuple(told["bic"])})
    except IndexError:
        return
    except BrokenPipeError:
        log.warning("a process that fitted mixtures ended with status %s; this one does its share", child.wait())


def answer_jobs(asked: IO[bytes], told: IO[bytes]) -> None:
    """Fit what is asked for until the other end closes."""
    with single_thread():
        while line := asked.readline():
            head = json.loads(line)
            shape, dtype = tuple(head["shape"]), np.dtype(head["dtype"])
            features = np.frombuffer(asked.read(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
            mixture = FittingJob(features, tuple(head["seed"]), head["starts"]).run()
            told.write(json.dumps(asdict(mixture)).encode() + b"\n")
            told.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's; who started this one ends it
    answer_jobs(sys.stdin.buffer, sys.stdout.buffer)
