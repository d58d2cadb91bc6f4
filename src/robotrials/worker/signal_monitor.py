"""Watches what passes between policy and simulator in one episode, for the day when nothing succeeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.plan.task import ActionSpec
from robotrials.results.record import Signals

WATCHED_EPISODES = 3
"""The first episodes of each task are watched: what is wrong with all shows in any, and the others cost nothing."""

_EVERY = 8
"""Of an image every eighth row and column are looked at."""


class SignalMonitor:
    """Told of every chunk that is played and of every observation that is looked at; changes neither."""

    def __init__(self, action: ActionSpec) -> None:
        self._low_bound, self._high_bound = np.array(action.low), np.array(action.high)
        self._low = np.full(action.dim, np.inf)
        self._high = np.full(action.dim, -np.inf)
        self._numbers = self._saturated = 0
        self._first: dict[str, np.ndarray] = {}
        self._blank: set[str] = set()
        self._still: set[str] = set()

    def looked(self, observation: Observation) -> None:
        """An observation under the policy's names; of a window the newest."""
        for key, value in observation.items():
            if isinstance(value, str):
                continue
            now = np.array(value[..., ::_EVERY, ::_EVERY, :] if value.dtype == np.uint8 and value.ndim >= 3 else value)
            if key not in self._first:
                self._first[key] = now
                self._still.add(key)
                if value.dtype == np.uint8 and value.size and value.min() == value.max():
                    self._blank.add(key)
            elif key in self._still and not np.array_equal(now, self._first[key]):
                self._still.discard(key)

    def played(self, chunk: np.ndarray) -> None:
        """Actions (T, A)."""
        self._low = np.minimum(self._low, chunk.min(axis=0))
        self._high = np.maximum(self._high, chunk.max(axis=0))
        self._numbers += chunk.size
        self._saturated += int(((chunk <= self._low_bound) | (chunk >= self._high_bound)).sum())

    def signals(self) -> Signals:
        def numbers(array: np.ndarray) -> tuple[float, ...]:
            return tuple(float(x) for x in array) if self._numbers else ()

        return Signals(
            action_low=numbers(self._low),
            action_high=numbers(self._high),
            saturated=self._saturated / self._numbers if self._numbers else 0.0,
            blank=_sorted(self._blank),
            still=_sorted(self._still),
        )


def _sorted(names: Sequence[str] | set[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
