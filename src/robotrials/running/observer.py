"""What a run tells whoever watches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class TaskProgress:
    suite: str
    task: str
    planned: int
    done: int
    successes: int
    errors: int


@dataclass(frozen=True)
class Progress:
    """A run at one instant. ``seconds`` sums the wall time of all episodes by where it went (reset, simulate, render,
    infer, wait); ``eta_s`` is None while nothing has finished."""

    planned: int
    done: int
    successes: int
    failures: int
    errors: int
    running: int
    workers: int
    elapsed_s: float
    eta_s: float | None
    seconds: Mapping[str, float]
    per_task: Sequence[TaskProgress]


class Observer(Protocol):
    """A display, a logger, a test. Called in the coordinator's thread: return soon."""

    def on_progress(self, snapshot: Progress) -> None: ...

    def on_message(self, text: str) -> None: ...


class SilentObserver:
    """Watches without a word."""

    def on_progress(self, snapshot: Progress) -> None:
        pass

    def on_message(self, text: str) -> None:
        pass
