"""What an interpreter has installed for a benchmark: this one, or another that workers are to run in.

``python -m robotrials.benchmarks.installed NAME`` answers for the interpreter it runs in, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from robotrials.benchmarks.registry import benchmark_class, package_versions, require_installed
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.plan.config import EnvChoice

_TIMEOUT_S = 120


@dataclass(frozen=True)
class Installed:
    """``packages``: distribution to version of what can change an outcome; ``python`` such as ``3.12``."""

    python: str
    packages: Mapping[str, str]


def look_up(choice: EnvChoice) -> Installed:
    """What there is for ``choice`` in the interpreter that its workers will run in. No simulator is imported.

    Raises:
        NotInstalledError: the benchmark cannot run there; the message says what to install.
        ConfigError: the interpreter does not run, or has no robotrials.
    """
    if choice.python is None:
        return _here(choice.type)
    command = [choice.python, "-m", __name__, choice.type]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")])),
    }
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"--env.python={choice.python} does not run: {error}") from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        tail = done.stderr.strip().splitlines()[-1:] or ["no answer"]
        raise ConfigError(
            f"--env.python={choice.python} has no robotrials of this version ({tail[0]}): "
            f"{choice.python} -m pip install robotrials"
        ) from None
    if "problem" in answer:
        raise NotInstalledError(answer["problem"])
    return Installed(answer["python"], answer["packages"])


def _here(name: str) -> Installed:
    cls = benchmark_class(name)
    require_installed(cls)
    return Installed(f"{sys.version_info.major}.{sys.version_info.minor}", package_versions(cls))


def main() -> None:
    try:
        answer = asdict(_here(sys.argv[1]))
    except ConfigError as error:
        answer = {"problem": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
