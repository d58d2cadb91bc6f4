"""The policy servers of a run: started before the workers, watched like them, replaced when they die."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from robotrials.control.messages import Serve
from robotrials.engine.launchers.base import Launcher, WorkerExit
from robotrials.engine.worker_table import WorkerEntry, WorkerState, WorkerTable
from robotrials.plan.config import PolicyChoice


@dataclass(frozen=True)
class ServerOptions:
    """Which policy, and where each server listens: one address a server."""

    policy: PolicyChoice
    exact: bool
    addresses: tuple[str, ...]
    beat_every: float
    step_timeout: float
    far: bool = False
    """The run's own workers are on other machines too."""


class ServerPool:
    """One server for each address. Workers are spread over them by slot."""

    def __init__(self, terms: ServerOptions, launcher: Launcher) -> None:
        self._terms = terms
        self._launcher = launcher
        self.table = WorkerTable(terms.step_timeout, prefix="s")
        self._elsewhere: dict[int, str] = {}

    def __iter__(self) -> Iterator[WorkerEntry]:
        return iter(self.table)

    @property
    def is_ready(self) -> bool:
        """Every server has its policy loaded."""
        serving = [entry for entry in self.table if entry.state is WorkerState.SERVING]
        return len(serving) == len(self._terms.addresses)

    def start(self) -> None:
        for slot in range(len(self._terms.addresses)):
            self._start(slot)

    def job(self) -> Serve:
        return Serve(self._terms.policy, self._terms.exact, self._terms.beat_every)

    def address_for(self, worker: WorkerEntry) -> str:
        """The server of the worker in its slot: always the same, so that a restarted one finds it again. Workers that
        joined may be elsewhere, where the socket beside the coordinator's cannot be reached."""
        slot = worker.slot % len(self._terms.addresses)
        address = self._terms.addresses[slot]
        return self._elsewhere.get(slot, address) if worker.joined or self._terms.far else address

    def serves(self, entry: WorkerEntry, elsewhere: str | None) -> None:
        """A server has loaded its policy; ``elsewhere`` is its address for other machines."""
        self.table.enter(entry, WorkerState.SERVING)
        if elsewhere is not None:
            self._elsewhere[entry.slot] = elsewhere

    def hung(self) -> list[tuple[WorkerEntry, str]]:
        """Servers whose policy has stood still for too long, each with the reason."""
        self.table.wait_for_room(self._launcher.unplaced())
        return self.table.hung()

    def exits(self) -> list[WorkerExit]:
        return self._launcher.exits()

    def replace(self, gone: WorkerEntry) -> None:
        """Start another server in the place of one that has died."""
        self._start(gone.slot)

    def kill(self, entry: WorkerEntry, reason: str) -> None:
        entry.killed_because = reason
        self.table.enter(entry, WorkerState.ENDING)
        self._launcher.kill(entry.name)

    def close(self) -> None:
        """End them all: a server has nothing to lose."""
        for entry in self.table:
            self._launcher.kill(entry.name)
        self._launcher.close(grace_s=0.0)

    def _start(self, slot: int) -> None:
        for entry in self.table.enlist(slot):
            self._launcher.start(entry.process)
