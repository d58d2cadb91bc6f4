"""A run directory: its layout, its lock, ``run.json``, and what makes two runs the same run."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import socket
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from robotrials.errors import ConfigError, LedgerError, RunLockedError
from robotrials.plan.episode import EpisodeSpec
from robotrials.results.filesystem import write_atomically

log = logging.getLogger(__name__)

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME = 100
_NO_LOCKS_HERE = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_LONGEST_SHOWN = 60


class RunDirectory:
    """The directory of one run, held by this process alone until ``close``.

    The lock is the kernel's (``flock`` on ``run.lock``): it is free again the moment its holder dies, even by SIGKILL,
    so no stale lock ever has to be removed by hand. It excludes a second coordinator, not readers.

    >>> with RunDirectory(Path("outputs/eval/run")) as run:
    ...     run.write_run_json({"identity": {}})
    """

    def __init__(self, path: Path) -> None:
        """Create what is missing of the layout, take the lock, and clear away what a killed run left half-written.

        Raises:
            RunLockedError: another process holds it; the message names its pid.
            ConfigError: the directory cannot be made or written.
        """
        self.path = Path(path)
        self.run_json = self.path / "run.json"
        self.ledger_path = self.path / "ledger.sqlite"
        self.videos = self.path / "videos"
        self.logs = self.path / "logs"
        try:
            for folder in (self.path, self.videos, self.logs):
                folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigError(f"--output_dir {self.path} cannot be used as a run directory: {error}") from error
        try:
            self._take_lock()
            self._clear_leftovers()
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Let go of the directory; a second call does nothing."""
        if self._lock >= 0:
            with contextlib.suppress(
                OSError
            ):  # A child that was just forked may share the lock: closing is not enough.
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def video_path(self, episode: EpisodeSpec) -> Path:
        """Where the video of ``episode`` belongs: ``self.path / video_name(episode)``."""
        return self.path / video_name(episode)

    def load_run_json(self) -> dict[str, Any] | None:
        """The content of ``run.json``; None when this directory has held no run yet."""
        return load_run_json(self.path) if self.run_json.exists() else None

    def write_run_json(self, content: Mapping[str, Any]) -> None:
        """Replace ``run.json``: a crash at any instant leaves the old or the new one, whole.

        Raises:
            LedgerError: the disk is full, or the directory cannot be written.
        """
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        try:
            write_atomically(self.run_json, text.encode())
        except OSError as error:
            raise LedgerError(
                f"{self.run_json} cannot be written: {error}; what was recorded is safe: "
                f"make room and run: robotrials resume {self.path}"
            ) from error

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunLockedError(
                f"{self.path} is in use by {self._holder()}: wait until it has finished, or stop it first"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                raise ConfigError(f"{self.path / 'run.lock'} cannot be locked: {error}") from error
            log.warning(
                "the file system of %s has no locks (%s): make sure yourself that only one run uses this directory",
                self.path,
                error.strerror,
            )
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, json.dumps(holder).encode(), 0)

    def _holder(self) -> str:
        try:
            holder = json.loads(os.pread(self._lock, 4096, 0))
            return f"process {int(holder['pid'])} on {holder['host']}"
        except (ValueError, KeyError, TypeError):  # It is just being written.
            return "another process"

    def _clear_leftovers(self) -> None:
        for folder in (self.path.glob(".*.tmp"), self.videos.rglob(".*.tmp")):
            for file in folder:
                with contextlib.suppress(OSError):
                    file.unlink()


def load_run_json(path: Path) -> dict[str, Any]:
    """The content of ``run.json`` in the run directory ``path``; takes no lock.

    Raises:
        ConfigError: there is none, or it is not a JSON object.
    """
    file = Path(path) / "run.json"
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"{path} is not a run directory: it has no run.json") from None
    except NotADirectoryError:
        raise ConfigError(f"{path} is a file: give the run directory, which holds run.json") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{file} must hold a JSON object, found {type(content).__name__}")
    return content


def video_name(episode: EpisodeSpec) -> str:
    """``videos/<suite>/<task>/<index>.mp4`` within the run directory, with names made safe for any file system."""
    return f"videos/{safe_name(episode.suite)}/{safe_name(episode.task)}/{episode.index}.mp4"


def safe_name(name: str) -> str:
    """``name`` as one component of a path; a name that had to be changed gets a checksum, so that no two meet."""
    safe = _UNSAFE.sub("_", name)[:_LONGEST_NAME]
    if safe.startswith("."):
        safe = "_" + safe[1:]
    if safe == name and safe:
        return safe
    return f"{safe}-{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"


def identity_hash(identity: Mapping[str, Any]) -> str:
    """The first 16 hex digits of the SHA-256 of ``identity`` in canonical JSON (sorted keys, no spaces, ASCII)."""
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two identities, a line each: ``benchmark.packages.mujoco: 3.3.0 -> 3.8.1``.

    Both are compared as JSON, so a tuple equals the list it was stored as. Empty iff their hashes agree.
    """
    return list(_differences("", json.loads(json.dumps(old)), json.loads(json.dumps(new))))


_ABSENT = object()


def _differences(where: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            inner = f"{where}.{key}" if where else key
            yield from _differences(inner, old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for position, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(f"{where}[{position}]", before, after)
    elif _at_length(old) != _at_length(new) or type(old) is not type(new):  # As JSON: 1 is neither true nor 1.0.
        before, after = _shown(old), _shown(new)
        if before == after:
            before, after = _at_length(old), _at_length(new)
        yield f"{where}: {before} -> {after}"


def _shown(value: Any) -> str:
    text = _at_length(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def _at_length(value: Any) -> str:
    if value is _ABSENT:
        return "(not set)"
    return value if isinstance(value, str) and value else json.dumps(value)
