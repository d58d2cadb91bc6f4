"""Parquet files that are written piece by piece, and followed by another when they are full."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import IO, Any

from robotrials.datasets.file_index import FileIndex

MAX_DATA_MB = 100
"""LeRobot's ``data_files_size_in_mb``."""


class RollingTable:
    """Appends tables of one schema to ``<folder>/chunk-000/file-000.parquet`` and its successors; a table is a row
    group, which can be read without the others."""

    def __init__(self, folder: Path, schema: Any) -> None:
        self._folder = folder
        self._schema = schema
        self._next = FileIndex()
        self._file: IO[bytes] | None = None
        self._writer: Any = None
        self._holds_some = False

    def place(self) -> FileIndex:
        """Where the next table will go; begins the file if it is not open."""
        import pyarrow.parquet as pq

        if self._file is not None and self._holds_some and self._file.tell() >= MAX_DATA_MB * 2**20:
            self.close()
            self._next = self._next.next()
        if self._file is None:
            path = self._folder / f"{self._next.path}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "wb")  # noqa: SIM115  closed in close()
            self._writer = pq.ParquetWriter(self._file, self._schema, compression="snappy")
        return self._next

    def write(self, table: Any) -> FileIndex:
        place = self.place()
        self._writer.write_table(table)
        self._holds_some = True
        return place

    def close(self) -> None:
        """Complete the file that is open, if one is."""
        if self._file is not None:
            self._writer.close()
            self._file.close()
        self._file = self._writer = None
        self._holds_some = False

    def __enter__(self) -> RollingTable:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
