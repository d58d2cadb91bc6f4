"""How robotrials is installed: the command in messages, which must work as it is printed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from robotrials.version import PACKAGE

REPOSITORY = "https://github.com/OWNER/robotrials"
"""The project's address: the one place in the code that names it. OWNER is a placeholder until it is published."""


def install_command(extra: str = "", python: str | None = None) -> str:
    """The command that installs robotrials with ``extra`` into ``python`` (None: the environment that is active).

    It is on no package index: from a clone the command names the clone, else the address it was installed from.
    """
    extras = f"[{extra}]" if extra else ""
    clone = _clone()
    what = f"-e {_quoted(str(clone) + extras)}" if clone else f'"robotrials{extras} @ {_source()}"'
    return f"{f'{shlex.quote(python)} -m ' if python else ''}pip install {what}"


def _quoted(text: str) -> str:
    return shlex.quote(text) if '"' in text or "$" in text else f'"{text}"'


def _clone() -> Path | None:
    """The clone that the running code is in; None where it was installed as a wheel."""
    folder = PACKAGE.parents[1]
    return folder if (folder / "pyproject.toml").is_file() and (folder / "src" / "robotrials").is_dir() else None


def _source() -> str:
    """What pip noted as this installation's address (PEP 610), else the project's."""
    from importlib.metadata import PackageNotFoundError, distribution  # costs more than the rest, and is rarely needed

    try:
        noted = json.loads(distribution("robotrials").read_text("direct_url.json") or "{}")
        if noted.get("vcs_info"):
            return f"git+{noted['url']}@{noted['vcs_info']['commit_id']}"
    except (PackageNotFoundError, ValueError, KeyError, TypeError):
        pass
    return f"git+{REPOSITORY}"
