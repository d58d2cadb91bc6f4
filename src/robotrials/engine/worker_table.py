"""The workers of a run as the coordinator sees them, and the watchdog that finds the one that hangs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum

from robotrials.control.messages import Beat, scene_names
from robotrials.engine.queue import LeasedEpisode
from robotrials.errors import WireError


class WorkerState(Enum):
    """What the coordinator may send a worker next."""

    STARTING = "starting"  # process started, no Hello yet
    WAITING = "waiting"  # greeted; the policy server is not up yet
    LOADING = "loading"  # has the job, no Ready yet
    IDLE = "idle"  # waits for a lease
    BUSY = "busy"  # holds a lease
    SERVING = "serving"  # a policy server that is up
    ENDING = "ending"  # told to stop, or killed


_NEXT: dict[WorkerState, tuple[WorkerState, ...]] = {
    WorkerState.STARTING: (WorkerState.WAITING, WorkerState.LOADING),
    WorkerState.WAITING: (WorkerState.LOADING,),
    WorkerState.LOADING: (WorkerState.IDLE, WorkerState.SERVING),
    WorkerState.IDLE: (WorkerState.IDLE, WorkerState.BUSY),
    WorkerState.BUSY: (WorkerState.IDLE, WorkerState.BUSY),
    WorkerState.SERVING: (),
    WorkerState.ENDING: (),
}
"""What may follow each state, besides ``ENDING``, which may follow any."""


class WorkerStateError(WireError):
    """Raised when a worker would enter a state that cannot follow its own: it has said something out of order."""


@dataclass
class WorkerEntry:
    """``slot`` is the worker's number among all; ``process`` the name of its process, which it may share with the
    workers of other scenes, and ``process_slot`` that one's number."""

    name: str
    slot: int
    process: str
    process_slot: int
    state: WorkerState = WorkerState.STARTING
    identity: bytes | None = None
    count: int = -1
    phase: str = "start"
    step: int = 0
    moved_at: float = field(default_factory=time.monotonic)
    leases: list[LeasedEpisode] = field(default_factory=list)
    """In the order given: the first is being played, another one waits with the worker."""
    playing_since: float = 0.0
    """When it began the first of its leases."""
    was_ready: bool = False
    killed_because: str | None = None
    joined: bool = False
    """Started by somebody else: it may leave, and is known to be gone only by its silence."""
    apart: bool = False
    """It learns only from answers to its beats that the coordinator lives, and wants it."""
    heard_at: float = field(default_factory=time.monotonic)

    def moved(self, now: float) -> None:
        self.moved_at = now


class WorkerTable:
    """All workers that are or should be alive, at most one per slot."""

    START_LIMIT_S = 600.0
    """Importing a simulator from a cold network disk is slow; longer than this is a hang."""
    LOST_AFTER_S = 60.0
    """A worker that joined and has not been heard of for so long is gone; a network may be cut for less."""

    def __init__(self, step_timeout: float, prefix: str = "w", clock: Callable[[], float] = time.monotonic) -> None:
        self._prefix = prefix
        self._step_timeout = step_timeout
        self._clock = clock
        self._by_name: dict[str, WorkerEntry] = {}
        self._by_identity: dict[bytes, WorkerEntry] = {}
        self._generations: dict[int, int] = {}

    def __iter__(self) -> Iterator[WorkerEntry]:
        return iter(list(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def enlist(self, slot: int, n_scenes: int = 1, first: int | None = None) -> list[WorkerEntry]:
        """The workers of a new process for ``slot``: w3, and w3.2 when that has died; the first of them is worker
        ``first`` of all (None: as ``slot``)."""
        generation = self._generations.get(slot, 0) + 1
        self._generations[slot] = generation
        process = f"{self._prefix}{slot}" + ("" if generation == 1 else f".{generation}")
        first, now = slot if first is None else first, self._clock()
        entries = [
            WorkerEntry(name, first + scene, process, slot, moved_at=now)
            for scene, name in enumerate(scene_names(process, n_scenes))
        ]
        self._by_name.update({entry.name: entry for entry in entries})
        return entries

    def admit(self, name: str, identity: bytes, process: str = "") -> WorkerEntry | None:
        """A worker that joins by itself, in a ``process`` that it may share; None if its name is taken. Its slot is the
        first that is free."""
        if name in self._by_name:
            return None
        taken = {entry.slot for entry in self._by_name.values()}
        slot = next(number for number in itertools.count() if number not in taken)
        now = self._clock()
        entry = WorkerEntry(
            name, slot, process or name, slot, identity=identity, moved_at=now, heard_at=now, joined=True
        )
        entry.apart = True
        self._by_name[name] = entry
        self._by_identity[identity] = entry
        return entry

    def greet(self, name: str, identity: bytes) -> WorkerEntry | None:
        """The worker ``name`` has said hello from ``identity``; None if nobody of that name is expected."""
        entry = self._by_name.get(name)
        if entry is None or entry.state is not WorkerState.STARTING:
            return None
        entry.identity = identity
        self._by_identity[identity] = entry
        return entry

    def by_identity(self, identity: bytes) -> WorkerEntry | None:
        return self._by_identity.get(identity)

    def by_name(self, name: str) -> WorkerEntry | None:
        return self._by_name.get(name)

    def remove(self, name: str) -> WorkerEntry | None:
        """The worker is gone, and nothing may be given to it any more, by whoever still knows its entry."""
        entry = self._by_name.pop(name, None)
        if entry is not None:
            entry.state = WorkerState.ENDING
        if entry is not None and entry.identity is not None:
            self._by_identity.pop(entry.identity, None)
        return entry

    def enter(self, entry: WorkerEntry, state: WorkerState) -> None:
        """
        Raises:
            WorkerStateError: ``state`` cannot follow the one that the worker is in.
        """
        if state is not WorkerState.ENDING and state not in _NEXT[entry.state]:
            raise WorkerStateError(f"worker {entry.name} cannot become {state.value} while it is {entry.state.value}")
        entry.state = state
        entry.moved(self._clock())
        if state is WorkerState.SERVING:
            entry.heard_at = entry.moved_at  # loading may have kept its heart from beating

    def beat(self, beat: Beat) -> None:
        """Take note of a heartbeat: only a count that grew is a sign of life."""
        entry = self._by_name.get(beat.worker)
        if entry is None:
            return
        entry.heard_at = self._clock()
        if beat.count != entry.count:
            entry.count, entry.phase, entry.step = beat.count, beat.phase, beat.step
            entry.moved(entry.heard_at)

    def of_process(self, process: str) -> list[WorkerEntry]:
        return [entry for entry in self._by_name.values() if entry.process == process]

    def wait_for_room(self, processes: Collection[str]) -> None:
        """Those have not been given a place to start at: they are not late."""
        now = self._clock()
        for entry in self._by_name.values():
            if entry.process in processes:
                entry.moved(now)

    def forgive(self) -> None:
        """The coordinator itself stood still (a suspended laptop, SIGSTOP): nobody is to blame for the silence."""
        now = self._clock()
        for entry in self._by_name.values():
            entry.moved(now)
            entry.heard_at = now

    def lost(self) -> list[tuple[WorkerEntry, str]]:
        """Workers that joined and have gone silent, each with the reason."""
        now = self._clock()
        silent = [(entry, now - entry.heard_at) for entry in self._by_name.values() if entry.joined]
        return [
            (entry, f"worker {entry.name} was lost (not heard of for {gone:.0f} s)")
            for entry, gone in silent
            if gone > self.LOST_AFTER_S
        ]

    def hung(self) -> list[tuple[WorkerEntry, str]]:
        """Workers whose count has stood still for too long, each with the reason."""
        now, found = self._clock(), []
        for entry in self._by_name.values():
            still = now - entry.moved_at
            busy = entry.state is WorkerState.BUSY or (entry.state is WorkerState.SERVING and entry.phase == "infer")
            if busy and still > self._step_timeout:
                found.append(
                    (
                        entry,
                        f"hung: no progress for {still:.0f} s in phase {entry.phase} at step {entry.step} "
                        f"(--eval.step_timeout={self._step_timeout:g})",
                    )
                )
            elif entry.state is WorkerState.SERVING and now - entry.heard_at > self._step_timeout:
                # Idle or not: workers would wait for one that is stopped until each of them counted as hung.
                silent = now - entry.heard_at
                found.append(
                    (entry, f"no sign of life for {silent:.0f} s (--eval.step_timeout={self._step_timeout:g})")
                )
            elif entry.state in (WorkerState.STARTING, WorkerState.LOADING) and still > self.START_LIMIT_S:
                found.append((entry, f"did not start within {self.START_LIMIT_S:.0f} s"))
        return found
