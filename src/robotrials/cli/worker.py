"""``robotrials worker``: more hands for a run that is on, from this machine or another."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from robotrials.cli import draw, output
from robotrials.cli.verb import Verb, flags_of
from robotrials.errors import ConfigError
from robotrials.plan.config import option
from robotrials.plan.options import build


@dataclass(frozen=True)
class WorkerFlags:
    run: Path | None = option(None, "the run's directory, where both machines see the same disk")
    connect: str | None = option(None, "where the run listens, from where there is no such disk")
    token_file: Path | None = option(
        None, 'its secret: the "token" in DIR/connect.json; or set ROBOTRIALS_TOKEN. Videos are then sent to the run'
    )
    n: int = option(1, "workers, one process each")
    scenes: int = option(
        1, "scenes in each of these processes, where the run's benchmark steps several at once; each counts as a worker"
    )
    python: str | None = option(None, "interpreter that has the benchmark [this one]")
    logs: Path | None = option(
        None, "where they write what they do [a temporary folder, which is removed when all went well]"
    )


VERB = Verb(
    name="worker",
    usage=(
        "worker --run=DIR [--n=4]",
        "worker --connect=tcp://HOST:PORT --token_file=FILE [--n=4]",
    ),
    about="""
    Join a run that was started with --eval.listen, take episodes until it is complete, and leave. Workers may come and
    go at any time; Ctrl-C lets each finish its episode, a second one ends them at once: their episodes run again
    elsewhere.
    """,
    flags=flags_of(WorkerFlags, run="DIR", connect="ADDRESS", token_file="FILE", python="PATH", logs="DIR"),
    ending="""
Exit status
  0  the run needs no more, or every worker has left
  1  the run cannot be reached or used from here, or refuses the token
  2  ended at once by a second Ctrl-C
""",
)


def run(argv: Sequence[str]) -> int:
    """Parse, join, work; returns the exit status."""
    from robotrials.control.joining import CONNECT_FILE
    from robotrials.engine.remote_workers import RemoteWorkers

    words = VERB.parse(argv)
    words.refuse_plain()
    flags: WorkerFlags = build(WorkerFlags, words.flags, "--")
    for name in ("n", "scenes"):
        if getattr(flags, name) < 1:
            raise ConfigError(f"--{name} must be at least 1, got {getattr(flags, name)}")
    address, token = _door(flags)
    logs = flags.logs or Path(tempfile.mkdtemp(prefix="robotrials-worker-"))
    logs.mkdir(parents=True, exist_ok=True)
    door = None if flags.run is None else flags.run / CONNECT_FILE

    def is_on() -> bool:
        return door is None or door.exists()

    workers = RemoteWorkers(address, token, flags.n, logs, flags.python, is_on, flags.scenes)

    def leave(number: int, frame: object) -> None:
        signal.signal(number, signal.default_int_handler)
        output.line("leaving when the episodes in hand are over")
        workers.leave()

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
    output.line(f"{draw.count(flags.n, 'worker')} for {address}; logs: {logs}")
    told = []

    def tell(words: str) -> None:
        told.append(words)
        output.line(words)

    did_work = workers.run(tell)
    if did_work and not told and flags.logs is None:
        shutil.rmtree(logs, ignore_errors=True)  # there is nothing to look up in them
    return 0 if did_work else 1


def _door(flags: WorkerFlags) -> tuple[str, str]:
    from robotrials.control.joining import read_join_file
    from robotrials.wire.transport import host_of

    if (flags.run is None) == (flags.connect is None):
        raise ConfigError("robotrials worker needs either --run=DIR or --connect=tcp://HOST:PORT")
    if flags.run is not None:
        return read_join_file(flags.run)
    assert flags.connect is not None
    host_of(flags.connect, "--connect", ", as the run has printed it")
    if flags.token_file is not None:
        try:
            token = flags.token_file.expanduser().read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(f"--token_file={flags.token_file} cannot be read: {error.strerror}") from None
    else:
        token = os.environ.get("ROBOTRIALS_TOKEN", "").strip()
    if not token:
        raise ConfigError("--connect needs the run's secret: --token_file=FILE, or the variable ROBOTRIALS_TOKEN")
    return flags.connect, token
