"""The workers of a run: those it starts, and replaces when they die, and those that join and leave as they like."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from robotrials.control.messages import Beat
from robotrials.engine.launchers.base import Launcher, WorkerExit
from robotrials.engine.worker_table import WorkerEntry, WorkerState, WorkerTable


@dataclass(frozen=True)
class WorkerLayout:
    """How many workers a run starts, ``scenes`` of them in each process while there are so many."""

    n_workers: int
    scenes: int = 1

    @property
    def n_processes(self) -> int:
        return -(-self.n_workers // self.scenes)

    def scenes_of(self, process: int) -> int:
        """Workers in process number ``process``."""
        return min(self.scenes, self.n_workers - process * self.scenes)


class WorkerPool:
    """Starts and ends workers, and knows which are there.

    A worker that was killed or lost stays in the roster until ``exits`` tells of it, so that its leases are taken back
    once. One that joined has no process here to wait for: it counts as gone when it is told to stop, says that it
    leaves, or has been silent for too long.
    """

    def __init__(self, launcher: Launcher, step_timeout: float, crew: WorkerLayout, at_once: int | None = None) -> None:
        """At most ``at_once`` processes are starting at a time (None: all): importing a simulator takes seconds of a
        core, and a policy server that loads needs one of them more."""
        self._launcher = launcher
        self._crew = crew
        self._to_start = deque(range(crew.n_processes))
        self._at_once = at_once or crew.n_processes
        self._departed: list[WorkerExit] = []
        self.table = WorkerTable(step_timeout)

    def __iter__(self) -> Iterator[WorkerEntry]:
        return iter(self.table)

    def start(self) -> None:
        """Start those of the run's own whose turn it is; to be called again and again.

        Raises:
            ConfigError: they cannot be started.
        """
        if not self._to_start:
            return
        starting = len({entry.process for entry in self.table if entry.state is WorkerState.STARTING})
        while self._to_start and starting < self._at_once:
            number = self._to_start.popleft()
            entries = self.table.enlist(number, self._crew.scenes_of(number), number * self._crew.scenes)
            self._launcher.start(entries[0].process)
            starting += 1

    @property
    def is_starting(self) -> bool:
        """Whether a process is on its way, or will be: one that is to start, starts, or ends and is replaced."""
        on_the_way = (WorkerState.STARTING, WorkerState.WAITING, WorkerState.LOADING, WorkerState.ENDING)
        return bool(self._to_start) or any(entry.state in on_the_way for entry in self.table)

    def replace(self, gone: WorkerEntry) -> None:
        """Another process shall start in the place of one that has died; who joined is not replaced from here."""
        if not gone.joined and gone.process_slot not in self._to_start:
            self._to_start.append(gone.process_slot)

    def beat(self, beat: Beat) -> bool:
        """Take note of a sign of life; False from a worker that is none of this run, or not any more."""
        self.table.beat(beat)
        entry = self.table.by_name(beat.worker)
        return entry is not None and entry.state is not WorkerState.ENDING

    def kill(self, entry: WorkerEntry, reason: str) -> None:
        """End it at once, and with it whoever shares its process. One that joined is told to stop by the answer to its
        next beat."""
        if entry.state is WorkerState.ENDING:
            return
        entry.killed_because = reason
        self.table.enter(entry, WorkerState.ENDING)
        if entry.joined:
            self._departed.append(WorkerExit(entry.name, log="its own output", cause=reason))
            return
        for other in self.table.of_process(entry.process):
            if other.state is not WorkerState.ENDING:
                other.killed_because = f"its process was ended with worker {entry.name}: {reason}"
                self.table.enter(other, WorkerState.ENDING)
        self._launcher.kill(entry.process)

    def kill_hung_and_lost(self) -> None:
        self.table.wait_for_room(self._launcher.unplaced())
        for entry, reason in (*self.table.hung(), *self.table.lost()):
            self.kill(entry, reason)

    def exits(self) -> list[WorkerExit]:
        """Workers that ended since the last call, each told once."""
        departed, self._departed = self._departed, []
        ended = [
            replace(gone, name=entry.name)
            for gone in self._launcher.exits()
            for entry in self.table.of_process(gone.name)
        ]
        return [*departed, *ended]

    def close(self, stop: Callable[[WorkerEntry], None], graceful: bool) -> None:
        """Tell all to ``stop``; of its own, kill at once what cannot be told, or everything where nothing is worth
        waiting for. Leaves no process of its own."""
        for entry in self.table:
            # One that has not said hello yet would wait for an answer until the grace is over.
            if entry.identity is not None and (graceful or entry.joined):
                stop(entry)
            else:
                self._launcher.kill(entry.process)
        self._launcher.close(grace_s=10.0 if graceful else 0.0)
