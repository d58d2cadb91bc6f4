"""What there is of every benchmark: known, installed where, working, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from robotrials.benchmarks import environments
from robotrials.benchmarks.installed import look_up, placed
from robotrials.benchmarks.registry import benchmark_class, is_installed_here, names
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice

HERE, OWN, NOWHERE = "this Python", "own environment", ""


@dataclass(frozen=True)
class Entry:
    """One benchmark. ``state`` is ``ok``, ``problem`` (installed, and it does not work), ``-`` (not installed) or
    ``unavailable``; ``where`` and ``python`` say which interpreter its workers would run in, ``note`` what to do."""

    name: str
    state: str
    where: str = NOWHERE
    python: str | None = None
    python_version: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def inventory(only: str | None = None) -> list[Entry]:
    """All benchmarks, or one; each that is installed is really imported, in a process of its own."""
    return [_entry(name) for name in ([only] if only else names())]


def _entry(name: str) -> Entry:
    try:
        cls = benchmark_class(name)
    except ConfigError as error:  # a plugin that is broken
        return Entry(name, "problem", note=str(error))
    except ImportError as error:
        return Entry(name, "problem", note=f"its module does not import: {error}")
    choice = placed(EnvChoice(name))
    environment = environments.find(name)
    if environment is None and not is_installed_here(cls):
        return _absent(name)
    where = OWN if environment else HERE
    try:
        found = look_up(choice, try_import=True)
    except ConfigError as error:
        note = str(error)
        return Entry(name, "problem", where, choice.python, note=note)
    note = ""
    if environment and not environment.is_of(cls.installation):
        note = f"its pins have moved since: robotrials bench install {name}"
    return Entry(name, "ok", where, choice.python, found.python, dict(found.packages), note)


def _absent(name: str) -> Entry:
    pins = benchmark_class(name).installation
    if pins.unavailable:
        return Entry(name, "unavailable", note=pins.unavailable)
    begun = environments.made(name)
    what = "an installation was interrupted: " if begun else ""
    install = f"robotrials bench install {name}" if pins.requirements else "install what it needs, or give --env.python"
    return Entry(name, "-", note=f"{what}{install}")


def location(entry: Entry) -> str:
    """Where it is installed, in few words: the folder of an environment, or that it is this Python."""
    if entry.where == OWN and entry.python:
        return str(Path(entry.python).parent.parent).replace(str(Path.home()), "~", 1)
    return entry.where
