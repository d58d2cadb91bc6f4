"""What coordinator and workers say to each other.

worker                       coordinator
  Hello   ------------------>              who I am, the run's token
          <------------------  Job         benchmark, policy or its server, tasks
  Ready   ------------------>              what the policy needs (checked before any simulator is built)
          <------------------  Lease       one episode
  Done    ------------------>              its record; answered by the next Lease, or by Stop
  Refused ------------------>              the job cannot be done here, and why
  Beat    ------------------>              from a thread of its own, every second: how far the episode is
  Artifact ----------------->              a part of a file that the episode made, where no disk is shared; before Done
  Leaving ------------------>              a worker that joined by itself goes; its leases are free again
          <------------------  Alive       answers the Beat of a worker that is apart; Stop if it is not wanted any more

policy server                coordinator
  Hello   ------------------>
          <------------------  Serve       which policy
  Serving ------------------>              loaded: what it needs, and where workers reach it
  Refused, Beat                            as above
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import PolicySpec
from robotrials.results.record import EpisodeRecord
from robotrials.wire.envelope import Message, Vocabulary

REASON = ": "
"""Between an episode and the reason in the note of its ``Done``."""
SESSION_FILE = ".session"
"""In a run directory: holds ``Job.session`` while a session of the run is on."""


class Fault(Enum):
    """Whose an error may be, as far as it can be told where it was raised."""

    EPISODE = "episode"  # the environment's, or that of a policy in the worker
    PROCESS = "process"  # the worker's process has used up what it may have: descriptors, memory, threads
    SCENES = "scenes"  # all scenes of the process failed at once
    POLICY = "policy"  # the policy raised in its server, or that answered what makes no sense
    CONNECTION = "connection"  # the policy's server died, or cannot be reached


def scene_names(process: str, n_scenes: int) -> list[str]:
    """The workers in a process: itself, or w3-0, w3-1, ... in process w3 where its simulator has several scenes."""
    return [process] if n_scenes == 1 else [f"{process}-{scene}" for scene in range(n_scenes)]


@dataclass(frozen=True)
class Hello(Message):
    """``joins``: started by somebody else than the coordinator, who expects nobody of that name. ``apart``: out of
    reach of its kernel (another machine, a container), so that each hears of the other only through messages.
    ``process``: what all workers say that share one, and with it a simulator that has one task at a time."""

    kind: ClassVar[str] = "hello"
    worker: str
    pid: int
    host: str
    token: str
    joins: bool = False
    apart: bool = False
    process: str = ""


@dataclass(frozen=True)
class Job(Message):
    """All a worker must know before its first episode. ``server`` is where its policy lives, None: in the worker.
    ``run_dir`` is where videos go, on the coordinator's machine; ``session`` stands in a file there, by which a worker
    elsewhere sees whether that folder is the same for it. ``kept_cameras``: every episode is kept for a dataset, with
    these; None: it is not. ``hung_s`` is the run's ``step_timeout``. ``refuses_nonfinite``: as ``Rollout`` takes it.
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
    hung_s: float
    kept_cameras: tuple[str, ...] | None = None
    session: str = ""
    refuses_nonfinite: bool = False


@dataclass(frozen=True)
class Ready(Message):
    """``python`` and ``packages`` as in ``benchmarks.installed.Installed``, from a worker that joined; else empty."""

    kind: ClassVar[str] = "ready"
    worker: str
    policy: PolicySpec
    about: Mapping[str, Any]
    python: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Serve(Message):
    """``exact`` as ``--eval.exact``."""

    kind: ClassVar[str] = "serve"
    policy: PolicyChoice
    exact: bool
    beat_every: float


@dataclass(frozen=True)
class Serving(Message):
    """``about`` is what the policy tells of itself, for run.json; ``address`` where workers elsewhere reach it."""

    kind: ClassVar[str] = "serving"
    worker: str
    policy: PolicySpec
    about: Mapping[str, Any]
    address: str | None = None


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
    """``retryable`` is false for errors that trying again cannot mend; ``at_start`` when no step had succeeded;
    ``note`` is for the person at the terminal, about an episode that counts all the same: the episode, ``REASON``, and
    what is to say."""

    kind: ClassVar[str] = "done"
    lease: int
    record: EpisodeRecord
    retryable: bool = True
    at_start: bool = False
    fault: Fault = Fault.EPISODE
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
class Artifact(Message):
    """Bytes of the file ``path`` within the run directory, from ``offset`` on; ``last``: the file is whole."""

    kind: ClassVar[str] = "artifact"
    lease: int
    path: str
    offset: int
    data: bytes
    last: bool


@dataclass(frozen=True)
class Leaving(Message):
    kind: ClassVar[str] = "leaving"
    worker: str


@dataclass(frozen=True)
class Alive(Message):
    """The coordinator is there; ``server`` is where the worker's policy server is by now."""

    kind: ClassVar[str] = "alive"
    server: str | None = None


@dataclass(frozen=True)
class Stop(Message):
    """``unfit``: not that there is nothing more to do, but that this worker may not do it."""

    kind: ClassVar[str] = "stop"
    reason: str
    unfit: bool = False


WORKER_TALK = Vocabulary(Hello, Job, Serve, Serving, Ready, Refused, Lease, Done, Beat, Artifact, Leaving, Alive, Stop)
"""All that is said between a coordinator and its workers."""
