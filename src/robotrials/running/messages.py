"""What coordinator and workers say to each other.

worker                       coordinator
  Hello   ------------------>              who I am, the run's token
          <------------------  Job         benchmark, policy or its server, tasks
  Ready   ------------------>              what the policy needs (checked before any simulator is built)
          <------------------  Lease       one episode
  Done    ------------------>              its record; answered by the next Lease, or by Stop
  Refused ------------------>              the job cannot be done here, and why
  Beat    ------------------>              from a thread of its own, every second: how far the episode is

policy server                coordinator
  Hello   ------------------>
          <------------------  Serve       which policy
  Serving ------------------>              loaded: what it needs, and where workers reach it
  Refused, Beat                            as above
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import PolicySpec
from robotrials.results.record import EpisodeRecord
from robotrials.wire.envelope import Message, Vocabulary


@dataclass(frozen=True)
class Hello(Message):
    kind: ClassVar[str] = "hello"
    worker: str
    pid: int
    host: str
    token: str


@dataclass(frozen=True)
class Job(Message):
    """All a worker must know before its first episode. ``server`` is where its policy lives, None: in the worker.
    ``run_dir`` is where videos go. ``kept_cameras``: every episode is kept for a dataset, with these; None: it is not.
    """

    kind: ClassVar[str] = "job"
    env: EnvChoice
    policy: PolicyChoice
    server: str | None
    tasks: tuple[TaskSpec, ...]
    rename_map: Mapping[str, str]
    run_dir: str
    record_fps: float
    beat_every: float
    kept_cameras: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Ready(Message):
    kind: ClassVar[str] = "ready"
    worker: str
    policy: PolicySpec
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Serve(Message):
    """``exact`` as ``--eval.exact``."""

    kind: ClassVar[str] = "serve"
    policy: PolicyChoice
    exact: bool
    beat_every: float


@dataclass(frozen=True)
class Serving(Message):
    """``about`` is what the policy tells of itself, for run.json."""

    kind: ClassVar[str] = "serving"
    worker: str
    policy: PolicySpec
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Refused(Message):
    """``expected`` tells an error that names what the user must change from one that surprised the worker."""

    kind: ClassVar[str] = "refused"
    worker: str
    reason: str
    expected: bool


@dataclass(frozen=True)
class Lease(Message):
    """``record``: ``no``, ``yes`` or ``on_failure``; ``video`` is the file's path within the run directory."""

    kind: ClassVar[str] = "lease"
    lease: int
    episode: EpisodeSpec
    attempt: int
    record: str
    video: str


@dataclass(frozen=True)
class Done(Message):
    """``retryable`` is false for errors that trying again cannot mend; ``at_start`` when no step had succeeded.
    ``note`` is for the person at the terminal, about an episode that counts all the same."""

    kind: ClassVar[str] = "done"
    lease: int
    record: EpisodeRecord
    retryable: bool = True
    at_start: bool = False
    note: str | None = None


@dataclass(frozen=True)
class Beat(Message):
    """``count`` grows with every step, reset and policy call; a count that stands still is a hang."""

    kind: ClassVar[str] = "beat"
    worker: str
    token: str
    lease: int
    count: int
    phase: str
    step: int


@dataclass(frozen=True)
class Stop(Message):
    kind: ClassVar[str] = "stop"
    reason: str


WORKER_TALK = Vocabulary(Hello, Job, Serve, Serving, Ready, Refused, Lease, Done, Beat, Stop)
"""All that is said between a coordinator and its workers."""
