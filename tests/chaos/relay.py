"""Stands between two peers on TCP: a network that can be cut, or one that garbles what is said."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from robotrials.errors import WireError
from robotrials.wire.stream import Frame, Stream, connect


class Relay:
    """Forwards bytes between whoever connects to ``address`` and ``target`` (host, port). Cut, it forwards nothing, and
    loses nothing: as TCP does through an outage."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._whole = threading.Event()
        self._whole.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        _in_background(self._accept)

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    def close(self) -> None:
        self.mend()
        for one in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._sockets += [near, far]
                _in_background(self._pump, near, far)
                _in_background(self._pump, far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._whole.wait()
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


class Line:
    """One worker's connection through a ``Garbler``, for what is to be sent to the worker."""

    def __init__(self, number: int, stream: Stream, raw: socket.socket) -> None:
        self.number = number
        self._stream, self._raw = stream, raw

    def send(self, frame: Frame) -> None:
        self._stream.send(frame.header, memoryview(frame.body))

    def send_half_and_hang_up(self, frame: Frame) -> None:
        whole = len(frame.header).to_bytes(4, "little") + len(frame.body).to_bytes(8, "little")
        whole += frame.header + bytes(frame.body)
        self._raw.sendall(whole[: len(whole) // 2])
        self._raw.shutdown(socket.SHUT_RDWR)


Garble = Callable[[Line, Frame], None]


class Garbler:
    """Forwards messages between workers and the policy server at ``target``; each reply goes through ``garble``."""

    def __init__(self, target: str, garble: Garble) -> None:
        self._target, self._garble = target, garble
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._raw: list[socket.socket] = []
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        _in_background(self._accept)

    def close(self) -> None:
        for one in (self._listener, *self._raw):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError, WireError):
            while True:
                raw, _ = self._listener.accept()
                near, far = Stream(raw), connect(self._target, timeout_s=10.0)
                self._raw.append(raw)
                line = Line(len(self._raw), near, raw)
                _in_background(self._pump, near, lambda frame, far=far: far.send(frame.header, memoryview(frame.body)))
                _in_background(self._pump, far, lambda frame, line=line: self._garble(line, frame))

    def _pump(self, source: Stream, deliver: Callable[[Frame], None]) -> None:
        with contextlib.suppress(OSError, WireError):
            while True:
                deliver(source.receive())


def _in_background(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()
