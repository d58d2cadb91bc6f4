"""Messages over one of many connections that a single thread serves: read and written as far as the socket is ready,
never waiting for the peer."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from robotrials.errors import WireError
from robotrials.wire.arrays import MAX_BYTES
from robotrials.wire.envelope import MAX_MESSAGE_BYTES
from robotrials.wire.stream import PREFIX, ConnectionLostError, Frame, Stream, lost

_MAX_UNSENT = 64 * 2**20
"""Bytes that wait for a peer that does not read; more, and the connection is lost."""


class ReadyStream(Stream):
    """A connection with a buffer for each direction; for one thread.

    Call ``fill`` when the socket can be read, then ``next_frame`` until it returns None; ``flush`` when it can be
    written and ``has_unsent``.
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        connection.setblocking(False)
        self._frame: Frame | None = None
        self._filled = 0
        self._unsent = bytearray()

    @property
    def is_idle(self) -> bool:
        """Whether no message has arrived in part, and none has been sent in part."""
        return not self._read and self._frame is None and not self._unsent

    @property
    def has_more(self) -> bool:
        """Whether bytes of the next message have been read."""
        return bool(self._read)

    @property
    def has_unsent(self) -> bool:
        """Whether a message has not been sent whole, because the peer does not read."""
        return bool(self._unsent)

    def fill(self) -> None:
        """Read what has come.

        Raises:
            ConnectionLostError: the peer closed the connection or died.
            WireError: it sent more descriptors than messages that announce one.
        """
        try:
            if self._frame is not None:
                self._fill_body(self._frame.body)
                return
            data = self._some()
        except BlockingIOError:
            return
        except OSError as error:
            raise lost(error) from None
        if not data:
            where = "in the middle of a message" if self._read else "the connection"
            raise ConnectionLostError(f"the peer closed {where}")
        self._read += data

    def next_frame(self, max_body: int = MAX_BYTES, max_header: int = MAX_MESSAGE_BYTES) -> Frame | None:
        """The next message if it has arrived whole; None until then.

        Raises:
            WireError: it announces more than the limits.
            ConnectionLostError: the peer closed the connection in the middle of it.
        """
        frame = self._frame
        if frame is None:
            if len(self._read) < PREFIX.size:
                return None
            header_length, body_length = self._lengths(max_header, max_body)
            if len(self._read) < PREFIX.size + header_length:
                return None
            frame, self._filled = self._begun(header_length, body_length)
            if self._filled < body_length:
                self._frame = frame
                self.fill()
        if self._filled < len(frame.body):
            return None
        self._frame = None
        return frame

    def send(self, header: bytes, *body: memoryview, descriptor: int | None = None) -> None:
        """Send one message, or keep what the socket does not take now for ``flush``.

        Raises:
            ConnectionLostError: the peer is gone, or has not read for too long.
        """
        if descriptor is not None:
            raise WireError("a descriptor cannot be sent over a connection that never waits")
        n_body = sum(part.nbytes for part in body)
        parts = [memoryview(PREFIX.pack(len(header), n_body) + header), *body]
        sent = 0
        if not self._unsent:
            try:
                sent = self._socket.sendmsg(parts)
            except BlockingIOError:
                pass
            except OSError as error:
                raise lost(error) from None
        if sent < PREFIX.size + len(header) + n_body:
            self._keep(parts, sent)

    def _keep(self, parts: Sequence[memoryview], sent: int) -> None:
        """Of a message, all but the ``sent`` bytes that were taken."""
        for part in parts:
            self._unsent += part.cast("B")[sent:]
            sent = max(0, sent - part.nbytes)
        if len(self._unsent) > _MAX_UNSENT:
            raise ConnectionLostError(f"the peer has left {len(self._unsent):,} bytes unread")

    def flush(self) -> None:
        """Send what the socket takes of what is unsent.

        Raises:
            ConnectionLostError: the peer is gone.
        """
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError as error:
            raise lost(error) from None
        del self._unsent[:sent]

    def _fill_body(self, body: bytearray) -> None:
        """
        Raises:
            BlockingIOError: no more of it has come.
        """
        view = memoryview(body)
        while self._filled < len(body):
            count = self._socket.recv_into(view[self._filled :])
            if not count:
                raise ConnectionLostError("the peer closed the connection in the middle of a message")
            self._filled += count
