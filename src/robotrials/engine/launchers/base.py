"""Who starts and ends worker processes. The coordinator knows workers by name and by message; a launcher knows how."""

from __future__ import annotations

import signal as signals
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from robotrials.machine.limits import shared_memory_remedy


@dataclass(frozen=True)
class WorkerExit:
    """A worker that is gone.

    ``status`` is the exit status of its process, or ``signal`` the number of the signal that killed it; both are None
    where that is not known. ``cause`` is what its launcher knows beyond that, for people. ``log`` is the path of its
    log, ``tail`` the end of it.
    """

    name: str
    log: str
    tail: str = ""
    status: int | None = None
    signal: int | None = None
    cause: str = ""

    @classmethod
    def of_process(cls, name: str, returncode: int, log: str, tail: str) -> WorkerExit:
        """``returncode`` as ``subprocess`` gives it: negative for a signal."""
        if returncode >= 0:
            return cls(name=name, log=log, tail=tail, status=returncode)
        return cls(name=name, log=log, tail=tail, signal=-returncode)

    @property
    def how(self) -> str:
        """How it ended, in words (``killed by SIGKILL``, ``exit status 1``); never to be parsed."""
        if self.cause:
            return self.cause
        if self.signal is not None:
            hint = f"; {shared_memory_remedy()}" if self.signal == signals.SIGBUS else ""
            return f"killed by {_name_of(self.signal)}{hint}"
        return f"exit status {self.status}"


class Launcher(Protocol):
    """Starts workers that connect back to the coordinator's address."""

    def start(self, name: str) -> None:
        """Start the worker ``name``; it greets the coordinator when it is up.

        Raises:
            ConfigError: it cannot be started at all (no such interpreter).
        """

    def exits(self) -> list[WorkerExit]:
        """Workers that ended since the last call, each told once."""

    def unplaced(self) -> Collection[str]:
        """Workers that wait for room before they can start, and are not late."""

    def kill(self, name: str) -> None:
        """End it at once; it will be told by ``exits``."""

    def close(self, grace_s: float) -> None:
        """Wait up to ``grace_s`` for workers that were told to stop, then kill what is left. Leaves no process."""


def _name_of(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
