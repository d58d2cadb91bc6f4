"""The video of an episode: H.264 in mp4, encoded beside the stepping thread, played in real time."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robotrials.errors import ContractError, VideoError

Frame = npt.NDArray[np.uint8]

_QUEUE_LENGTH = 8
_ALWAYS = {
    # Packets leave in the order of frames, so that the last one is known.
    "bf": "0",
    # The matrix that FFmpeg converts RGB with. Untagged, players guess it by the size, and colours drift.
    "x264-params": "colorprim=smpte170m:transfer=smpte170m:colormatrix=smpte170m",
}


@dataclass(frozen=True)
class Encoding:
    """How frames become H.264. ``last_frame_s`` is how long the last one stands, at least its own step.
    ``keep_odd`` keeps odd sizes, in 4:4:4, which some players do not show; else their last row or column is doubled."""

    options: Mapping[str, str]
    last_frame_s: float = 0.0
    keep_odd: bool = False


TO_WATCH = Encoding({"preset": "veryfast", "crf": "23"}, last_frame_s=0.5)
"""On 480x480 Meta-World frames veryfast takes 2.6 CPU ms and 1.0 kB a frame; ultrafast 2.7 and 4.0, superfast 2.3 and
2.6, faster 3.6 and 1.1. The last frame shows success, and a player drops a frame without duration."""


class EpisodeVideo:
    """Records one episode: ask ``wants`` at every step, ``add`` the frame if it does, then ``finish`` or ``discard``.

    A frame's time is its step number over ``control_hz``, so the video plays in real time however irregular the steps
    are. At most ``record_fps`` frames are asked for per simulated second: at 80 Hz and 20 frames every fourth step. The
    last frame may be added at any step; it is shown for half a second. ``encoding`` may say otherwise.

    ``add`` copies the frame into a queue of eight and waits only while the queue is full. The file appears under
    ``path`` whole, in ``finish``; until then it is a hidden temporary file beside it.
    """

    def __init__(
        self, path: str | os.PathLike[str], control_hz: float, record_fps: float, encoding: Encoding = TO_WATCH
    ) -> None:
        if not (control_hz > 0 and record_fps > 0):
            raise ValueError(f"control_hz and record_fps must be positive, got {control_hz} and {record_fps}")
        self.path = Path(path)
        self._encoding = encoding
        self._temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        self._hz = Fraction(control_hz).limit_denominator(1000)
        # The margin keeps 60 / (60 / 7) from rounding up to 8.
        self._stride = max(1, math.ceil(control_hz / record_fps - 1e-9))
        self._last = -1
        self._shape: tuple[int, ...] | None = None
        self._queue: queue.Queue[tuple[int, Frame] | None] = queue.Queue(_QUEUE_LENGTH)
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._dropped = False
        self._given_up = ""
        self._black = True

    def wants(self, step: int) -> bool:
        """Whether the state before action ``step`` (from 0) should be drawn: the first, then as the rate allows."""
        return not self._given_up and (self._last < 0 or step - self._last >= self._stride)

    def add(self, step: int, frame: npt.NDArray[Any]) -> None:
        """The (H, W, 3) uint8 picture at ``step``, or a grey one, (H, W, 1); the array may be reused afterwards. A step
        that has its picture already is left as it is.

        Raises:
            ContractError: the frame is no such picture, or its size is not that of the first.
        """
        if self._given_up:
            return
        if frame.ndim == 3 and frame.shape[2] == 1:
            frame = np.repeat(frame, 3, axis=2)
        self._check(frame)
        if step <= self._last:
            return
        self._black = self._black and not frame.any()
        self._last = step
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"video {self.path.name}", daemon=True)
            self._thread.start()
        self._put((step, np.array(frame, dtype=np.uint8, order="C", copy=True)))

    def give_up(self, reason: str) -> None:
        """There is a picture that cannot be had: ``finish`` will say why, and takes no more until then."""
        self._given_up = self._given_up or reason

    @property
    def has_frames(self) -> bool:
        return self._last >= 0

    @property
    def is_black(self) -> bool:
        """Every frame was black all over."""
        return self._black and self._last >= 0

    def finish(self) -> Path:
        """Wait until everything is encoded, and put the file in its place.

        Raises:
            VideoError: no frame was added, it was given up, or encoding or writing failed; nothing is left behind.
        """
        if self._given_up:
            self.discard()
            raise VideoError(self._given_up)
        if self._thread is None:
            raise VideoError(f"{self.path} would be empty: no frame was added")
        self._put(None)
        self._thread.join()
        try:
            if self._error is not None:
                raise self._error
            os.replace(self._temporary, self.path)
        except Exception as error:
            self._remove()
            raise VideoError(f"{self.path} could not be recorded: {type(error).__name__}: {error}") from error
        return self.path

    def discard(self) -> None:
        """Stop and leave no file. After ``finish`` it does nothing."""
        self._dropped = True
        if self._thread is not None:
            self._put(None)
            self._thread.join()
            self._remove()

    def _check(self, frame: npt.NDArray[Any]) -> None:
        if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            raise ContractError(f"a video frame must be (H, W, 3) uint8, got {frame.shape} {frame.dtype}")
        if self._shape is None:
            self._shape = frame.shape
        elif frame.shape != self._shape:
            raise ContractError(
                f"a video frame of {frame.shape} after frames of {self._shape}: the size must not change"
            )

    def _put(self, item: tuple[int, Frame] | None) -> None:
        """Queue ``item``; an encoder that has died takes nothing more, and must not block the caller."""
        while self._thread is not None and self._thread.is_alive():
            try:
                self._queue.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._temporary.unlink(missing_ok=True)

    # -- in the encoder's thread

    def _work(self) -> None:
        try:
            self._encode()
        except Exception as error:  # noqa: BLE001  it is raised again, in finish()
            self._error = error

    def _encode(self) -> None:
        import av  # Only a worker that records pays for it, and not in its stepping thread.

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(self._temporary), "w", format="mp4", options={"movflags": "+faststart"}) as container:
            stream: Any = None
            waiting: Any = None
            while (item := self._queue.get()) is not None and not self._dropped:
                step, picture = item
                if stream is None:
                    stream = self._open_stream(container, picture)
                frame = av.VideoFrame.from_ndarray(self._fitted(picture), format="rgb24").reformat(
                    format=stream.pix_fmt
                )
                frame.pts, frame.time_base = step, 1 / self._hz
                for packet in stream.encode(frame):
                    waiting = self._mux(container, waiting, packet)
            if self._dropped:
                return
            for packet in stream.encode(None):
                waiting = self._mux(container, waiting, packet)
            # Without a duration of its own the last frame would vanish the moment it appears.
            stands = max(self._stride / self._hz, Fraction(self._encoding.last_frame_s))
            waiting.duration = round(stands / waiting.time_base)
            container.mux(waiting)

    def _mux(self, container: Any, waiting: Any, packet: Any) -> Any:
        """One packet is held back, to know the last."""
        if waiting is not None:
            container.mux(waiting)
        return packet

    def _open_stream(self, container: Any, picture: Frame) -> Any:
        height, width = self._fitted(picture).shape[:2]
        options = {**_ALWAYS, **self._encoding.options}
        stream = container.add_stream("libx264", rate=self._hz / self._stride, options=options)
        stream.width, stream.height = width, height
        stream.pix_fmt = "yuv444p" if height % 2 or width % 2 else "yuv420p"
        stream.codec_context.thread_count = 1  # The cores belong to the simulators.
        stream.codec_context.time_base = stream.time_base = 1 / self._hz
        return stream

    def _fitted(self, picture: Frame) -> Frame:
        return picture if self._encoding.keep_odd else _even(picture)


def _even(picture: Frame) -> Frame:
    """yuv420p needs even sides: repeat the last row and column where one is odd."""
    height, width = picture.shape[:2]
    if height % 2 == 0 and width % 2 == 0:
        return picture
    return np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
