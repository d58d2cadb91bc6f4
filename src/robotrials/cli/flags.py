"""The flags of ``robotrials eval``: lerobot-eval's names, read strictly, into a ``RunConfig``.

``--a.b=value`` and ``--a.b value`` are the same; a boolean may stand bare; dashes may replace underscores in a name.
What is not known, given twice, or left over is refused with the nearest right name.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robotrials.cli import lerobot_flags
from robotrials.cli.config_file import SECTIONS, read_config_file
from robotrials.errors import ConfigError
from robotrials.plan.config import SETTINGS, EnvChoice, PolicyChoice, RunConfig
from robotrials.plan.options import build, check_bounds, coerce, nearest

TOP = {name: hint for name, hint in typing.get_type_hints(RunConfig).items() if name not in SECTIONS}
TOP_BOUNDS = {field.name: field.metadata for field in dataclasses.fields(RunConfig)}
SET = {
    f"{section}.{name}": hint
    for section, settings in SETTINGS.items()
    for name, hint in typing.get_type_hints(settings).items()
}
NAMED = ("policy.type", "policy.path", "policy.python", "env.type", "env.task", "env.python")
LINE_ONLY = {"config_path": Path, "dry_run": bool}
"""Flags of the command line that a configuration file cannot hold."""

ALIASES = {
    "render_device": "render.device",
    **{f"eval.docker.{name}": f"docker.{name}" for name in typing.get_type_hints(SETTINGS["docker"])},
}
"""Flags that users of other evaluators type, and ours."""

MEANT = {
    "n": "eval.n_episodes",
    "num_episodes": "eval.n_episodes",
    "episodes": "eval.n_episodes",
    "o": "output_dir",
    "eval.instance_id": "eval.shard_id",
    "instance_id": "eval.shard_id",
    **{
        f"{section}{name}": "eval.record"
        for section in ("", "eval.", "env.")
        for name in (
            "save_video",
            "save_videos",
            "video",
            "videos",
            "record_video",
            "n_videos",
            "max_episodes_rendered",
        )
    },
}
"""Names that other programs have for these flags; they say the same in other values, so none is taken."""
AFTERWARDS = ("view", "show", "report")
"""What people ask of a run when it has ended, which verbs do."""

KNOWN = (*NAMED, *SET, *TOP, *LINE_ONLY, *lerobot_flags.NAMES)
BOOLEAN = {name for name, hint in {**TOP, **SET, **LINE_ONLY}.items() if hint is bool} | lerobot_flags.BOOLEAN
TRUTHS = frozenset({"true", "false", "1", "0", "yes", "no", "on", "off"})
_SHORT = re.compile(r"-([no])=?(.*)")
_NUMBER = re.compile(r"-(\d|\.\d|inf)")


@dataclass(frozen=True)
class EvalCall:
    """What one command line asks for. ``notes`` are lines to show: flags that were taken and change nothing."""

    config: RunConfig
    dry_run: bool = False
    notes: tuple[str, ...] = ()


def parse_eval(argv: Sequence[str]) -> EvalCall:
    """Read the words after ``robotrials eval``.

    Raises:
        ConfigError: an unknown, repeated, incomplete or ill-typed flag, a leftover word, a bad configuration file, or
            no benchmark or policy named.
    """
    line: dict[str, Any] = dict(read_flags(argv))
    dry_run = coerce(line.pop("dry_run", False), bool, "--dry_run")
    values: dict[str, Any] = {}
    if "config_path" in line:
        path = Path(line.pop("config_path")).expanduser()
        values = _ours(read_config_file(path), path)
        check_names(values, path)
        # Read on its own first, for messages that name the file instead of a flag nobody typed.
        ours = {name: value for name, value in values.items() if name not in lerobot_flags.NAMES}
        lerobot_flags.take(ours)
        _config(ours, f"{path}: ")
    values.update(line)
    notes = lerobot_flags.take(values)
    config = _config(values, "--")
    _require_both(config)
    return EvalCall(config, dry_run, tuple(notes))


def _ours(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """``values`` by our own names."""
    ours: dict[str, Any] = {}
    for written, value in values.items():
        name = ALIASES.get(written, written)
        if name in ours:
            raise ConfigError(f"{path}: {name} is given twice, once as another name of it")
        ours[name] = value
    return ours


def read_flags(argv: Sequence[str]) -> dict[str, str]:
    """The flags as typed: dotted name (with underscores) to text; a bare flag that may stand bare is ``"true"``.

    Raises:
        ConfigError: a word that belongs to no flag, an unknown name, a flag without its value, a flag given twice.
    """
    flags: dict[str, str] = {}
    words = list(argv)
    while words:
        word = words.pop(0)
        if not word.startswith("--") or word == "--":
            raise ConfigError(_leftover(word if word not in ("-n", "-o") or not words else f"{word}={words[0]}"))
        written, equals, value = word[2:].partition("=")
        name = written.replace("-", "_")
        name = ALIASES.get(name, name)
        check_names([name])
        if not equals:
            value = _next_value(name, words)
        elif value == "" and name in KNOWN:
            raise ConfigError(f"--{name}= has no value")
        if name in flags:
            raise ConfigError(f"--{name} is given twice: {flags[name]!r} and {value!r}")
        flags[name] = value
    return flags


def _next_value(name: str, words: list[str]) -> str:
    """Take the value of ``--name`` from the front of ``words``, or say that it stands bare."""
    following = words[0] if words else None
    if name in BOOLEAN:
        return words.pop(0) if following is not None and following.lower() in TRUTHS else "true"
    if following is not None and (not following.startswith("-") or _NUMBER.match(following)):
        return words.pop(0)
    if name in KNOWN:
        tip = f"; if the value is {following}, write --{name}={following}" if following else ""
        raise ConfigError(f"--{name} needs a value: --{name}=VALUE{tip}")
    return "true"


def check_names(names: Iterable[str], file: Path | None = None) -> None:
    """Refuse names that are no flag; ``file`` is where they stand, None for the command line.

    ``policy.X`` and ``env.X`` pass whatever X is: the policy and the benchmark check their own options.
    """
    known = KNOWN if file is None else tuple(name for name in KNOWN if name not in LINE_ONLY)
    dashes, where = ("--", "unknown flag") if file is None else ("", f"{file}: unknown name")
    for name in names:
        if not _is_flag(name, known):
            hint = _nearest(name, known, dashes) or "; robotrials eval --help lists what exists"
            raise ConfigError(f"{where} {dashes}{name}{hint}")


def _is_flag(name: str, known: Sequence[str] = KNOWN) -> bool:
    section, _, rest = name.partition(".")
    return name in known or (section in ("policy", "env") and rest != "")


def _nearest(name: str, known: Sequence[str], dashes: str) -> str:
    """The right name for a wrong one: the same last word elsewhere (``--task``), a section alone, or the closest."""
    if name in MEANT:
        return f" (did you mean {dashes}{MEANT[name]}?)"
    if name in AFTERWARDS:
        return "; when it has ended: robotrials show DIR prints its table, robotrials report DIR makes its page"
    leaf = name.rsplit(".", 1)[-1]
    for same in ([flag for flag in known if flag.rsplit(".", 1)[-1] == leaf], [f"{leaf}.type"]):
        if len(same) == 1 and same[0] in known:
            return f" (did you mean {dashes}{same[0]}?)"
    return nearest(dashes + name, [dashes + flag for flag in known])


def _leftover(word: str) -> str:
    """What to say of a word that is neither a flag nor a flag's value."""
    name, equals, value = word.lstrip("-").partition("=")
    name = name.replace("-", "_")
    if word == "-V":
        return "-V prints the version: robotrials --version"
    if short := _SHORT.fullmatch(word):
        name, value = MEANT[short[1]], short[2]
        return f"unexpected {word!r} (did you mean --{name}={value or 'N'}?)"
    if _is_flag(name):
        hint = f" (did you mean --{name}{equals}{value}?)"
    else:
        hint = _nearest(name, KNOWN, "--") if name else ""
    return f"unexpected {word!r}: flags are written --name=value{hint}"


def _config(values: Mapping[str, Any], prefix: str) -> RunConfig:
    """A RunConfig from dotted names; ``prefix`` is how messages call them."""
    sections: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    top: dict[str, Any] = {}
    for name, value in values.items():
        section, _, rest = name.partition(".")
        if section in sections and rest:
            sections[section][rest] = value
        else:
            top[name] = coerce(value, TOP[name], prefix + name)
            check_bounds(top[name], TOP_BOUNDS[name], prefix + name)
    policy, env = sections["policy"], sections["env"]
    _check_rename_map(top.get("rename_map", {}), prefix)
    return RunConfig(
        policy=PolicyChoice(
            type=coerce(policy.pop("type", None), str | None, f"{prefix}policy.type"),
            path=coerce(policy.pop("path", None), str | None, f"{prefix}policy.path"),
            options=policy,
        ),
        env=EnvChoice(type=coerce(env.pop("type", ""), str, f"{prefix}env.type"), options=env),
        **{name: build(settings, sections[name], f"{prefix}{name}.") for name, settings in SETTINGS.items()},
        **top,
    )


def _check_rename_map(names: Mapping[Any, Any], prefix: str) -> None:
    for old, new in names.items():
        if not isinstance(old, str) or not isinstance(new, str):
            raise ConfigError(f"{prefix}rename_map must map names to names, got {old!r}: {new!r}")


def _require_both(config: RunConfig) -> None:
    """Refuse a run without benchmark or policy, suspecting a misspelt ``--env.type`` or ``--policy.type``."""
    from robotrials.benchmarks import registry as benchmarks
    from robotrials.policies import registry as policies

    if not config.env.type:
        misspelt = _misspelt("env", config.env.options)
        known = ", ".join(benchmarks.names())
        raise ConfigError(misspelt or f"--env.type is missing: which benchmark? One of {known}")
    if config.policy.type is None and config.policy.path is None:
        misspelt = _misspelt("policy", config.policy.options)
        known = ", ".join(policies.names())
        raise ConfigError(
            misspelt or f"--policy.type or --policy.path is missing: which policy? Types: {known}, module:Class"
        )


def _misspelt(section: str, options: Mapping[str, Any]) -> str:
    known = [f"--{section}.type", f"--{section}.path"] if section == "policy" else [f"--{section}.type"]
    for name in options:
        hint = "" if f"{section}.{name}" in NAMED else nearest(f"--{section}.{name}", known)
        if hint:
            return f"unknown flag --{section}.{name}{hint}"
    return ""
