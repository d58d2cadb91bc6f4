"""What one episode is: a pure function of the configuration, never of a worker, a batch or an order."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """One episode of the plan.

    ``id`` is its position in the whole plan, ``index`` its number within the task (from 0), ``seed`` what the
    simulator is seeded with (lerobot-eval's rule: base seed + index, for every task), ``init_state`` the number of
    the stored initial state where the benchmark has such, ``max_steps`` the step limit.
    """

    id: int
    suite: str
    task: str
    index: int
    seed: int
    init_state: int | None
    max_steps: int

    @property
    def name(self) -> str:
        """``suite/task/index``: how messages and file names call this episode."""
        return f"{self.suite}/{self.task}/{self.index}"

    def rng(self, stream: str) -> np.random.Generator:
        """A generator that depends on this episode and on ``stream`` alone (``"policy"``, ``"noise"``, ...).

        Two streams of one episode, and one stream of two tasks that share a seed, are independent.
        """
        words = [self.seed, zlib.crc32(f"{self.suite}/{self.task}".encode()), zlib.crc32(stream.encode())]
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))
