"""What a run is doing while no episode ends: what is loaded, and how far the episodes in flight are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from robotrials.engine.observer import Underway
from robotrials.engine.time_left import Playing
from robotrials.engine.worker_table import WorkerEntry, WorkerState
from robotrials.plan.plan import Plan

_STAGES = {"build": "building the first scenes", "reset": "resetting the first scenes"}


class UnderwayWatch:
    """Looks at workers and policy servers, and remembers since when the run is at its present stage."""

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = {episode.id: episode.max_steps for episode in plan}
        self._clock = clock
        self._stage = ""
        self._since = clock()

    def playing(self, workers: Iterable[WorkerEntry]) -> list[Playing]:
        """The episodes in flight."""
        now = self._clock()
        return [
            Playing(entry.leases[0].episode.id, now - entry.playing_since, entry.step)
            for entry in workers
            if entry.state is WorkerState.BUSY and entry.leases
        ]

    def look(self, workers: Iterable[WorkerEntry], servers_load: bool) -> Underway:
        """``servers_load``: a policy server is not up yet."""
        entries = list(workers)
        playing = self.playing(entries)
        stage, now = _stage(entries, playing, servers_load), self._clock()
        if stage != self._stage:
            self._stage, self._since = stage, now
        farthest = max(playing, key=lambda one: one.step / max(1, self._limits[one.episode]), default=None)
        if farthest is None:
            return Underway(stage, now - self._since)
        return Underway(stage, now - self._since, farthest.step, self._limits[farthest.episode])


def _stage(entries: list[WorkerEntry], playing: list[Playing], servers_load: bool) -> str:
    """Empty once an episode has made its first step."""
    if playing:
        phases = {entry.phase for entry in entries if entry.state is WorkerState.BUSY}
        known = [words for phase, words in _STAGES.items() if phase in phases]
        return known[0] if known and all(one.step == 0 for one in playing) else ""
    states = {entry.state for entry in entries}
    if servers_load:
        return "loading the policy"
    if WorkerState.LOADING in states:
        return "loading the policy and the benchmark"
    return "starting workers" if WorkerState.STARTING in states else ""
