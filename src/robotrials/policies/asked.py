"""A question about a policy to the interpreter that it will run in, before anything starts.

``python -m robotrials.policies.asked`` is given ``{"type", "path", "options", "build"}`` as JSON. It
checks the packages and the device that the policy needs; with ``build`` it also makes the policy and answers with its
spec. Nothing is built in the process that asks.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from contextlib import ExitStack
from typing import Any

from robotrials.benchmarks.asking import answer
from robotrials.benchmarks.child_process import Child
from robotrials.errors import ConfigError, NotInstalledError, RobotrialsError, WireError
from robotrials.install import install_command
from robotrials.plan.config import PolicyChoice
from robotrials.policies import registry as policies
from robotrials.policies.base import PolicySpec
from robotrials.wire.codec import from_plain, to_plain

_PATIENCE_S = 30.0
"""A policy that takes longer to make is not waited for: it will say by itself what is wrong."""


def ask_policy(choice: PolicyChoice, python: str | None, build: bool, environ: dict[str, str]) -> PolicySpec | None:
    """What the policy needs and hands out, asked in ``python`` (None: this interpreter); None where that is not known
    in time or without ``build``. ``environ`` is that of the process that will run it.

    Raises:
        ConfigError: the interpreter lacks robotrials, or the policy would be refused there; the message says why.
    """
    question = {"type": choice.type, "path": choice.path, "options": dict(choice.options), "build": build}
    path = os.pathsep.join(filter(None, [environ.get("PYTHONPATH"), os.getcwd()]))
    command = [python or sys.executable, "-m", __name__, json.dumps(question, default=str)]
    with tempfile.TemporaryFile() as output:
        try:
            child = Child(command, {**environ, "PYTHONPATH": path}, output)
        except OSError as error:
            raise ConfigError(f"{command[0]} does not run: {error}") from None
        try:
            line = next(child.lines(_PATIENCE_S), None)
        except TimeoutError:
            return None
        finally:
            child.end()
        if line is None:
            if python is None:
                return None  # it died in its own way, and will do so again where its log is kept
            output.seek(0)
            said = output.read().decode(errors="replace").strip().splitlines()[-1:] or ["it ended without an answer"]
            raise ConfigError(
                f"{python} cannot run policies of this robotrials: {said[0]}. Install it there: "
                f"{install_command(python=python)}"
            )
    found = json.loads(line)
    if "problem" in found:
        raise (NotInstalledError if found.get("not_installed") else ConfigError)(found["problem"])
    try:
        return from_plain(PolicySpec, found["spec"]) if found["spec"] is not None else None
    except WireError:  # another version of robotrials is there
        return None


def find(question: dict[str, Any], closing: ExitStack) -> dict[str, Any]:
    """The answer to ``question``; see the module. A policy leaves nothing to close."""
    choice = PolicyChoice(question["type"], question["path"], question["options"])
    try:
        policies.require_here(choice)
        if not question["build"]:
            return {"spec": None}
        return {"spec": to_plain(policies.make_policy(choice).spec())}
    except NotInstalledError as error:
        return {"problem": str(error), "not_installed": True}
    except RobotrialsError:
        raise
    except Exception as error:  # noqa: BLE001  a user's constructor may raise anything; the person is told where
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename}, line {place.lineno}"
        return {"problem": f"could not make the policy: {type(error).__name__}: {error} ({where})"}


def main() -> None:
    answer(find, lambda question: f"policy {question['type'] or question['path']}")


if __name__ == "__main__":
    main()
