"""What the probes of ``robotrials tune`` are told, in a file of the folder that is theirs, and what they tell: a line
of JSON for each thing they have measured."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.wire.envelope import Message, Vocabulary, encode

GO = "go"
"""File by which all worker probes begin at once: what they measure is what they take from each other."""


@dataclass(frozen=True)
class ProbeWorker(Message):
    """Play ``episodes`` for ``seconds``, an equal share for each task, one of each at least. ``filmed``: every second
    one as if for a video. ``server`` and ``token``: where the policy is, None: here."""

    kind: ClassVar[str] = "probe_worker"
    env: EnvChoice
    policy: PolicyChoice
    server: str | None
    token: str
    tasks: tuple[TaskSpec, ...]
    episodes: tuple[EpisodeSpec, ...]
    rename_map: Mapping[str, str]
    record_fps: float
    filmed: bool
    seconds: float


@dataclass(frozen=True)
class ProbePolicy(Message):
    """Load the policy, time it on batches of up to ``largest`` rows for ``seconds``, then serve it at ``listen``.
    ``other_batches``: load it again with other ``max_batch`` options, too, where it has that option."""

    kind: ClassVar[str] = "probe_policy"
    policy: PolicyChoice
    exact: bool
    task: TaskSpec
    episodes: tuple[EpisodeSpec, ...]
    rename_map: Mapping[str, str]
    largest: int
    seconds: float
    listen: str
    token: str


PROBE_TALK = Vocabulary(ProbeWorker, ProbePolicy)


@dataclass(frozen=True)
class Played:
    """One episode, or its first steps (``cut``: it would have gone on). Seconds; ``cpu_s`` of the whole process,
    ``queued_s`` in which its thread was ready and had no core; ``film_s`` is what the video took."""

    task: str
    steps: int
    looks: int
    cut: bool
    filmed: bool
    reset_s: float
    simulate_s: float
    render_s: float
    infer_s: float
    wait_s: float
    film_s: float
    total_s: float
    cpu_s: float
    queued_s: float
    build_s: float


def write_task(folder: Path, name: str, message: Message) -> None:
    (folder / f"{name}.task").write_bytes(encode(message))


def read_task(folder: Path, name: str) -> Message:
    return PROBE_TALK.decode((folder / f"{name}.task").read_bytes())


def tell(folder: Path, name: str, event: str, **facts: Any) -> None:
    """Add one line; whole, since a line is written by one call."""
    line = json.dumps({"event": event, **facts}, allow_nan=False) + "\n"
    handle = os.open(folder / f"{name}.told", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


def told(folder: Path, name: str) -> list[dict[str, Any]]:
    """All that ``name`` has told so far."""
    path = folder / f"{name}.told"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def memory_bytes() -> int:
    """The most that this process has held, resident."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
