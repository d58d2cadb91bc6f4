"""The videos of many episodes in few files, frame for frame as they were encoded: packets are copied, not decoded."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from robotrials.datasets.file_index import FileIndex
from robotrials.errors import DatasetError

MAX_VIDEO_MB = 200
"""LeRobot's ``video_files_size_in_mb``."""
MAX_VIDEO_S = 900.0
"""LeRobot compares times as float32 and allows 0.1 ms (0.6.1, ``decode_video_frames``): from 1024 seconds on, one
rounding is more than that, and frames would not be found."""


class VideoSpan(NamedTuple):
    """Where an episode's frames lie: which file, and from when to when in it, in seconds."""

    file: FileIndex
    from_s: float
    to_s: float


class VideoJoiner:
    """Appends videos of one camera to ``<folder>/chunk-000/file-000.mp4`` and its successors."""

    def __init__(self, folder: Path, fps: float) -> None:
        self._folder = folder
        self._hz = Fraction(fps).limit_denominator(1000)
        self._index: FileIndex | None = None
        self._container: Any = None
        self._stream: Any = None
        self._header: bytes | None = None
        self._frames = 0
        self._bytes = 0

    def add(self, path: Path, n_frames: int) -> VideoSpan:
        """Append the video at ``path``, which must hold ``n_frames`` frames, the first a key frame.

        Raises:
            DatasetError: it cannot be read, or holds another number of frames.
        """
        import av

        try:
            with av.open(str(path)) as source:
                stream = source.streams.video[0]
                self._make_room(stream, os.path.getsize(path), n_frames)
                first = self._frames
                for packet in source.demux(stream):
                    if packet.dts is not None:  # the last one only says that there are no more
                        self._append(packet)
        except (OSError, IndexError, av.error.FFmpegError) as error:
            raise DatasetError(f"{path} cannot be joined: {error}") from error
        if self._frames - first != n_frames:
            raise DatasetError(f"{path} holds {self._frames - first} frames, but the episode had {n_frames} steps")
        self._bytes += os.path.getsize(path)
        assert self._index is not None
        return VideoSpan(self._index, float(first / self._hz), float(self._frames / self._hz))

    def close(self) -> None:
        """Complete the file that is open, if one is."""
        container, self._container = self._container, None
        if container is not None:
            container.close()

    def __enter__(self) -> VideoJoiner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _make_room(self, stream: Any, n_bytes: int, n_frames: int) -> None:
        """Begin another file if there is none, this one is full, or the new video was encoded in another way."""
        header = bytes(stream.codec_context.extradata or b"")
        too_long = float((self._frames + n_frames) / self._hz) > MAX_VIDEO_S
        too_large = self._bytes + n_bytes > MAX_VIDEO_MB * 2**20
        if self._container is not None and header == self._header and not too_long and not too_large:
            return
        self._begin(stream, header)

    def _begin(self, template: Any, header: bytes) -> None:
        import av

        self.close()
        self._index = FileIndex() if self._index is None else self._index.next()
        path = self._folder / f"{self._index.path}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._container = av.open(str(path), "w", format="mp4", options={"movflags": "+faststart"})
        self._stream = self._container.add_stream_from_template(template)
        self._stream.time_base = 1 / self._hz
        self._header, self._frames, self._bytes = header, 0, 0

    def _append(self, packet: Any) -> None:
        if packet.pts != packet.dts:
            raise DatasetError("frames that are not in the order of their display cannot be joined")
        packet.stream = self._stream
        packet.time_base = 1 / self._hz
        packet.pts = packet.dts = self._frames
        packet.duration = 1
        self._container.mux(packet)
        self._frames += 1
