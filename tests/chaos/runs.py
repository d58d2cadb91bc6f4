"""A run as a person starts it, in processes that can be killed, and what must hold of it when all is over."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

from robotrials.results.ledger import Ledger

ROOT = Path(__file__).parents[2]
MARK = "ROBOTRIALS_CHAOS_RUN"
"""Environment variable that every process of one run inherits: by it what is left of the run is found."""
PATIENCE_S = 300.0
"""For what must happen: never a figure, only an end to a test that would hang."""

Outcomes = dict[tuple[int, int], tuple[Any, ...]]
"""By task and index: end, success, steps, reward sum and maximum."""

MODULES = {"worker": "robotrials.worker.process", "server": "robotrials.serving.process"}
TOY = ("--policy.type=tests.toy:Seer", "--env.type=tests.chaos.faulty:Faulty", "--env.task=a,b")
METAWORLD = ("--policy.type=expert", "--env.type=metaworld", "--env.task=reach-v3,door-open-v3")
PUSHT = (
    "--policy.type=tests.pixel_policy:PixelPolicy",
    "--env.type=pusht",
    "--env.task=PushT-v0",
    "--env.episode_length=60",
)


class ChaosRun:
    """One run directory, and the command lines that work in it."""

    def __init__(self, folder: Path, flags: Sequence[str], directory: Path | None = None) -> None:
        """``folder`` is a short path: sockets lie in it."""
        self.folder = folder
        self.directory = directory or folder / "run"
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.flags = tuple(flags)
        self.mark = uuid4().hex
        self.log = folder / "output.txt"
        self.environment = {
            **os.environ,
            MARK: self.mark,
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(ROOT),
            "MUJOCO_GL": os.environ.get("MUJOCO_GL", "egl"),
        }
        self.process: subprocess.Popen[bytes] | None = None
        self._started: list[subprocess.Popen[bytes]] = []

    def begin(self, *more: str, module: str = "robotrials") -> subprocess.Popen[bytes]:
        """``robotrials eval`` with this run's flags."""
        words = ("eval", *self.flags, "--eval.record=none", *more, f"--output_dir={self.directory}")
        self.process = self.command(*words, module=module)
        return self.process

    def resume(self) -> subprocess.Popen[bytes]:
        self.process = self.command("resume", str(self.directory))
        return self.process

    def command(self, *words: str, module: str = "robotrials") -> subprocess.Popen[bytes]:
        """``robotrials WORDS`` beside the run, its output in the same file."""
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *words],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._started.append(process)
        return process

    def wait(self, process: subprocess.Popen[bytes] | None = None) -> int:
        """The exit status of ``process`` (default: the coordinator's)."""
        process = process or self.process
        assert process is not None
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running; it said:\n{self.said[-4000:]}") from None

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def processes(self) -> list[psutil.Process]:
        """All that is alive of this run, children or not."""
        return [process for process in psutil.process_iter() if self._is_own(process)]

    def members(self, kind: str) -> list[psutil.Process]:
        """The living ``worker`` or ``server`` processes of the coordinator."""
        assert self.process is not None
        try:
            children = psutil.Process(self.process.pid).children()
        except psutil.NoSuchProcess:
            return []
        return [child for child in children if _runs(child, MODULES[kind])]

    def n_finished(self) -> int:
        path = self.directory / "ledger.sqlite"
        if not path.exists():
            return 0
        with Ledger.open(path, read_only=True) as ledger:
            return len(ledger.accepted_ids())

    def wait_for_records(self, n: int) -> None:
        until(lambda: self.n_finished() >= n or self.is_over, lambda: self.said)
        assert self.n_finished() >= n, self.said

    def until_nobody_is_left(self) -> None:
        until(lambda: not self.processes(), lambda: f"still there: {[p.cmdline() for p in self.processes()]}")
        for started in self._started:
            started.wait()

    def end(self) -> None:
        """Whatever a failed test has left."""
        for process in self.processes():
            with _gone():
                process.send_signal(signal.SIGKILL)
        for started in self._started:
            started.wait()

    @property
    def is_over(self) -> bool:
        """Whether the coordinator has ended."""
        return self.process is not None and self.process.poll() is not None

    def _is_own(self, process: psutil.Process) -> bool:
        with _gone():
            return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == self.mark
        return False


class _gone:  # noqa: N801  reads as a phrase where it is used
    """Swallows that a process ended while it was looked at."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        return kind is not None and issubclass(kind, (psutil.Error, ProcessLookupError))


def _runs(process: psutil.Process, module: str) -> bool:
    with _gone():
        return process.status() != psutil.STATUS_ZOMBIE and module in process.cmdline()
    return False


def until(condition: Callable[[], object], explain: Callable[[], str] = lambda: "") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain\n{explain()[-4000:]}"
        time.sleep(0.02)


def outcomes(directory: Path) -> Outcomes:
    n = json.loads((directory / "run.json").read_text())["config"]["eval"]["n_episodes"]
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return {divmod(row[0], n): row[1:] for row in ledger.outcomes()}


def check(
    run: ChaosRun,
    reference: Outcomes,
    *,
    status: int = 0,
    errors: Iterable[tuple[int, int]] = (),
    says: Iterable[str] = (),
) -> None:
    """What holds after any fault. ``status`` is what the last command returned, ``errors`` the (task, index) of the
    episodes that must have erred, ``says`` what a person must have been told."""
    run.until_nobody_is_left()
    check_directory(run.directory, reference, status, errors)
    assert [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE] == []
    assert [path.name for path in run.temporary.iterdir() if not path.name.startswith("robotrials-worker-")] == []
    for words in says:
        assert words in run.said, f"not said: {words!r}\n{run.said[-4000:]}"
    assert "Traceback" not in run.said, run.said


def check_directory(
    directory: Path, reference: Outcomes, status: int = 0, errors: Iterable[tuple[int, int]] = ()
) -> None:
    """Of ``check``, all that the run directory tells."""
    erred = set(errors)
    described = json.loads((directory / "run.json").read_text())
    n, n_planned = described["config"]["eval"]["n_episodes"], described["plan"]["n_episodes"]
    connection = sqlite3.connect(directory / "ledger.sqlite")
    counts = dict(connection.execute("SELECT episode, SUM(accepted) FROM attempts GROUP BY episode"))
    connection.close()
    assert counts == dict.fromkeys(range(n_planned), 1), "every episode has exactly one accepted row"
    found = outcomes(directory)
    assert {place for place, outcome in found.items() if outcome[0] == "error"} == erred
    assert status == (2 if erred else 0)
    wanted = {place: reference[place] for place in (divmod(episode, n) for episode in range(n_planned))}
    for place in erred:
        assert found[place][1] is None, "an error is neither success nor failure"
        del found[place], wanted[place]
    assert found == wanted
    told = json.loads((directory / "metrics.json").read_text())
    assert (told["n_planned"], told["n_errors"], told["complete"]) == (n_planned, len(erred), not erred)
    assert told["n_success"] == sum(bool(outcome[1]) for outcome in found.values())
    endings = (".part", ".tmp", "-wal", "-shm", "-journal")
    left = [str(p.relative_to(directory)) for p in directory.rglob("*") if p.name.endswith(endings)]
    left += [name for name in (".session", "connect.json") if (directory / name).exists()]
    assert left == []
