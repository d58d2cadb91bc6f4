"""Finds a Python of a version that a benchmark's packages exist for: this one, the PATH's, pyenv's, uv's."""

from __future__ import annotations

import glob
import operator
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

from robotrials.errors import ConfigError

Version = tuple[int, ...]

_NEWEST_MINOR = 14
_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_CLAUSE = re.compile(r"(>=|<=|==|!=|<|>)\s*(\d+(?:\.\d+)*)$")


def in_range(version: Version, wanted: str) -> bool:
    """Whether ``version`` (3, 12) lies in ``wanted`` (``>=3.11,<3.13``), comparing as many numbers as both have.

    Raises:
        ValueError: ``wanted`` is no such range.
    """
    for clause in filter(None, (part.strip() for part in wanted.split(","))):
        match = _CLAUSE.match(clause)
        if match is None:
            raise ValueError(f"{clause!r} is no range of Python versions such as >=3.11")
        bound = tuple(map(int, match[2].split(".")))
        if not _COMPARE[match[1]](version[: len(bound)], bound):
            return False
    return True


def find_python(wanted: str, uv: str | None, asked: str | None = None) -> str:
    """The path of an interpreter in the range ``wanted``; ``asked`` is the user's own choice, a path or ``3.12``.

    In this order: the running one, those on the PATH and pyenv's, newest first, and one that uv has or fetches.

    Raises:
        ConfigError: there is none, or the one asked for does not run or lies outside the range.
    """
    if asked is not None and not re.fullmatch(r"3\.\d+", asked):
        path = shutil.which(os.path.expanduser(asked))
        version = path and version_of(path)
        if not path or not version:
            raise ConfigError(f"--python={asked}: no such interpreter")
        if not in_range(version, wanted):
            raise ConfigError(f"--python={asked} is Python {_words(version)}; the pinned packages need {wanted}")
        return path
    minors = [minor for minor in range(_NEWEST_MINOR, 9, -1) if in_range((3, minor), wanted)]
    if asked is not None:
        minor = int(asked.partition(".")[2])
        if not in_range((3, minor), wanted):
            raise ConfigError(f"--python={asked}: the pinned packages need {wanted}")
        if minor > _NEWEST_MINOR and not any(map(version_of, _candidates(minor))):
            raise ConfigError(
                f"--python={asked}: there is no Python {asked} here, and 3.{_NEWEST_MINOR} is the newest that "
                "robotrials knows of; give its path where you have one"
            )
        minors = [minor]
    if sys.version_info.minor in minors:
        return sys.executable
    for minor in minors:
        for path in _candidates(minor):
            if (version_of(path, alone=uv is None) or ())[:2] == (3, minor):
                return path
    for minor in minors if uv else ():
        found = _from_uv(str(uv), f"3.{minor}")
        if found:
            return found
    version_words = asked or wanted
    raise ConfigError(
        f"no Python {version_words} here. Install one (apt install python3.{minors[0]}-venv, pyenv install "
        f"3.{minors[0]}, or pip install uv, which fetches it), or give --python=PATH"
    )


def version_of(python: str, alone: bool = False) -> Version | None:
    """(3, 12, 1), or None where ``python`` does not run; ``alone``: or cannot make environments without uv. A pyenv
    shim stands on the PATH for versions that are not the active one, and refuses to run: hence the trial."""
    code = f"import sys{', venv, ensurepip' if alone else ''}; print(*sys.version_info[:3])"
    try:
        done = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    numbers = done.stdout.split()
    return tuple(map(int, numbers)) if done.returncode == 0 and all(n.isdigit() for n in numbers) else None


def _candidates(minor: int) -> Iterator[str]:
    on_path = shutil.which(f"python3.{minor}")
    if on_path:
        yield on_path
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    pattern = os.path.join(root, "versions", f"3.{minor}.*", "bin", "python")
    yield from sorted(glob.glob(pattern), key=_patch_number, reverse=True)


def _patch_number(path: str) -> int:
    match = re.search(r"/3\.\d+\.(\d+)/", path)
    return int(match[1]) if match else -1


def _from_uv(uv: str, version: str) -> str | None:
    """One that uv has, else one it can fetch; None where it has none."""
    for command in (["python", "find", version], ["python", "install", "-q", version], ["python", "find", version]):
        try:
            done = subprocess.run([uv, *command], capture_output=True, text=True, timeout=600)
        except (OSError, subprocess.TimeoutExpired):
            return None
        path = done.stdout.strip()
        if command[1] == "find" and done.returncode == 0 and path and (version_of(path) or ())[:2]:
            return path
        if command[1] == "install" and done.returncode != 0:
            return None
    return None


def _words(version: Version) -> str:
    return ".".join(map(str, version))
