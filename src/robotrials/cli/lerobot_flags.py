"""Flags of lerobot-eval (LeRobot 0.6) that mean nothing here, so that a command line of old still runs.

Each is taken and answered with one line.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.options import coerce

_KEYS = "policies get the keys that lerobot-eval gives them; --rename_map renames them"
_TRAINING = "it is of training; an evaluation pushes no policy (robotrials push writes results to its card)"

ACCEPTED: dict[str, str] = {
    "eval.use_async_envs": "changes nothing: every environment has a process of its own and waits for no other",
    "env.max_parallel_tasks": "changes nothing: all tasks share one pool of workers, --eval.batch_size of them",
    "trust_remote_code": "changes nothing: this benchmark loads no code from a Hub",
    "env.disable_env_checker": "changes nothing: every observation and action is checked, by robotrials itself",
    "env.render_mode": "changes nothing: pictures are drawn where a policy or a video needs them, never in a window",
    "env.multitask_eval": "changes nothing: all tasks of --env.task are evaluated, each with its own figures",
    "env.features": f"changes nothing: {_KEYS}",
    "env.features_map": f"changes nothing: {_KEYS}",
    "policy.push_to_hub": f"changes nothing: {_TRAINING}",
    "policy.repo_id": f"changes nothing: {_TRAINING}",
    "policy.private": f"changes nothing: {_TRAINING}",
}
"""Flag to what it means here."""

REMOTE_CODE = ("hub", "lerobot_env", "isaaclab_arena")
"""Benchmarks that run code of a Hub when ``--trust_remote_code=true`` says so; it becomes one of their options."""

_BRIDGES = (*REMOTE_CODE, "gym")
"""Benchmarks that hand their options on to somebody else's environment."""

_NULL = (None, "null", "none", "None")

_PULL = {"true": "missing", "false": "never"}

NAMES = (*ACCEPTED, "eval.instance_count", "eval.port", "eval.docker.envhub_ref")
BOOLEAN = frozenset(
    {
        "eval.use_async_envs",
        "trust_remote_code",
        "env.disable_env_checker",
        "env.multitask_eval",
        "policy.push_to_hub",
        "policy.private",
    }
)

_PUSH = "is written down in run.json; nothing is pushed: that needs your token, and is left to you"


def take(values: MutableMapping[str, Any]) -> list[str]:
    """Remove these flags from ``values`` (dotted names) and return the lines to show for them."""
    if "trust_remote_code" in values and values.get("env.type") in REMOTE_CODE:
        values.setdefault("env.trust_remote_code", values.pop("trust_remote_code"))
    _take_forerunners(values)
    if "rename_map" in values and values["rename_map"] in _NULL:
        del values["rename_map"]
    taken = [name for name in ACCEPTED if not _has_own_meaning(name, values)]
    lines = [f"--{name} {ACCEPTED[name]}" for name in taken if values.pop(name, None) is not None]
    if coerce(values.get("eval.recording_repo_id"), str | None, "--eval.recording_repo_id"):
        lines.append(f"--eval.recording_repo_id {_PUSH}")
    return lines


def _has_own_meaning(name: str, values: MutableMapping[str, Any]) -> bool:
    """Whether benchmark or policy may have an option of that name: a bridge's configuration, a class of the user's."""
    section, _, rest = name.partition(".")
    kind = values.get(f"{section}.type")
    if section == "env" and rest != "max_parallel_tasks":
        return kind in _BRIDGES or ":" in str(kind)
    return section == "policy" and kind not in (None, "lerobot")


def _take_forerunners(values: MutableMapping[str, Any]) -> None:
    """``multiprocess`` is what others call local; instances have a batch of environments each; a bare port is one on
    this machine; a Hub environment's reference beside a container is the environment."""
    if values.get("eval.runtime") == "multiprocess":
        values["eval.runtime"] = "local"
    if "eval.instance_count" in values:
        instances = coerce(values.pop("eval.instance_count"), int, "--eval.instance_count")
        if instances < 1:
            raise ConfigError(f"--eval.instance_count must be at least 1, got {instances}")
        each = coerce(values.get("eval.batch_size", 0), int, "--eval.batch_size")
        values["eval.batch_size"] = instances * (each or 1)
    if "eval.port" in values:
        port = coerce(values.pop("eval.port"), int, "--eval.port")
        values.setdefault("eval.listen", f"tcp://127.0.0.1:{port}")
    reference = values.pop("eval.docker.envhub_ref", None)
    if reference not in _NULL:
        kind = values.setdefault("env.type", "hub")
        if kind != "hub":
            raise ConfigError(
                f"--eval.docker.envhub_ref={reference} goes with --env.type=hub, not with --env.type={kind}"
            )
        values.setdefault("env.repo", str(reference).removeprefix("envhub://"))
    # Its ``pull`` is a boolean, and ``gpus`` may be null.
    pull = str(values.get("docker.pull", "")).lower()
    if pull in _PULL:
        values["docker.pull"] = _PULL[pull]
    if "docker.gpus" in values and values["docker.gpus"] in _NULL:
        values["docker.gpus"] = "none"
