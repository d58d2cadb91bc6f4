"""How LeRobot numbers the files of a dataset."""

from __future__ import annotations

from typing import NamedTuple

CHUNK_FILES = 1000
"""LeRobot's ``chunks_size``: so many files a folder."""


class FileIndex(NamedTuple):
    """``chunk-<chunk>/file-<file>``."""

    chunk: int = 0
    file: int = 0

    @property
    def path(self) -> str:
        return f"chunk-{self.chunk:03d}/file-{self.file:03d}"

    def next(self) -> FileIndex:
        return FileIndex(self.chunk, self.file + 1) if self.file + 1 < CHUNK_FILES else FileIndex(self.chunk + 1, 0)
