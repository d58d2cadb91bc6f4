"""Who starts and ends worker processes. The coordinator knows workers by name and by message; a launcher knows how."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class WorkerExit:
    """A worker that is gone. ``how`` is for people (``killed by SIGKILL``, ``exit status 1``)."""

    name: str
    how: str
    log: str
    log_tail: str


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
