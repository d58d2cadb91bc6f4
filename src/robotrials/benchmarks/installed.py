"""What an interpreter has installed for a benchmark: this one, or another that workers are to run in.

``python -m robotrials.benchmarks.installed NAME ...`` answers for the interpreter it runs in, a line of JSON for each;
with ``--import`` it also imports the simulator, which is the only proof that it works.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from robotrials.benchmarks.registry import benchmark_class, package_versions, require_installed
from robotrials.environments import folders
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.install import install_command
from robotrials.plan import import_path
from robotrials.plan.config import EnvChoice
from robotrials.rendering.gl import gl_environment

_TIMEOUT_S = 120
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
"""Of the Python that runs, as ``3.12``."""


@dataclass(frozen=True)
class Installed:
    """``packages``: distribution to version of what can change an outcome; ``python`` such as ``3.12``."""

    python: str
    packages: Mapping[str, str]


def placed(choice: EnvChoice) -> EnvChoice:
    """``choice`` with the interpreter its workers will run in: the one the user names (``--env.python``), else that of
    the environment which ``robotrials bench install`` has made, else, as None, the running one."""
    if choice.python is not None or import_path.is_import_path(choice.type):
        return choice
    environment = folders.find(choice.type)
    return replace(choice, python=environment.python) if environment else choice


def look_up(choice: EnvChoice, try_import: bool = False) -> Installed:
    """What there is for ``choice`` in the interpreter that its workers will run in.

    No simulator is imported, unless ``try_import`` asks for it; then it is, in a process of its own.

    Raises:
        NotInstalledError: the benchmark cannot run there; the message says what to install.
        ConfigError: the interpreter does not run, or has no robotrials.
    """
    if choice.python is None and not try_import:
        return _here(choice.type)
    python = choice.python or sys.executable
    words = [choice.type, *(["--import"] if try_import else [])]
    try:
        done = _run(python, words, _added(choice))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"--env.python={python} does not run: {error}{_again(python, choice.type)}") from None
    if try_import and done.returncode < 0:
        raise NotInstalledError(f"importing {choice.type} kills the process: signal {-done.returncode}")
    return read_answer(done, f"--env.python={python}", install_command(python=python))


def look_up_all(choices: Sequence[EnvChoice]) -> list[Installed | ConfigError]:
    """``look_up`` with ``try_import`` of each, in order; what it raises is in the place of its answer.

    Simulators of one interpreter share most of what they import, so one process imports all of them. What fails there
    is asked again alone: it may have been another's fault.
    """
    groups: dict[tuple[Any, ...], list[EnvChoice]] = {}
    for choice in choices:
        groups.setdefault((choice.python, *sorted(_added(choice).items())), []).append(choice)
    together: dict[str, Installed] = {}
    for group in groups.values():
        if len(group) > 1:
            together |= _import_together(group)
    return [together.get(choice.type) or _look_up_alone(choice) for choice in choices]


def _look_up_alone(choice: EnvChoice) -> Installed | ConfigError:
    try:
        return look_up(choice, try_import=True)
    except ConfigError as error:
        return error


def _import_together(group: Sequence[EnvChoice]) -> dict[str, Installed]:
    """What one process answers that imports all of ``group``, as far as it comes and as it works."""
    python = group[0].python or sys.executable
    try:
        done = _run(python, [*(choice.type for choice in group), "--import"], _added(group[0]))
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found: dict[str, Installed] = {}
    for line in done.stdout.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):  # what simulators print on import
            answer = json.loads(line)
            found[answer["name"]] = Installed(answer["python"], answer["packages"])
    return found


def _added(choice: EnvChoice) -> dict[str, str]:
    return folders.variables(benchmark_class(choice.type).installation, choice.python, os.environ)


def _run(python: str, words: Sequence[str], added: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """This module, run by ``python`` with the variables of a worker."""
    environment = {**os.environ, **gl_environment(os.environ), **added}
    path = (os.getcwd(), environment.get("PYTHONPATH"))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    return subprocess.run(
        [python, "-m", __name__, *words],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        env=environment,
        stdin=subprocess.DEVNULL,
    )


QUESTION = ("-m", __name__)
"""What to run with an interpreter, and after it a benchmark's name, for ``read_answer``."""


def read_answer(done: subprocess.CompletedProcess[str], where: str, remedy: str) -> Installed:
    """What a process that ran ``QUESTION`` has said; ``where`` and ``remedy`` are for messages.

    Raises:
        NotInstalledError: the benchmark cannot run there.
        ConfigError: there is no robotrials there.
    """
    try:
        answer = json.loads(done.stdout.splitlines()[-1])  # simulators print on import, before it
    except (ValueError, IndexError):
        tail = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise ConfigError(f"{where} has no robotrials of this version ({tail[0]}): {remedy}") from None
    if "problem" in answer:
        raise NotInstalledError(answer["problem"])
    return Installed(answer["python"], answer["packages"])


def _again(python: str, name: str) -> str:
    ours = python.startswith(str(folders.home()))
    return f"; to make that environment: robotrials bench install {name}" if ours else ""


def _here(name: str) -> Installed:
    cls = benchmark_class(name)
    require_installed(cls)
    return Installed(VERSION, package_versions(cls))


def _import_all(name: str) -> None:
    """
    Raises:
        NotInstalledError: one of the benchmark's modules does not import; whatever it raises, it is told.
    """
    cls = benchmark_class(name)
    for module in cls.modules:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                importlib.import_module(module)
        except (Exception, SystemExit) as error:  # a simulator's import may raise anything
            said = str(error).strip().splitlines() or [""]
            raise NotInstalledError(f"import {module} fails: {type(error).__name__}: {said[0]}") from error


def main() -> None:
    for name in (word for word in sys.argv[1:] if word != "--import"):
        try:
            answer = {"name": name, **asdict(_here(name))}
            if "--import" in sys.argv:
                _import_all(name)
        except ConfigError as error:
            answer = {"name": name, "problem": str(error)}
        sys.stdout.write("\n" + json.dumps(answer) + "\n")
        sys.stdout.flush()
    if "--import" in sys.argv:
        os._exit(0)  # what simulators print as their globals are torn down tells nobody anything


if __name__ == "__main__":
    main()
