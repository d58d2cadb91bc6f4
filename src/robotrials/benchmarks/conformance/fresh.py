"""Episodes played in a process of their own, for check-env's ``fresh process``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

_TIMEOUT_S = 600


def play_elsewhere(order: Mapping[str, Any]) -> tuple[str, str]:
    """Let a fresh process play what ``order`` says (``trace.main``); what it printed on stdout and on stderr.

    Files take it: a process that the simulator leaves behind would keep a pipe open.

    Raises:
        ChildProcessError: it did not end in time, or not well; the message says how.
    """
    command = [sys.executable, "-m", "robotrials.benchmarks.conformance.trace", json.dumps(order)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, timeout=_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise ChildProcessError(
                f"a fresh process has not played {len(order['numbers'])} episodes in {_TIMEOUT_S} s"
            ) from None
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode(errors="replace"))
    if done.returncode:
        lines = said[1].strip().splitlines() or ["nothing on stderr"]
        raise ChildProcessError(f"a fresh process ends with {_how(done.returncode)}: {lines[-1][:200]}")
    return said[0], said[1]


def _how(status: int) -> str:
    return f"exit status {status}" if status > 0 else signal.Signals(-status).name
