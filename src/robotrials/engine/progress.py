"""Running totals of a run: what the live display shows. Constant memory, however many episodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from robotrials.engine.observer import Progress, TaskProgress, Underway
from robotrials.engine.time_left import Playing, TimeLeft
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan
from robotrials.results.record import EpisodeRecord
from robotrials.results.summary import PARTS


@dataclass
class _TaskCount:
    planned: int = 0
    done: int = 0
    successes: int = 0
    errors: int = 0


class Tally:
    """Counts accepted records: those of earlier runs by ``recall``, those of this one by ``add``."""

    def __init__(self, plan: Plan, is_filmed: Callable[[EpisodeSpec], bool] = lambda episode: False) -> None:
        self._task_keys = {episode.id: (episode.suite, episode.task) for episode in plan}
        self._counts: dict[tuple[str, str], _TaskCount] = {}
        for key in self._task_keys.values():
            self._counts.setdefault(key, _TaskCount()).planned += 1
        self._seconds = dict.fromkeys(PARTS, 0.0)
        self._began = time.monotonic()
        self._time_left = TimeLeft(plan, is_filmed)
        self.done = 0
        self.successes = 0
        self.errors = 0

    @property
    def finished(self) -> int:
        """Episodes with an outcome: success or failure, not error."""
        return self.done - self.errors

    def recall(self, record: EpisodeRecord) -> None:
        """Count a record of an earlier session."""
        self.add(record)
        if not record.is_error:
            self._time_left.learn(record.episode, record.timings)

    def add(self, record: EpisodeRecord) -> None:
        """Count a record; how long it took is told by ``played``."""
        count = self._counts[self._task_keys[record.episode]]
        count.done += 1
        count.successes += bool(record.success)
        count.errors += record.is_error
        self.done += 1
        self.successes += bool(record.success)
        self.errors += record.is_error
        for name in self._seconds:
            self._seconds[name] += getattr(record.timings, name)
        self._time_left.settled(record.episode)

    def played(self, record: EpisodeRecord, seconds: float) -> None:
        """An episode without an error kept a worker for ``seconds``."""
        self._time_left.learn(record.episode, record.timings, seconds)

    def snapshot(self, playing: Sequence[Playing], workers: int, underway: Underway | None = None) -> Progress:
        """``playing`` are the episodes in flight, which ``workers`` share."""
        now = time.monotonic()
        planned = len(self._task_keys)
        at_work = min(workers, planned - self.done)
        return Progress(
            planned=planned,
            done=self.done,
            successes=self.successes,
            failures=self.done - self.successes - self.errors,
            errors=self.errors,
            running=len(playing),
            workers=workers,
            elapsed_s=now - self._began,
            eta_s=self._time_left.estimate(playing, at_work),
            seconds=dict(self._seconds),
            per_task=[
                TaskProgress(suite, task, c.planned, c.done, c.successes, c.errors)
                for (suite, task), c in self._counts.items()
            ],
            underway=underway or Underway(),
        )
