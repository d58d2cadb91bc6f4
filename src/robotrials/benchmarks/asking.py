"""A question to another interpreter, which can build what this process must not import: JSON in, JSON out.

The module that is asked is run by that interpreter (``python -m module``) and calls ``answer``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from robotrials.benchmarks.gl import gl_environment
from robotrials.errors import ConfigError, RobotrialsError


def ask(module: str, question: str, python: str | None, flag: str, timeout_s: float) -> dict[str, Any]:
    """What ``module`` answers in ``python`` (None: this interpreter); ``flag`` is what the person asked for.

    Raises:
        ConfigError: it cannot be asked, or ends without an answer, or its answer is that there is a problem.
    """
    python = python or sys.executable
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, **gl_environment(os.environ), "PYTHONPATH": path}
    command = [python, "-m", module]
    try:
        done = subprocess.run(
            command, input=question, capture_output=True, text=True, timeout=timeout_s, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{flag}: {python} could not be asked what it looks like: {error}") from None
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        tail = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise ConfigError(f"{flag} could not be built by {python}: {tail[0]}") from None
    if "problem" in answer:
        raise ConfigError(answer["problem"])
    return answer


def answer(find: Callable[[dict[str, Any]], dict[str, Any]], flag_of: Callable[[dict[str, Any]], str]) -> None:
    """Read the question, answer with what ``find`` finds, and end this process."""
    question = json.loads(sys.stdin.read())
    answer_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # simulators greet on standard output, where only the answer belongs
    try:
        found = find(question)
    except RobotrialsError as error:
        found = {"problem": str(error)}
    except Exception as error:  # noqa: BLE001  somebody else's code may raise anything; the person is told
        found = {"problem": f"{flag_of(question)}: building it failed: {type(error).__name__}: {error}"}
    with answer_to:
        json.dump(found, answer_to)
    sys.stderr.flush()
    os._exit(0)  # what was built is closed; see running/worker_process.py for why the interpreter is not torn down
