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
class Underway:
    """What happens while no episode ends. ``stage`` says in words what is loaded or built, ``stage_s`` for how long;
    empty while episodes are played. Of those in flight, the one that is farthest is at ``step`` of ``step_limit``."""

    stage: str = ""
    stage_s: float = 0.0
    step: int = 0
    step_limit: int = 0


@dataclass(frozen=True)
class Progress:
    """A run at one instant. ``seconds`` sums the wall time of all episodes by where it went (``Timings``); ``eta_s`` is
    None while nothing has finished."""

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
    underway: Underway = Underway()


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
