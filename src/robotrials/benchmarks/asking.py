"""A question to another interpreter, which can build what this process must not import: JSON in, JSON out.

The module that is asked is run by that interpreter (``python -m module QUESTION``) and calls ``answer``.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any

from robotrials.benchmarks.child_process import Child, keep_to_itself
from robotrials.errors import ConfigError, RobotrialsError
from robotrials.rendering.gl import gl_environment

log = logging.getLogger(__name__)

_CLOSING_S = 30.0
"""So long what was built may take to close after the answer; then it is killed."""
_CLOSING_FAILED = 3

Find = Callable[[dict[str, Any], ExitStack], dict[str, Any]]
"""From a question to its answer; what it has built is closed by the stack, after the answer was given."""


def ask(module: str, question: str, python: str | None, flag: str, timeout_s: float) -> dict[str, Any]:
    """What ``module`` answers in ``python`` (None: this interpreter); ``flag`` is what the person asked for.

    The answer counts whatever becomes of that process afterwards: an environment that cannot be closed, or ends the
    process with itself, has answered. Processes that it has left are ended.

    Raises:
        ConfigError: it cannot be asked, or ends without an answer, or its answer is that there is a problem.
    """
    python = python or sys.executable
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, **gl_environment(os.environ), "PYTHONPATH": path}
    with tempfile.TemporaryFile() as output:
        try:
            child = Child([python, "-m", module, question], environment, output)
        except OSError as error:
            raise ConfigError(f"{flag}: {python} cannot be started to build it: {error.strerror}") from None
        try:
            line = next(child.lines(timeout_s), None)
            if line is None:
                tail = _last_line(output) or f"exit status {child.wait()}"
                raise ConfigError(f"{flag} could not be built by {python}: {tail}")
            _note_closing(flag, child, output)
        except TimeoutError as error:
            raise ConfigError(f"{flag}: {python} was started to build it: {error}") from None
        finally:
            child.end()
    answer: dict[str, Any] = json.loads(line)
    if "problem" in answer:
        raise ConfigError(answer["problem"])
    return answer


def _note_closing(flag: str, child: Child, output: IO[bytes]) -> None:
    status = child.wait(_CLOSING_S)
    if status is None:
        log.info("%s: what was built to look at it did not close within %.0f s, and was killed", flag, _CLOSING_S)
    elif status:
        log.info("%s: closing what was built to look at it failed: %s", flag, _last_line(output) or f"status {status}")


def _last_line(output: IO[bytes]) -> str:
    output.seek(0)
    lines = output.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def answer(find: Find, flag_of: Callable[[dict[str, Any]], str]) -> None:
    """Read the question, answer with what ``find`` finds, close what it has built, and end this process."""
    question, descriptor = json.loads(sys.argv[1]), int(sys.argv[2])
    keep_to_itself(descriptor)
    closing = ExitStack()
    try:
        found = find(question, closing)
    except RobotrialsError as error:
        found = {"problem": str(error)}
    except Exception as error:  # noqa: BLE001  somebody else's code may raise anything; the person is told
        found = {"problem": f"{flag_of(question)}: building it failed: {type(error).__name__}: {error}"}
    with os.fdopen(descriptor, "w") as answer_to:
        answer_to.write(json.dumps(found) + "\n")
    status = 0
    try:
        closing.close()
    except Exception as error:  # noqa: BLE001  the answer stands; the coordinator's log says so
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        status = _CLOSING_FAILED
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # what was built is closed; see worker/process.py for why the interpreter is not torn down
