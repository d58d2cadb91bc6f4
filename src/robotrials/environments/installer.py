"""Makes and removes the environments of ``robotrials bench``: pinned, isolated, whole or not there at all.

An installation is built in a folder of its own, marked when it is finished, and only then put in the place of the one
before: a running evaluation, another installation at the same time, and a kill at any instant find a whole one or none.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from robotrials.environments import folders
from robotrials.environments.folders import MARK, folder_of, package_folder, pins_digest
from robotrials.environments.installation import Installation
from robotrials.environments.interpreters import find_python, version_of
from robotrials.errors import ConfigError, InstallError

Say = Callable[[str], None]

# Besides its own dependencies, a worker needs what policies need that play inside it.
_EXTRAS = ("onnx",)
_TAIL_LINES = 8
_UNREACHABLE = (
    "error sending request",
    "failed to fetch",
    "could not fetch",
    "connection",
    "timed out",
    "dns error",
    "name resolution",
    "network",
)


def install(
    pins: Installation, name: str, python: str | None = None, force: bool = False, say: Say = lambda words: None
) -> bool:
    """Make the environment of ``name`` from its ``pins``; False when a whole one of these pins
    stands already and ``force`` is not set.

    ``python`` is the user's choice of interpreter, a path or a version. ``say`` is told each step, in a line.

    Raises:
        ConfigError: the benchmark cannot be installed from packages, or there is no Python for it.
        InstallError: the installer failed; the message ends with what it said.
    """
    if pins.unavailable:
        raise ConfigError(f"{name} cannot be installed from packages: {pins.unavailable}")
    if not pins.requirements:
        raise ConfigError(f"{name} names nothing to install; install what it needs yourself, and give --env.python")
    with _lock(name, say):
        standing = folders.find(name)
        if standing and standing.is_of(pins) and not force and python is None:
            return False
        uv = find_uv()
        base = find_python(pins.python, uv, python)
        prefix = folder_of(name) / secrets.token_hex(4)
        try:
            _build(prefix, base, uv, pins, say)
            _mark(prefix, name, pins, base)
            _put_in_place(prefix)
        except BaseException:
            shutil.rmtree(prefix, ignore_errors=True)
            raise
        _sweep(name)
    return True


def remove(name: str) -> bool:
    """Delete all that was installed for ``name``; False when there was nothing."""
    folder = folder_of(name)
    if not folders.made(name) and not (folder / "current").is_symlink():
        return False
    with _lock(name, lambda words: None):
        (folder / "current").unlink(missing_ok=True)
        _sweep(name)
        (folder / "install.log").unlink(missing_ok=True)
    return True


def find_uv() -> str | None:
    """uv beside this Python or on the PATH, tried: a pyenv shim stands there without running."""
    beside = Path(sys.executable).parent / "uv"
    for path in filter(None, (str(beside) if beside.exists() else None, shutil.which("uv"))):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([path, "--version"], capture_output=True, check=True, timeout=30)
            return path
    return None


def installer_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` with caches and interpreters kept in robotrials' own directory, unless the user has placed them; and
    without what would lead the installer to another environment."""
    own = folders.home()
    mine = {
        "UV_CACHE_DIR": str(own / "cache" / "uv"),
        "UV_PYTHON_INSTALL_DIR": str(own / "python"),
        "PIP_CACHE_DIR": str(own / "cache" / "pip"),
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    astray = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")
    kept = {name: value for name, value in environ.items() if name not in astray}
    return {**mine, **kept}


def own_requirements() -> list[str]:
    """What robotrials itself needs in a worker, without an extra but those of policies that play there."""
    try:
        declared = requires("robotrials") or []
    except PackageNotFoundError:  # a bare source folder on the path
        declared = ["numpy>=1.24", "msgpack>=1.0.5", "pyzmq>=25.1", "pyyaml>=6.0", "rich>=13.7", "av>=14.0"]
    wanted = []
    for line in declared:
        requirement, _, marker = line.partition(";")
        if not marker.strip() or any(f"extra == '{extra}'" in marker.replace('"', "'") for extra in _EXTRAS):
            wanted.append(requirement.strip())
    return wanted


def _build(prefix: Path, base: str, uv: str | None, pins: Installation, say: Say) -> None:
    log = prefix.parent / "install.log"
    log.write_text("")
    version = version_of(base) or ()
    say(f"making an environment with Python {'.'.join(map(str, version))} ({base})")
    python = str(prefix / "bin" / "python")
    packages = [*pins.requirements, *own_requirements()]
    if uv:
        _run([uv, "venv", "--quiet", "--python", base, str(prefix)], log)
        install_command = [uv, "pip", "install", "--python", python, *packages]
    else:
        _run([base, "-m", "venv", str(prefix)], log)
        install_command = [python, "-m", "pip", "install", *packages]
    say(f"installing {' '.join(pins.requirements)}")
    _run(install_command, log)
    _lend_code(prefix)
    if pins.prepare:
        say(f"preparing it with {pins.prepare}")
        script = Path(__file__).parent / "prepare" / pins.prepare
        _run(["bash", str(script), str(prefix)], log)


def _lend_code(prefix: Path) -> None:
    """A link to the running package: the very same code there, whether it came from a checkout or from an index."""
    for site in prefix.glob("lib/python3*/site-packages"):
        link = site / "robotrials"
        if not link.exists():
            link.symlink_to(package_folder())


def _mark(prefix: Path, name: str, pins: Installation, base: str) -> None:
    mark = {
        "benchmark": name,
        "requirements": pins.requirements,
        "pins": pins_digest(pins),
        "python_version": ".".join(map(str, version_of(base) or ())),
    }
    temporary = prefix / f"{MARK}.part"
    with open(temporary, "w") as file:
        json.dump(mark, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(prefix / MARK)


def _put_in_place(prefix: Path) -> None:
    link = prefix.parent / f".current.{prefix.name}"
    link.symlink_to(prefix.name)
    link.replace(prefix.parent / "current")


def _sweep(name: str) -> None:
    """Delete what is not in use: environments replaced, and those whose installation was interrupted."""
    folder = folder_of(name)
    current = folder / "current"
    used = os.readlink(current) if current.is_symlink() else None
    for made in folders.made(name):
        if made != used:
            shutil.rmtree(folder / made, ignore_errors=True)


@contextlib.contextmanager
def _lock(name: str, say: Say) -> Iterator[None]:
    folder = folder_of(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / "lock", "w")  # noqa: SIM115  closed below, which also unlocks it
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written to ({error.strerror}): set ROBOTRIALS_HOME") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another installation of {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: Sequence[str], log: Path) -> None:
    """Run one step of an installation, nothing to answer its questions.

    Raises:
        InstallError: it failed; the message holds its last lines.
    """
    with open(log, "a") as file:
        begin = file.tell()
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=installer_environment(os.environ),
            )
        except OSError as error:
            raise InstallError(f"{command[0]} does not run: {error.strerror}") from None
    if done.returncode == 0:
        return
    with open(log, errors="replace") as file:
        file.seek(begin)
        said = file.read()
    tail = "\n  ".join(said.strip().splitlines()[-_TAIL_LINES:])
    raise InstallError(f"{_step_name(command)} failed (exit status {done.returncode}):\n  {tail}{_advice(said)}")


def _step_name(command: Sequence[str]) -> str:
    if command[0] == "bash":
        return Path(command[1]).name
    return "making the virtual environment" if "venv" in command else "installing the packages"


def _advice(said: str) -> str:
    text = said.lower()
    if any(word in text for word in _UNREACHABLE):
        return (
            "\nThe package index seems out of reach. Behind a proxy set HTTPS_PROXY; for a mirror set UV_INDEX_URL "
            "(uv) or PIP_INDEX_URL (pip)"
        )
    return ""
