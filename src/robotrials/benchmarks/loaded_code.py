"""A hash of the code that this process has loaded and no installed version speaks for: a user's own files.

Asked of a process that has just built an environment: its class, the classes it inherits from, its wrappers, and the
helpers they import are then all loaded.
"""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from robotrials.environments.folders import package_folder

_PACKAGES = ("site-packages", "dist-packages")


def owners_of(module: str) -> list[str]:
    """The installed distributions that a module is from, each with its version; empty where none owns it."""
    from importlib.metadata import packages_distributions, version

    owners = packages_distributions().get(module.partition(".")[0], [])
    return [f"{owner} {version(owner)}" for owner in sorted(set(owners))]


def own_code_digest(also: Iterable[str] = ()) -> str:
    """``sha256:`` and 16 hexadecimal digits of all loaded files outside the standard library, installed packages and
    robotrials, and of the modules named in ``also`` that no distribution owns, wherever they lie; empty where there are
    none. An editable installation counts as the user's own: its files change and its version does not.

    A file is known by its name, not its folder: the same code elsewhere is the same code.
    """
    named = {_file(sys.modules.get(name)) for name in set(also) if not owners_of(name)}
    outside = {file for file in map(_file, list(sys.modules.values())) if file and not _is_package(file)}
    entries = sorted(_entries(file for file in named | outside if file and not _is_ours(file) and not _is_python(file)))
    if not entries:
        return ""
    return f"sha256:{hashlib.sha256(repr(entries).encode()).hexdigest()[:16]}"


def class_modules(env: Any) -> Iterator[str]:
    """The modules of an environment's wrappers, of its class, and of all that these inherit from."""
    while env is not None:
        yield from (cls.__module__ for cls in type(env).__mro__)
        env = env.__dict__.get("env") if hasattr(env, "__dict__") else None


def _entries(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    for file in files:
        yield file.name, hashlib.sha256(file.read_bytes()).hexdigest()


def _file(module: Any) -> Path | None:
    name = getattr(module, "__file__", None)
    path = Path(name).absolute() if isinstance(name, str) else None
    return path if path is not None and path.is_file() else None


def _is_package(file: Path) -> bool:
    return any(part in _PACKAGES for part in file.parts)


def _is_python(file: Path) -> bool:
    """Of the standard library, below which the folder of installed packages may lie."""
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    places = [*folders, *(folder.resolve() for folder in folders)]
    return not _is_package(file) and any(file.is_relative_to(folder) for folder in places)


def _is_ours(file: Path) -> bool:
    return file.resolve().is_relative_to(package_folder()) or file.name == "__main__.py"
