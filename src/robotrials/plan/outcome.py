"""Which settings can change an outcome, and so belong to a run's identity: all that are not marked here.

An option that somebody adds is in the identity, by its own name, as soon as it is not at its default. It leaves the
identity by a mark in this table, which is a claim that no episode can come out differently for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robotrials.plan.config import SETTINGS, RunConfig

NO_OUTCOME: Mapping[str, frozenset[str]] = {
    "eval": frozenset(
        {
            # how the work is spread, and how often it is tried
            *("batch_size", "policy_servers", "max_attempts", "step_timeout", "order", "runtime", "listen"),
            # what is kept of an episode: looking changes no physics
            *("record", "record_fps", "dataset", "dataset_cameras"),
            *("recording", "recording_repo_id", "recording_private"),
        }
    ),
    "stats": frozenset({"interval"}),
    "wandb": frozenset({"enable", "project", "entity", "mode", "run_id", "notes", "backend"}),
    "render": frozenset(),
    # The packages and the Python in the image are asked for, and are in the identity.
    "docker": frozenset({"image", "pull", "python", "gpus", "shm_size", "cpus", "memory", "use_local_code"}),
    "ray": frozenset({"address", "cpus_per_worker", "gpus_per_server", "runtime_env"}),
    "": frozenset({"output_dir", "job_name", "allow_mixed", "until"}),
}
"""Section to the options that cannot change an outcome; ``""`` are those without a section."""

ELSEWHERE: Mapping[str, frozenset[str]] = {
    "eval": frozenset({"exact", "n_episodes", "num_shards", "shard_id"}),
    "render": frozenset({"device"}),
    "": frozenset({"seed", "rename_map"}),
}
"""Section to the options that the identity holds under a key of its own: in the plan, ``exact``, ``shard``, ``render``,
``rename_map``."""


def changed_settings(config: RunConfig) -> dict[str, Any]:
    """``section.option`` to value, of options that are marked in neither table and are not at their defaults."""
    found: dict[str, Any] = {}
    for section in ("", *SETTINGS):
        owner = getattr(config, section) if section else config
        for field in dataclasses.fields(owner):
            marked = NO_OUTCOME.get(section, frozenset()) | ELSEWHERE.get(section, frozenset())
            if field.name in marked or not field.metadata:  # without metadata it is a section, the policy or the env
                continue
            value = getattr(owner, field.name)
            if value != _default(field):
                found[f"{section}.{field.name}" if section else field.name] = _plain(value)
    return found


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
