"""A process that runs somebody else's simulator for this one: started, heard line by line, ended with all it left.

A simulator may start processes and forget them. They inherit what is open, so the end of a pipe says nothing of the
process that was started, and waiting for it would take as long as they live: lines end with the process itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

_LOOK_UP_MS = 100
_CHUNK = 65536


class Child:
    """``command`` with the number of a file descriptor as its last word, on which it writes its lines.

    It has a process group of its own, which ``end`` kills as a whole. What it starts by ``exec`` does not inherit the
    descriptor once it has called ``keep_to_itself``.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], output: IO[Any] | int) -> None:
        """``output`` takes both what it prints and its errors."""
        self._reader, writer = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, str(writer)],
                pass_fds=[writer],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(environment),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._reader)
            raise
        finally:
            os.close(writer)

    def lines(self, timeout_s: float | None = None) -> Iterator[str]:
        """What it says, until it has ended.

        Raises:
            TimeoutError: ``timeout_s`` have passed since the call.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        rest = b""
        waiting = select.poll()
        waiting.register(self._reader, select.POLLIN | select.POLLHUP)
        while True:
            ended = self._process.poll() is not None  # asked first: what it wrote before its end is still there
            if waiting.poll(0 if ended else _LOOK_UP_MS):
                said = os.read(self._reader, _CHUNK)
                *whole, rest = (rest + said).split(b"\n")
                for line in whole:
                    yield line.decode()
                if said:
                    continue
                return
            if ended:
                return
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"no answer in {timeout_s:.0f} s")

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Its exit status, negative for a signal; None: it has not ended in time."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Kill it, and all processes of its group that are left."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._reader)


def keep_to_itself(descriptor: int) -> None:
    """For the process that was started: what it executes does not inherit the descriptor of its lines."""
    os.set_inheritable(descriptor, False)
