"""Flags of lerobot-eval (LeRobot 0.6) that mean nothing here, so that a command line of old still runs.

Each is taken and answered with one line. A flag whose loss would lose data is refused instead.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.options import coerce

ACCEPTED: dict[str, str] = {
    "eval.use_async_envs": "changes nothing: every environment has a process of its own and waits for no other",
    "env.max_parallel_tasks": "changes nothing: all tasks share one pool of workers, --eval.batch_size of them",
    "trust_remote_code": "changes nothing: no code is loaded from a Hub",
}
"""Flag to what it means here."""

RECORDING = ("eval.recording", "eval.recording_repo_id", "eval.recording_private")
"""lerobot-eval's rollouts as a dataset: refused when asked for, ignored when switched off."""

NAMES = (*ACCEPTED, *RECORDING)
BOOLEAN = frozenset({"eval.use_async_envs", "trust_remote_code", "eval.recording", "eval.recording_private"})


def take(values: MutableMapping[str, Any]) -> list[str]:
    """Remove these flags from ``values`` (dotted names) and return the lines to show for them.

    Raises:
        ConfigError: the command line asks for a dataset of the rollouts, which cannot be written yet.
    """
    for name in RECORDING:
        asked = values.pop(name, None)
        if name == "eval.recording" and asked is not None and coerce(asked, bool, f"--{name}"):
            raise ConfigError(
                "--eval.recording=true: rollouts cannot be saved as a dataset yet; "
                "leave it out, and use --eval.record=all to keep a video of every episode"
            )
    return [f"--{name} {ACCEPTED[name]}" for name in ACCEPTED if values.pop(name, None) is not None]
