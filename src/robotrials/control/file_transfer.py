"""Files that an episode made, from a worker that shares no disk with the coordinator: videos and datasets' spools."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from robotrials.control.messages import Artifact
from robotrials.errors import WireError

PART_BYTES = 1 << 20
_PLACES = ("videos", "spool")
"""Folders of a run directory that a worker may write to."""
_MAX_FILE_BYTES = 1 << 32


def send_files(send: Callable[[Artifact], None], lease: int, root: Path, paths: Iterable[Path]) -> None:
    """Send files below ``root``, in parts, under their names within it."""
    for path in paths:
        size, name = path.stat().st_size, path.relative_to(root).as_posix()
        with open(path, "rb") as file:
            offset = 0
            while True:
                data = file.read(PART_BYTES)
                send(Artifact(lease, name, offset, data, last=offset + len(data) >= size))
                offset += len(data)
                if offset >= size:
                    break


class FileReceiver:
    """Writes what workers send below ``run_dir``, each file under its name only when it is whole."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._open: dict[tuple[str, str], Path] = {}
        self._numbers = itertools.count(1)

    def take(self, worker: str, part: Artifact) -> None:
        """
        Raises:
            WireError: a path that leads elsewhere, a part that does not follow the one before, a file too large.
            OSError: it cannot be written.
        """
        target = self._target(part.path)
        key = (worker, part.path)
        if part.offset == 0:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._open[key] = target.with_name(f".{target.name}.{next(self._numbers)}.part")
            self._open[key].write_bytes(b"")
        partial = self._open.get(key)
        if partial is None or partial.stat().st_size != part.offset:
            raise WireError(f"a part of {part.path} that does not follow the one before")
        if part.offset + len(part.data) > _MAX_FILE_BYTES:
            raise WireError(f"{part.path} is larger than {_MAX_FILE_BYTES} bytes")
        with open(partial, "ab") as file:
            file.write(part.data)
        if part.last:
            os.replace(partial, target)
            del self._open[key]

    def forget(self, worker: str) -> None:
        """The worker is gone: remove what it had begun."""
        for key in [key for key in self._open if key[0] == worker]:
            self._open.pop(key).unlink(missing_ok=True)

    def _target(self, name: str) -> Path:
        path = PurePosixPath(name)
        parts = path.parts
        if path.is_absolute() or len(parts) < 2 or parts[0] not in _PLACES or ".." in parts or "\0" in name:
            raise WireError(f"a worker may not write to {name!r}")
        return self._run_dir.joinpath(*parts)
