"""The ledger of a run: every attempt at every episode, written down at once, in one SQLite file.

What is durable: ``record`` returns after the commit, and a commit outlives the death of any process at any instant,
SIGKILL included, because its bytes are with the operating system by then. A loss of power may take the commits of the
last moments (``synchronous=NORMAL`` in WAL mode), never the file's consistency; those episodes simply run again.

On a network file system WAL is not safe, because it needs shared memory between processes. There the ledger uses a
rollback journal and waits for the disk at each commit, which is slower; that is said in the log.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import os
import sqlite3
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from robotrials.errors import LedgerError, UnreadableLedgerError
from robotrials.results.filesystem import network_file_system, sync_folder
from robotrials.results.record import EndReason, EpisodeRecord, Signals
from robotrials.results.schema import (
    ADDED,
    APPLICATION_ID,
    COLUMNS,
    RECORD,
    SCHEMA,
    SCHEMA_VERSION,
    read_float,
    record_of,
    row_of,
)

log = logging.getLogger(__name__)

_BUSY_TIMEOUT_S = 30.0
_SIGNALS = "signals/"
"""Keys of ``meta`` under which the signals of episodes lie."""
_MARKS = "marks/"
"""Keys of ``meta`` under which the marks of those episodes lie that have any."""

Outcome = tuple[int, str, "bool | None", int, "float | None", "float | None"]
"""(episode, end, success, steps, reward_sum, reward_max)."""


class Ledger:
    """The open ledger of a run, for the one thread that opened it.

    >>> ledger = Ledger.create(folder / "ledger.sqlite", {"plan": "9f2c"})
    >>> ledger.record([(record, True)])  # episode 3 has its result: committed when this returns
    [3]
    >>> ledger.record([(late_duplicate, True)])  # kept as an attempt, but the first result stands
    []

    Every method raises LedgerError, naming the file, when the disk is full, the file is damaged or it stays locked.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Use ``create`` or ``open``."""
        self.path = path
        self._connection = connection
        self._columns = COLUMNS

    @classmethod
    def create(cls, path: Path, identity: Mapping[str, Any]) -> Ledger:
        """Make a new ledger for the run of ``identity`` (JSON values) and open it.

        The file appears complete or not at all, whenever the process is killed.

        Raises:
            LedgerError: ``path`` exists already, or cannot be written.
        """
        path = Path(path)
        if path.exists():
            raise LedgerError(f"{path} exists already: open it to go on, or choose another run directory")
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        with _explained(path, "create"):
            _remove(temporary)
            connection = sqlite3.connect(temporary, isolation_level=None)
            try:
                connection.executescript(
                    f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; {SCHEMA}"
                )
                value = json.dumps(dict(identity), sort_keys=True)
                connection.execute("INSERT INTO meta VALUES ('identity', ?)", (value,))
            finally:
                connection.close()
            # A write-ahead log left behind by a deleted ledger must never be replayed into this one.
            for ending in ("-wal", "-shm", "-journal"):
                Path(f"{path}{ending}").unlink(missing_ok=True)
            os.replace(temporary, path)
            sync_folder(path.parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Ledger:
        """Open an existing ledger; what a killed process had committed is there.

        With ``read_only`` nothing is written, so that reports can read beside a running coordinator, and from
        archives that cannot be written.

        Raises:
            UnreadableLedgerError: the file is missing, truncated, damaged, no ledger, or of another schema version.
        """
        path = Path(path)
        if not path.is_file():
            raise UnreadableLedgerError(f"there is no ledger at {path}: is this the directory of a run?")
        with _explained(path, "open"):
            connection = _connect_to_read(path) if read_only else _connect(path, "rw")
            try:
                _check_kind(connection, path)
                if not read_only:
                    _check_pages(connection, path)
                    _choose_journal(connection, path)
                absent = _absent_columns(connection)
                for name in () if read_only else absent:
                    connection.execute(f"ALTER TABLE attempts ADD COLUMN {name} {ADDED[name]}")
            except BaseException:
                connection.close()
                raise
        ledger = cls(path, connection)
        if read_only:
            for name in absent:
                ledger._columns = ledger._columns.replace(name, f"0 AS {name}")
        return ledger

    def close(self) -> None:
        """Close; the last one to close leaves a single plain file, without a write-ahead log beside it."""
        with contextlib.suppress(sqlite3.Error):  # A reader is still there, or the disk is full: the log then stays.
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # -- writing

    def record(self, batch: Sequence[tuple[EpisodeRecord, bool]]) -> list[int]:
        """Write down attempts, each with whether it is offered as its episode's result; all of them in one transaction.

        Returns the episodes that got their result now. An episode that had one already keeps it: the late duplicate
        becomes an attempt that is not accepted, and its episode is missing from the answer. The same attempt (episode,
        attempt, worker and start) recorded twice is one row; offering it the second time can still make it the result.

        Raises:
            LedgerError: nothing of the batch was written (disk full, locked, damaged).
        """
        accepted: list[int] = []
        execute = self._connection.execute
        with _explained(self.path, "write"), self._transaction():
            for record, offered in batch:
                accept = offered and not self._has_result(record.episode)
                execute(RECORD, (*row_of(record), int(accept)))
                if accept:
                    accepted.append(record.episode)
                    if record.signals is not None:
                        signals = json.dumps(dataclasses.asdict(record.signals))
                        execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"{_SIGNALS}{record.episode}", signals))
                    if record.marks:
                        marks = json.dumps(record.marks)
                        execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"{_MARKS}{record.episode}", marks))
        return accepted

    def reopen_errors(self) -> list[int]:
        """Take back acceptance from every episode whose result is an error, so that resuming tries it again.

        The rows stay, as attempts. Returns the episodes, in order.
        """
        with _explained(self.path, "write"), self._transaction():
            where = "WHERE accepted = 1 AND ended = ?"
            error = (EndReason.ERROR.value,)
            rows = self._connection.execute(f"SELECT episode FROM attempts {where} ORDER BY episode", error).fetchall()
            self._connection.execute(f"UPDATE attempts SET accepted = 0 {where}", error)
        return [episode for (episode,) in rows]

    def set_meta(self, key: str, value: Any) -> None:
        """Keep a JSON value under ``key``, in place of what was there."""
        with _explained(self.path, "write"), self._transaction():
            text = json.dumps(value, sort_keys=True)
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, text))

    # -- reading

    def signals(self) -> dict[int, Signals]:
        """What was watched in the first episodes of each task that have a result, by episode."""
        return {episode: _signals(content) for episode, content in self._by_episode(_SIGNALS).items()}

    def marks(self) -> dict[int, tuple[str, ...]]:
        """What makes the outcomes of some episodes doubtful (``EpisodeRecord.marks``), by episode."""
        return {episode: tuple(marks) for episode, marks in self._by_episode(_MARKS).items()}

    def _by_episode(self, prefix: str) -> dict[int, Any]:
        with _explained(self.path, "read"):
            rows = self._connection.execute("SELECT key, value FROM meta WHERE key LIKE ?", (f"{prefix}%",)).fetchall()
        return dict(sorted((int(key.removeprefix(prefix)), json.loads(value)) for key, value in rows))

    def meta(self, key: str, default: Any = None) -> Any:
        """The JSON value kept under ``key``."""
        with _explained(self.path, "read"):
            row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return default if row is None else json.loads(row[0])

    @property
    def identity(self) -> dict[str, Any]:
        """What ``create`` was given."""
        identity: dict[str, Any] = self.meta("identity", {})
        return identity

    def accepted_ids(self) -> set[int]:
        """The episodes that have a result, errors included."""
        with _explained(self.path, "read"):
            return {
                episode for (episode,) in self._connection.execute("SELECT episode FROM attempts WHERE accepted = 1")
            }

    def accepted(self) -> Iterator[EpisodeRecord]:
        """The result of every episode that has one, in the order of episodes, one at a time."""
        return self._records("WHERE accepted = 1 ORDER BY episode")

    def attempts_of(self, episode: int) -> list[EpisodeRecord]:
        """Every attempt at ``episode``, accepted or not, in the order in which they were made."""
        return list(self._records("WHERE episode = ? ORDER BY attempt, started_at", episode))

    def attempt_counts(self) -> dict[int, int]:
        """How many attempts were made at each episode that was tried at all."""
        query = "SELECT episode, COUNT(DISTINCT attempt) FROM attempts GROUP BY episode"
        with _explained(self.path, "read"):
            return dict(self._connection.execute(query))

    def outcomes(self) -> Iterator[Outcome]:
        """What each finished episode came to, in the order of episodes, without anything that depends on how it was
        run: no timings, worker, attempt or video."""
        columns = "episode, ended, success, steps, reward_sum, reward_max"
        with _explained(self.path, "read"):
            rows = self._connection.execute(f"SELECT {columns} FROM attempts WHERE accepted = 1 ORDER BY episode")
            for episode, end, success, steps, reward_sum, reward_max in rows:
                verdict = None if success is None else bool(success)
                yield episode, end, verdict, steps, read_float(reward_sum), read_float(reward_max)

    def outcome_digest(self) -> str:
        """SHA-256 of the outcomes, each float by its eight bytes: equal iff two runs came to exactly the same.

        Every NaN counts as the same, and so do 0.0 and -0.0, which SQLite does not tell apart.
        """
        digest = hashlib.sha256()
        for episode, end, success, steps, reward_sum, reward_max in self.outcomes():
            verdict = 2 if success is None else int(success)
            name = end.encode()
            digest.update(struct.pack(f"<qq{len(name) + 1}sb", episode, steps, name, verdict))
            digest.update(_float_bytes(reward_sum) + _float_bytes(reward_max))
        return digest.hexdigest()

    # -- inside

    def _records(self, where: str, *parameters: int) -> Iterator[EpisodeRecord]:
        with _explained(self.path, "read"):
            for row in self._connection.execute(f"SELECT {self._columns} FROM attempts {where}", parameters):
                yield self._record_of(row)

    def _record_of(self, row: Sequence[Any]) -> EpisodeRecord:
        try:
            return record_of(row)
        except (ValueError, TypeError) as error:
            raise UnreadableLedgerError(
                f"{self.path}: a row of episode {row[0]!r} is damaged ({error}): {_SALVAGE}"
            ) from None

    def _has_result(self, episode: int) -> bool:
        query = "SELECT 1 FROM attempts WHERE episode = ? AND accepted = 1"
        return self._connection.execute(query, (episode,)).fetchone() is not None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # SQLite has rolled back by itself after some failures.
                self._connection.execute("ROLLBACK")
            raise


def _signals(content: Mapping[str, Any]) -> Signals:
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
    return Signals(**fields)


def _float_bytes(number: float | None) -> bytes:
    if number is None:
        return b"n"
    return b"f" + struct.pack("<d", number if number == number else float("nan"))


def _absent_columns(connection: sqlite3.Connection) -> list[str]:
    """Those of ``ADDED`` that the ledger lacks: an earlier version has made it."""
    present = {row[1] for row in connection.execute("PRAGMA table_info(attempts)")}
    return [name for name in ADDED if name not in present]


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_TIMEOUT_S)


def _connect_to_read(path: Path) -> sqlite3.Connection:
    connection = _connect(path, "ro")
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.OperationalError:
        connection.close()
        if os.access(path.parent, os.W_OK) or Path(f"{path}-wal").exists():
            raise
        # A ledger in WAL mode on a medium that cannot be written: nobody can change it, so it needs no locks.
        return _connect(path, "ro&immutable=1")
    return connection


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise UnreadableLedgerError(
            f"{path} is not a ledger of robotrials (an empty file, or a database of another program): "
            "put a copy of the ledger back, or choose another run directory"
        )
    if version != SCHEMA_VERSION:
        raise UnreadableLedgerError(
            f"{path} is a ledger of version {version}, this robotrials reads version {SCHEMA_VERSION}: "
            f"use the {'newer' if version > SCHEMA_VERSION else 'older'} robotrials that wrote it (see run.json), "
            "or another run directory"
        )


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse to build on a damaged file: the harm would otherwise show at the end, or never."""
    log_file = Path(f"{path}-wal")
    if not log_file.exists() or log_file.stat().st_size == 0:  # else what the file lacks may still be in there
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
        if path.stat().st_size % page_size:  # SQLite would read zeros in the place of what was cut off
            raise UnreadableLedgerError(f"{path} is damaged (cut off within its last page): {_SALVAGE}")
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise UnreadableLedgerError(f"{path} is damaged ({' '.join(verdict.split())}): {_SALVAGE}")


def _choose_journal(connection: sqlite3.Connection, path: Path) -> None:
    network = network_file_system(path)
    if network is None:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode == "wal":
            connection.execute("PRAGMA synchronous = NORMAL")
            return
        reason = f"this file system allows no write-ahead log (SQLite chose {mode!r})"
    else:
        reason = f"it lies on a network file system ({network}), where a write-ahead log is not safe"
    log.warning("%s: %s; each commit waits for the disk. A local --output_dir is faster.", path, reason)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")


_SALVAGE = (
    "put a copy from before back; or try `sqlite3 ledger.sqlite .recover` for what is left, and start again in "
    "another run directory"
)


@contextlib.contextmanager
def _explained(path: Path, doing: str) -> Iterator[None]:
    """SQLite's terse errors as LedgerError, with the file and what to do."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # A fault of the caller (closed, another thread), not of the file.
    except (sqlite3.Error, OSError) as error:
        kind = UnreadableLedgerError if doing in ("open", "read") else LedgerError
        raise kind(f"cannot {doing} the ledger {path}: {error}; {_advice(str(error))}") from error


def _advice(message: str) -> str:
    text = message.lower()
    if "full" in text or "no space" in text or "quota" in text:
        return "free some space and resume: what was recorded before is safe"
    if "locked" in text:
        return "another process holds it: stop that one, or wait for it"
    if "not a database" in text:
        return "it is no SQLite file: put a copy of the ledger back, or choose another run directory"
    if "malformed" in text or "corrupt" in text:
        return f"it is truncated or damaged: {_SALVAGE}"
    if "readonly" in text or "unable to open" in text or "permission" in text:
        return "check that the file and its folder can be read and written by you"
    return "check the disk, then resume: what was recorded before is safe"


def _remove(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
