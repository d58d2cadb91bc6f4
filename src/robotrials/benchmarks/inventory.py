"""What there is of every benchmark: known, installed where, working, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from robotrials.benchmarks.installed import VERSION, Installed, look_up_all
from robotrials.benchmarks.registry import benchmark_class, is_installed_here, names, package_versions
from robotrials.environments import folders
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice

HERE, OWN, NOWHERE = "this Python", "own environment", ""


@dataclass(frozen=True)
class Entry:
    """One benchmark. ``state`` is ``ok`` (it imports), ``installed`` (not tried), ``problem`` (installed, and it does
    not work), ``-`` (not installed) or ``unavailable``; ``where`` and ``python`` say which interpreter its workers
    would run in, ``note`` what to do."""

    name: str
    state: str
    where: str = NOWHERE
    python: str | None = None
    python_version: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def inventory(only: Sequence[str] | None = None, try_import: bool = True) -> list[Entry]:
    """The benchmarks in ``only``, None: all. With ``try_import`` each that is installed is really imported, in another
    process; without, files tell what is installed, which takes milliseconds."""
    chosen = names() if only is None else only
    entries = {name: _from_files(name) for name in chosen}
    if try_import:
        there = [EnvChoice(e.name, python=e.python) for e in entries.values() if e.where != NOWHERE]
        for choice, found in zip(there, look_up_all(there), strict=True):
            entries[choice.type] = _tried(entries[choice.type], found)
    return list(entries.values())


def _from_files(name: str) -> Entry:
    try:
        cls = benchmark_class(name)
    except ConfigError as error:  # a plugin that is broken
        return Entry(name, "problem", note=str(error))
    except ImportError as error:
        return Entry(name, "problem", note=f"its module does not import: {error}")
    environment = folders.find(name)
    if environment is None:
        if not is_installed_here(cls):
            return _absent(name)
        packages = package_versions(cls)
        problem = cls.conflict(packages) or ""
        return Entry(name, "problem" if problem else "installed", HERE, None, VERSION, packages, problem)
    packages = package_versions(cls, folders.package_folders(environment))
    note = "" if environment.is_of(cls.installation) else f"its pins have moved since: robotrials bench install {name}"
    state, version = "installed", environment.python_version
    if not Path(environment.python).exists():
        state, note = "problem", f"its interpreter is gone: robotrials bench install {name}"
    return Entry(name, state, OWN, environment.python, version, packages, note)


def _tried(entry: Entry, found: Installed | ConfigError) -> Entry:
    """``entry`` after its simulator was imported, or could not be."""
    if isinstance(found, ConfigError):
        return Entry(entry.name, "problem", entry.where, entry.python, note=str(found))
    return replace(entry, state="ok", python_version=found.python, packages=dict(found.packages))


def _absent(name: str) -> Entry:
    pins = benchmark_class(name).installation
    if pins.unavailable:
        return Entry(name, "unavailable", note=pins.unavailable)
    begun = folders.made(name)
    what = "an installation was interrupted: " if begun else ""
    install = f"robotrials bench install {name}" if pins.requirements else "install what it needs, or give --env.python"
    return Entry(name, "-", note=f"{what}{install}")


def location(entry: Entry) -> str:
    """Where it is installed, in few words: the folder of an environment, or that it is this Python."""
    if entry.where == OWN and entry.python:
        return str(Path(entry.python).parent.parent).replace(str(Path.home()), "~", 1)
    return entry.where
