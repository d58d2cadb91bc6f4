"""Running totals of a run: what the live display shows. Constant memory, however many episodes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from robotrials.plan.plan import Plan
from robotrials.results.record import EpisodeRecord
from robotrials.running.observer import Progress, TaskProgress


@dataclass
class _TaskCount:
    planned: int = 0
    done: int = 0
    successes: int = 0
    errors: int = 0


class Tally:
    """Counts accepted records: those of earlier runs by ``recall``, those of this one by ``add``."""

    def __init__(self, plan: Plan) -> None:
        self._task_keys = {episode.id: (episode.suite, episode.task) for episode in plan}
        self._counts: dict[tuple[str, str], _TaskCount] = {}
        for key in self._task_keys.values():
            self._counts.setdefault(key, _TaskCount()).planned += 1
        self._seconds = dict.fromkeys(("reset", "simulate", "render", "infer", "wait"), 0.0)
        self._began = time.monotonic()
        self._first_lease: float | None = None
        self._added = 0
        self.done = 0
        self.successes = 0
        self.errors = 0

    @property
    def finished(self) -> int:
        """Episodes with an outcome: success or failure, not error."""
        return self.done - self.errors

    def recall(self, record: EpisodeRecord) -> None:
        count = self._counts[self._task_keys[record.episode]]
        count.done += 1
        count.successes += bool(record.success)
        count.errors += record.is_error
        self.done += 1
        self.successes += bool(record.success)
        self.errors += record.is_error
        for name in self._seconds:
            self._seconds[name] += getattr(record.timings, name)

    def add(self, record: EpisodeRecord) -> None:
        self.recall(record)
        self._added += 1

    def leased(self) -> None:
        """An episode was handed out: the clock for the time left starts with the first."""
        if self._first_lease is None:
            self._first_lease = time.monotonic()

    @property
    def since_first_lease_s(self) -> float:
        """Seconds since an episode was first handed out; 0 before."""
        return 0.0 if self._first_lease is None else time.monotonic() - self._first_lease

    def snapshot(self, running: int, workers: int) -> Progress:
        now = time.monotonic()
        planned = len(self._task_keys)
        eta = None
        if self._added and self._first_lease is not None:
            eta = self.since_first_lease_s / self._added * (planned - self.done)
        return Progress(
            planned=planned,
            done=self.done,
            successes=self.successes,
            failures=self.done - self.successes - self.errors,
            errors=self.errors,
            running=running,
            workers=workers,
            elapsed_s=now - self._began,
            eta_s=eta,
            seconds=dict(self._seconds),
            per_task=[
                TaskProgress(suite, task, c.planned, c.done, c.successes, c.errors)
                for (suite, task), c in self._counts.items()
            ],
        )
