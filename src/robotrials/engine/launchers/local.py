"""Workers as child processes on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from robotrials.engine.launchers.base import WorkerExit
from robotrials.errors import ConfigError
from robotrials.machine.limits import remedy

_TAIL_BYTES = 2000

# As ``python -m``, but the current folder comes last on the path instead of first: a script of the user's that is
# called metaworld.py or random.py must not stand in for the package of that name.
_RUN_MODULE = (
    "import os, runpy, sys; sys.path[:] = [p for p in sys.path if p not in ('', os.getcwd())] + [os.getcwd()]; "
    "module = sys.argv.pop(1); runpy.run_module(module, run_name='__main__', alter_sys=True)"
)


class LocalLauncher:
    """Starts ``python -m <module> --connect=... --name=... --parent=...``, each in a session of its own, its
    output in ``log_dir/<name>.log``."""

    def __init__(
        self,
        module: str,
        address: str,
        log_dir: Path,
        environment: Mapping[str, str],
        python: str | None = None,
        arguments: Callable[[str], Sequence[str]] = lambda name: (),
        variables: Callable[[str], Mapping[str, str]] = lambda name: {},
    ) -> None:
        self._module = module
        self._address = address
        self._log_dir = log_dir
        self._environment = dict(environment)
        self._python = python or sys.executable
        self._arguments = arguments
        self._variables = variables
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        command = self._command(name)
        try:
            with open(self._log_path(name), "ab") as log:
                # A session of its own: Ctrl-C in the terminal reaches the coordinator, which decides what workers do.
                self._processes[name] = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**self._environment, **self._variables(name)},
                    start_new_session=True,
                )
        except OSError as error:
            hint = remedy(error)
            raise ConfigError(
                f"cannot start a process with {command[0]}: {error}" + (f". {hint}" if hint else "")
            ) from None

    def _command(self, name: str) -> list[str]:
        return [
            self._python,
            "-c",
            _RUN_MODULE,
            self._module,
            f"--connect={self._address}",
            f"--name={name}",
            f"--parent={os.getpid()}",
            *self._arguments(name),
        ]

    def pids(self) -> list[int]:
        """Of the processes that have not been told by ``exits``."""
        return [process.pid for process in self._processes.values()]

    def exits(self) -> list[WorkerExit]:
        ended = [(name, process) for name, process in self._processes.items() if process.poll() is not None]
        exits = []
        for name, process in ended:
            del self._processes[name]
            _end_group(process)
            path = self._log_path(name)
            exits.append(WorkerExit.of_process(name, process.returncode, str(path), _tail(path)))
        return exits

    def unplaced(self) -> Collection[str]:
        return ()

    def kill(self, name: str) -> None:
        process = self._processes.get(name)
        if process is not None:
            _end_group(process)

    def terminate(self, name: str) -> None:
        """Ask it to end in order."""
        process = self._processes.get(name)
        if process is not None and process.poll() is None:
            process.terminate()

    def close(self, grace_s: float) -> None:
        deadline = time.monotonic() + grace_s
        while time.monotonic() < deadline and any(p.poll() is None for p in self._processes.values()):
            time.sleep(0.01)
        for process in self._processes.values():
            _end_group(process)
            process.wait()
        self._processes.clear()

    def _log_path(self, name: str) -> Path:
        return self._log_dir / f"{name}.log"


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for the worker and whatever a simulator started in its session. SIGKILL also ends a stopped process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _tail(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
