"""What is written down of one attempt at an episode."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum


class EndReason(str, Enum):
    """Why an episode ended."""

    SUCCESS = "success"
    FAILURE = "failure"  # the benchmark ended it without success
    TIME_LIMIT = "time_limit"
    EXCEPTION = "exception"  # a failure: reset or step raised one of --env.failure_exceptions
    ERROR = "error"


SOLVED_AT_ONCE, ENDED_AT_ONCE, SUCCESS_LOST = "solved_at_once", "ended_at_once", "success_lost"
"""Marks of an episode: success at its first step; ended by the benchmark at its first step, unsolved; success at some
step, and none at the last."""


@dataclass(frozen=True)
class Timings:
    """Where the wall time of an episode went, in seconds. ``render`` is drawing what the policy or a dataset sees,
    ``film`` drawing and encoding the video besides; ``wait`` is waiting for a policy server."""

    reset: float = 0.0
    simulate: float = 0.0
    render: float = 0.0
    infer: float = 0.0
    wait: float = 0.0
    film: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class Signals:
    """What passed between policy and simulator in one episode, for a diagnosis.

    ``action_low`` and ``action_high`` are the smallest and largest number of each dimension of the actions;
    ``saturated`` the share of all numbers at or beyond the task's bounds; ``blank`` the images that had one colour at
    the first look; ``still`` the images and states that never changed.
    """

    action_low: tuple[float, ...] = ()
    action_high: tuple[float, ...] = ()
    saturated: float = 0.0
    blank: tuple[str, ...] = ()
    still: tuple[str, ...] = ()


@dataclass(frozen=True)
class EpisodeRecord:
    """One attempt at one episode.

    ``reward_sum`` and ``reward_max`` are float64 over the steps that were taken, the last included and nothing after
    it; None for an error. ``looks`` counts the policy's calls, ``renders`` the images drawn. ``success`` is None for
    an error: an error is neither success nor failure. ``error`` is also set where an exception meant failure.
    """

    episode: int
    attempt: int
    worker: str
    end: EndReason
    success: bool | None
    steps: int
    reward_sum: float | None
    reward_max: float | None
    looks: int = 0
    renders: int = 0
    timings: Timings = field(default_factory=Timings)
    video: str | None = None
    error: str | None = None
    started_at: float = 0.0
    """Unix time, seconds."""
    signals: Signals | None = None
    """Of the first episodes of each task; the ledger keeps them apart (``Ledger.signals``)."""
    marks: tuple[str, ...] = ()
    """What makes the outcome doubtful; the ledger keeps them apart (``Ledger.marks``)."""
    nonfinite: int = 0
    """Observations in which NaN or infinity was seen: of those that the policy, or a dataset, was given."""

    @property
    def is_error(self) -> bool:
        return self.end is EndReason.ERROR


def error_record(
    episode: int, attempt: int, worker: str, text: str, steps: int = 0, started_at: float | None = None
) -> EpisodeRecord:
    """An attempt that ended in an error, ``text``; ``started_at`` None: now."""
    return EpisodeRecord(
        episode=episode,
        attempt=attempt,
        worker=worker,
        end=EndReason.ERROR,
        success=None,
        steps=steps,
        reward_sum=None,
        reward_max=None,
        error=text,
        started_at=time.time() if started_at is None else started_at,
    )
