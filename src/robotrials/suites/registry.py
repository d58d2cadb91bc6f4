"""What a suite is, those that everybody knows, and a user's own in YAML."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.options import build, nearest
from robotrials.plan.strict_yaml import read_yaml


@dataclass(frozen=True)
class Suite:
    """A dataset to train on and the tasks to evaluate on. ``env`` holds ``--env.*`` options, ``type`` and ``task``
    among them; ``n_episodes`` are of every task; ``train`` and ``eval`` are further flags of lerobot-train and of
    ``robotrials eval``. ``root`` is the dataset's folder where it is not on the Hub."""

    name: str
    dataset: str
    env: Mapping[str, Any]
    n_episodes: int = 50
    steps: int = 100_000
    batch_size: int = 64
    root: str = ""
    train: Mapping[str, Any] = field(default_factory=dict)
    eval: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def tasks(self) -> str:
        """As ``--env.task`` takes them."""
        task = self.env.get("task", "")
        return ",".join(map(str, task)) if isinstance(task, (list, tuple)) else str(task)


_FOUR = "libero_spatial,libero_object,libero_goal,libero_10"

_KNOWN = (
    Suite("libero", "lerobot/libero", {"type": "libero", "task": _FOUR}, 10, note="40 tasks of four suites"),
    Suite(
        "libero_plus",
        "lerobot/libero_plus",
        {"type": "libero_plus", "task": _FOUR},
        1,
        20_000,
        32,
        note="LIBERO under seven kinds of perturbation; thousands of tasks, one episode of each",
    ),
    Suite(
        "metaworld",
        "lerobot/metaworld_mt50",
        {"type": "metaworld", "task": "easy,medium,hard,very_hard"},
        10,
        note="all fifty tasks",
    ),
    Suite(
        "robocasa",
        "pepijn223/robocasa_CloseFridge",
        {"type": "robocasa", "task": "CloseFridge"},
        20,
        note="one task, for which there is a dataset; --env.task=atomic_seen after -- for a group",
    ),
    Suite(
        "robomme",
        "lerobot/robomme",
        {"type": "robomme", "task": "PickXtimes"},
        10,
        note="the dataset calls its columns image, wrist_image, state, actions: give lerobot-train a --rename_map",
    ),
    Suite(
        "aloha",
        "lerobot/aloha_sim_transfer_cube_human",
        {"type": "aloha", "task": "AlohaTransferCube-v0"},
        50,
        100_000,
        8,
        note="two arms hand a cube over",
    ),
    Suite("pusht", "lerobot/pusht", {"type": "pusht"}, 50, 200_000, 64, note="push a T onto its goal, in the plane"),
)
SUITES = {suite.name: suite for suite in _KNOWN}
"""Datasets and episodes as LeRobot's guides and model cards give them (August 2026); all of it can be overridden."""


def find(name: str) -> Suite:
    """The suite called ``name``, or that of the YAML file ``name``.

    Raises:
        ConfigError: no such suite; or the file cannot be read or does not describe one.
    """
    if name in SUITES:
        return SUITES[name]
    if name.endswith((".yaml", ".yml")):
        return read(Path(name).expanduser())
    raise ConfigError(
        f"unknown suite {name!r}{nearest(name, SUITES)}; known: {', '.join(SUITES)}, or a YAML file of yours"
    )


def read(path: Path) -> Suite:
    """A suite in YAML, its keys the fields of ``Suite``; ``base: libero`` takes the others from a known one, and an
    ``env`` without a type adds to the known one's.

    Raises:
        ConfigError: as ``find``.
    """
    content = read_yaml(path)
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path} must hold a map: name, dataset, env, ...")
    _check_shape(content, path)
    values = _on_base({"name": path.stem, **content}, path)
    missing = [name for name in ("dataset", "env") if not values.get(name)]
    if missing:
        raise ConfigError(f"{path}: {missing[0]} is missing; a suite has name, dataset, env: {{type: ..., task: ...}}")
    suite = build(Suite, values, f"{path}: ")
    if not isinstance(suite.env.get("type"), str) or not suite.env["type"]:
        raise ConfigError(f"{path}: env.type is missing: which benchmark? It has {dict(suite.env)}")
    _refuse_misspelt(suite.env["type"], path)
    for name in ("n_episodes", "steps", "batch_size"):
        if getattr(suite, name) < 1:
            raise ConfigError(f"{path}: {name} must be at least 1, got {getattr(suite, name)}")
    _check_flags(suite, path)
    if not suite.name.replace("_", "").replace("-", "").isalnum():
        raise ConfigError(f"{path}: name {suite.name!r} must be of letters, digits, - and _: it names folders")
    return suite


def _refuse_misspelt(env_type: str, path: Path) -> None:
    """An unknown type goes to LeRobot, which has environments of plugins; one that is nearly ours is a slip of the
    hand, and would be found only when LeRobot looks, after the training."""
    from robotrials.benchmarks.registry import names

    known = names()
    hint = "" if env_type in known or ":" in env_type else nearest(env_type, known, least=0.8)
    if hint:
        raise ConfigError(
            f"{path}: unknown env.type {env_type!r}{hint}; known: {', '.join(known)}; an environment of LeRobot that "
            f"is called so: env: {{type: lerobot_env, config: {env_type}}}"
        )


def _check_shape(content: Mapping[Any, Any], path: Path) -> None:
    """Refuse what YAML allows and no suite means: keys that are no text, a word where a map belongs."""
    for name, value in content.items():
        inner = value if isinstance(value, Mapping) else ()
        strange = [key for key in (name, *inner) if not isinstance(key, str)]
        if strange:
            raise ConfigError(f"{path}: a key must be text, got {strange[0]!r}")
        if name in ("env", "train", "eval") and not isinstance(value, Mapping):
            raise ConfigError(f"{path}: {name} must be a map such as {_MAPS[name]}, got {value!r}")
        if name in ("name", "dataset", "root", "base") and isinstance(value, (list, Mapping)):
            raise ConfigError(f"{path}: {name} must be text, got {value!r}")


def _check_flags(suite: Suite, path: Path) -> None:
    """Refuse what would get round the suite: its commands would no longer agree on what is where."""
    for section, instead in _INSTEAD.items():
        for name in getattr(suite, section):
            words = instead.get(name.replace("-", "_")) or ("write env: {...}" if name.startswith("env.") else "")
            if words:
                raise ConfigError(f"{path}: {section} cannot hold {name}: {words}")


_FOLDERS = "robotrials suite names the folders; give it --output_dir=DIR"
_POLICY = "the evaluation takes what was trained; another policy follows --: -- --policy.path=..."
_INSTEAD = {
    "train": {
        "steps": "write steps: N beside it",
        "dataset.repo_id": "write dataset: OWNER/NAME beside it",
        "dataset.root": "write root: FOLDER beside it",
        "output_dir": _FOLDERS,
    },
    "eval": {
        "eval.n_episodes": "write n_episodes: N beside it",
        "output_dir": _FOLDERS,
        "policy.path": _POLICY,
        "policy.type": _POLICY,
    },
}
"""Flags that a suite sets itself, and what to write instead."""


_MAPS = {"env": "{type: pusht}", "train": "{policy.chunk_size: 16}", "eval": "{eval.record: none}"}


def _on_base(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """``values`` with what they leave out taken from the known suite that they name as ``base``."""
    base = values.pop("base", None)
    if base is None:
        return values
    if base not in SUITES:
        raise ConfigError(
            f"{path}: base {base!r} is no known suite{nearest(str(base), SUITES)}; known: {', '.join(SUITES)}"
        )
    known = {f.name: getattr(SUITES[base], f.name) for f in dataclasses.fields(Suite)}
    env = values.get("env") or {}
    return {**known, **values, "env": env if "type" in env else {**known["env"], **env}}
