"""``robotrials worker``: workers on any machine, for a run that somebody else has started.

Each is a process of its own that is watched from here: one that dies is started again under another name, one that is
told to stop stays away. Between this process and the run there is nothing but what the workers say themselves.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

from robotrials.control.heartbeat import ADOPTED, TOKEN_VARIABLE, UNFIT, UNREACHED
from robotrials.engine.launchers.local import LocalLauncher
from robotrials.machine.threads import thread_limits
from robotrials.rendering.gl import gl_environment

_TICK_S = 0.2
_GRACE_S = 10.0
_TOO_SOON_S = 5.0
_MAX_FAILURES = 3
"""So many workers in a row may die within ``_TOO_SOON_S``: something is wrong with all of them."""


class RemoteWorkers:
    """``count`` processes for the run at ``address``; ``python`` runs them (None: this interpreter)."""

    def __init__(
        self,
        address: str,
        token: str,
        count: int,
        log_dir: Path,
        python: str | None = None,
        is_on: Callable[[], bool] = lambda: True,
        scenes: int = 1,
    ) -> None:
        """Each has ``scenes`` of them. ``is_on`` says whether the run still is, where that can be seen from here."""
        self._is_on = is_on
        self._address = address
        self._count = count
        self._launcher = LocalLauncher(
            "robotrials.worker.process",
            address,
            log_dir,
            {**os.environ, **gl_environment(os.environ), **thread_limits(1), TOKEN_VARIABLE: token},
            python,
            lambda name: ["--joins", f"--scenes={scenes}"],
        )
        self._started: dict[str, float] = {}
        self._number = 0
        self._leaving = False

    def leave(self) -> None:
        """Let every worker finish its episode and go; safe to call from a signal handler."""
        self._leaving = True

    def run(self, tell: Callable[[str], None]) -> bool:
        """Until every worker was told to stop, or has left; False when they could not work. ``tell`` gets a line for
        every worker that ends otherwise."""
        failures, told, useless = 0, False, set[str]()
        for _ in range(self._count):
            self._start()
        try:
            while self._started:
                time.sleep(_TICK_S)
                if not self._is_on():
                    # One that came too late to be told so would wait for its first word.
                    self._launcher.close(grace_s=_GRACE_S)
                    return True
                if self._leaving and not told:
                    told = True
                    for name in self._started:
                        self._launcher.terminate(name)
                for gone in self._launcher.exits():
                    began = self._started.pop(gone.name)
                    if gone.status == 0 or self._leaving:
                        continue
                    if gone.status == ADOPTED:
                        tell(f"worker {gone.name} ended: the run is over, or cannot be reached; log: {gone.log}")
                        continue
                    if gone.status == UNREACHED:
                        useless.add(f"nobody at {self._address} knows this token, or no run listens there")
                        continue
                    if gone.status == UNFIT:
                        useless.add(f"workers of here cannot play this run: {_last_words(gone.tail)}; log: {gone.log}")
                        continue
                    failures = failures + 1 if time.monotonic() - began < _TOO_SOON_S else 0
                    tell(f"worker {gone.name} ended ({gone.how}); log: {gone.log}")
                    if failures >= _MAX_FAILURES:
                        tell(f"workers cannot work here. The end of {gone.log}:\n{gone.tail.rstrip()}")
                        return False
                    self._start()
        finally:
            self._launcher.close(grace_s=0.0)
        for words in sorted(useless):
            tell(words)
        return not useless

    def _start(self) -> None:
        self._number += 1
        name = f"{socket.gethostname()}-{os.getpid()}-{self._number}"
        self._started[name] = time.monotonic()
        self._launcher.start(name)


def _last_words(log: str) -> str:
    """Without the date and the level."""
    line = (log.splitlines() or ["no word"])[-1]
    return re.sub(r"^[-\d]+ [:,\d]+ [A-Z]+ (stop: )?", "", line)
