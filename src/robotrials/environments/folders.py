"""Where the environments live that ``robotrials bench install`` makes, and which of them are whole.

    <home>/environments/<benchmark>/<id>/          a virtual environment
    <home>/environments/<benchmark>/<id>/robotrials.json   written last: without it the installation was interrupted
    <home>/environments/<benchmark>/current        a link to the one in use, replaced at once by a new one
    <home>/environments/<benchmark>/lock           held while one is made or removed

``<home>`` is ``ROBOTRIALS_HOME``, or ``robotrials`` in the XDG data directory. Reading costs two system calls, and
imports nothing: ``robotrials eval`` asks each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from robotrials.environments.installation import Installation
from robotrials.version import PACKAGE

MARK = "robotrials.json"
PREFIX = "{prefix}"


@dataclass(frozen=True)
class Environment:
    """An installed environment: its folder (the link ``current``, so that a new installation keeps the path), the
    pins it was made from, and a digest of these."""

    benchmark: str
    prefix: str
    requirements: tuple[str, ...]
    pins: str
    python_version: str = ""

    @property
    def python(self) -> str:
        return str(Path(self.prefix) / "bin" / "python")

    def is_of(self, installation: Installation) -> bool:
        """Whether these are today's pins; robotrials may have moved them since."""
        return self.pins == pins_digest(installation)


def home() -> Path:
    """robotrials' own directory; nothing else in the home folder is written to."""
    own = os.environ.get("ROBOTRIALS_HOME")
    if own:
        return Path(own).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "robotrials"


def folder_of(benchmark: str) -> Path:
    return home() / "environments" / benchmark


def pins_digest(installation: Installation) -> str:
    """16 hexadecimal digits that change with what would be installed."""
    return hashlib.sha256(json.dumps(asdict(installation), sort_keys=True).encode()).hexdigest()[:16]


def find(benchmark: str) -> Environment | None:
    """The environment in use for ``benchmark``; None where there is none or it is not whole."""
    if not benchmark.replace("-", "_").isidentifier():
        return None
    prefix = folder_of(benchmark) / "current"
    return read(prefix)


def read(prefix: Path) -> Environment | None:
    """The environment in ``prefix``, if ``bench install`` has made one there and finished."""
    try:
        mark = json.loads((prefix / MARK).read_text())
        return Environment(
            str(mark["benchmark"]),
            str(prefix),
            tuple(map(str, mark["requirements"])),
            str(mark["pins"]),
            str(mark["python_version"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def made(benchmark: str) -> list[str]:
    """Ids of all that lies there, whole or not."""
    folder = folder_of(benchmark)
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink())


def variables(installation: Installation, python: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """What a worker in the interpreter ``python`` (None: this one) needs besides ``environ``: the benchmark's own
    variables, as far as the user has not set them, and a way to this very robotrials."""
    # Not resolved: the interpreter of a virtual environment is a link, and its folder is what matters.
    environment = read(Path(python or sys.executable).parent.parent)
    wanted = {
        name: value.replace(PREFIX, environment.prefix if environment else "")
        for name, value in installation.environment.items()
        if name not in environ and (environment or PREFIX not in value)
    }
    if environment and not _holds_this_code(environment):
        # Made by another checkout or release of robotrials: the worker must run the code that is running here.
        path = filter(None, [str(_code_folder()), environ.get("PYTHONPATH")])
        wanted["PYTHONPATH"] = os.pathsep.join(path)
    return wanted


def package_folders(environment: Environment) -> list[str]:
    """Where the packages of ``environment`` are: its site-packages, and the folders that path files there name."""
    found: list[str] = []
    for site in sorted(Path(environment.prefix).glob("lib/python3*/site-packages")):
        lines = [line for file in sorted(site.glob("*.pth")) for line in file.read_text().splitlines()]
        found += [str(site), *(line for line in lines if line and not line.startswith(("import ", "import\t", "#")))]
    return found


def package_folder() -> Path:
    """The folder of the robotrials that is running."""
    return PACKAGE


def _holds_this_code(environment: Environment) -> bool:
    links = Path(environment.prefix).glob("lib/python3*/site-packages/robotrials")
    return any(link.resolve() == package_folder() for link in links)


def _code_folder() -> Path:
    """A folder that holds a link to the running package and nothing else, for PYTHONPATH: the folder it really lies in
    may be a site-packages full of other things."""
    package = package_folder()
    folder = home() / "code" / hashlib.sha256(str(package).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "robotrials"
    if not link.is_symlink():
        temporary = folder / f".robotrials.{os.getpid()}"
        temporary.symlink_to(package)
        temporary.replace(link)
    return folder
