"""What to type to make a run again, to go on with it, and to compare it: the commands, ready to be copied, and which
options are not the defaults."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from robotrials.plan.config import SETTINGS, RunConfig
from robotrials.reporting.charts_html import run_class
from robotrials.reporting.loading import LoadedRun
from robotrials.reporting.markup import Markup, tag

_TOP = ("seed", "until", "job_name", "allow_mixed")
_TOLD_BY_PATH = ("lerobot", "onnx")
_NOT_NEEDED = ("eval.batch_size", "eval.policy_servers", "eval.listen", "eval.shard_id", "eval.num_shards", "job_name")
"""How the work was laid out on that machine: not needed to make the same outcomes."""


def commands_section(runs: Sequence[LoadedRun]) -> Markup:
    """A line for each command, with a button that copies it."""
    several = len(runs) > 1
    blocks = []
    if several:
        command = shlex.join(["robotrials", "compare", *(_place(run) for run in runs)])
        blocks.append(_command("Compare these runs", command))
    for i, run in enumerate(runs):
        swatch = tag("span", class_=f"swatch {run_class(i)}") if several else None
        name = f" {run.label}" if several else ""
        blocks.append(_command(f"Evaluate{name} again", eval_command(run), swatch))
        if not run.summary.complete:
            blocks.append(
                _command(f"Go on with{name or ' this run'}", shlex.join(["robotrials", "resume", _place(run)]))
            )
    if not several:
        command = shlex.join(["robotrials", "compare", _place(runs[0]), "OTHER"])
        blocks.append(_command("Compare with another run", command))
    return tag(
        "section",
        tag("h2", "Commands", tag("small", id="copied", role="status")),
        *blocks,
        id="section-commands",
    )


def _place(run: LoadedRun) -> str:
    """The run's directory as one types it here: from the current directory, where it lies below it."""
    here = Path.cwd()
    return str(run.path.relative_to(here) if run.path.is_relative_to(here) and run.path != here else run.path)


def _command(title: str, command: str, swatch: Markup | None = None) -> Markup:
    return tag(
        "div",
        tag("span", swatch, title, class_="what"),
        tag("code", command),
        tag("button", "Copy", type="button", data_copy=command, aria_label=f"Copy: {title}"),
        class_="command",
    )


def eval_command(run: LoadedRun) -> str:
    """The command that makes the run's outcomes again: what was asked for, and every option that is not the default."""
    config = run.described["config"]
    words = ["robotrials", "eval"]
    words += [f"--{name}={_typed(value)}" for name, value in given(config).items() if _is_needed(name)]
    if config.get("rename_map"):
        words.append(f"--rename_map={json.dumps(config['rename_map'])}")
    return shlex.join(words)


def _is_needed(name: str) -> bool:
    return name not in _NOT_NEEDED and not name.startswith("wandb.")


def given(config: Mapping[str, Any]) -> dict[str, Any]:
    """What is not the default in the ``config`` of a run.json, by the names of flags; maps are left out."""
    return dict(_given(config))


def _given(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for section in ("policy", "env"):
        chosen = config.get(section) or {}
        if chosen.get("path"):
            yield f"{section}.path", chosen["path"]
        if chosen.get("type") and not (chosen.get("path") and chosen["type"] in _TOLD_BY_PATH):
            yield f"{section}.type", chosen["type"]
        for name, value in (chosen.get("options") or {}).items():
            yield f"{section}.{name}", value
    usual = defaults()
    for section in SETTINGS:
        for name, value in (config.get(section) or {}).items():
            flag = f"{section}.{name}"
            if flag in usual and value != usual[flag]:
                yield flag, value
    for name in _TOP:
        if name in config and config[name] != usual[name]:
            yield name, config[name]


def defaults() -> dict[str, Any]:
    """What each option is when nothing is said, by its flag; those of policies and benchmarks are not known here."""
    found = {
        f"{section}.{entry.name}": _default(entry)
        for section, kind in SETTINGS.items()
        for entry in dataclasses.fields(kind)
    }
    return found | {entry.name: _default(entry) for entry in dataclasses.fields(RunConfig) if entry.name in _TOP}


def _default(entry: dataclasses.Field[Any]) -> Any:
    if entry.default is not dataclasses.MISSING:
        return entry.default
    return entry.default_factory() if entry.default_factory is not dataclasses.MISSING else None


def _typed(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)
