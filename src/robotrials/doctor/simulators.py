"""Interpreters that have benchmarks: whether these import there, at which versions, and the system packages wanted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from robotrials.benchmarks.inventory import Entry, inventory
from robotrials.benchmarks.registry import benchmark_class
from robotrials.doctor import versions
from robotrials.doctor.finding import OK, PROBLEM, WARNING, Finding
from robotrials.rendering.system_packages import install_line, missing

_TIMEOUT_S = 60
_ASK = (
    "import importlib.metadata as m, json, sys\n"
    "found = {}\n"
    "for name in sys.argv[1:]:\n"
    "    try: found[name] = m.version(name)\n"
    "    except m.PackageNotFoundError: pass\n"
    "print(json.dumps(found))\n"
)


def examine() -> list[Finding]:
    """Every benchmark that is installed somewhere, the versions in each of these interpreters, and system packages."""
    entries = [entry for entry in inventory() if entry.state in ("ok", "problem")]
    found = [_of_entry(entry) for entry in entries]
    pythons = {entry.python or sys.executable: entry.name if entry.python else "this Python" for entry in entries}
    pythons.setdefault(sys.executable, "this Python")
    for python, where in pythons.items():
        found += versions.examine(where, installed_in(python, versions.packages()))
    return [*found, *_system(entries)]


def installed_in(python: str, packages: Sequence[str]) -> dict[str, str]:
    """Distribution to version of those of ``packages`` that ``python`` has; empty where it does not run."""
    try:
        done = subprocess.run(
            [python, "-c", _ASK, *packages],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
        answer: dict[str, str] = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return {}
    return answer


def _of_entry(entry: Entry) -> Finding:
    where = entry.python or "this Python"
    if entry.state == "problem":
        return Finding(entry.name, PROBLEM, entry.note, f"robotrials bench install {entry.name} --force")
    what = f"imports in {where} (Python {entry.python_version})"
    return Finding(entry.name, WARNING if entry.note else OK, what, entry.note)


def _system(entries: Sequence[Entry]) -> list[Finding]:
    wanted = sorted({package for entry in entries for package in benchmark_class(entry.name).installation.system})
    lacking = missing(wanted)
    if lacking:
        what = f"missing: {', '.join(lacking)}"
        return [Finding("system packages", WARNING, what, install_line(lacking))]
    return [Finding("system packages", OK, ", ".join(wanted))] if wanted else []
