"""Messages with a body over a connected socket, Unix or TCP: ``<header length><body length><header><body>``."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from dataclasses import dataclass, field

from robotrials.errors import WireError
from robotrials.wire.arrays import MAX_BYTES
from robotrials.wire.envelope import MAX_MESSAGE_BYTES

_PREFIX = struct.Struct("<IQ")
_MAX_DESCRIPTORS = 1


class ConnectionLostError(WireError):
    """Raised when the peer closed the connection or died."""


@dataclass
class Frame:
    """One message as bytes: the encoded envelope, its body, and the descriptors that came with it."""

    header: bytes
    body: bytearray = field(default_factory=bytearray)
    descriptors: list[int] = field(default_factory=list)


class Stream:
    """One connection. Blocking; for one thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.is_local = connection.family == socket.AF_UNIX
        if not self.is_local:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, header: bytes, *body: memoryview, descriptor: int | None = None) -> None:
        """Send one message; ``descriptor`` travels along on Unix sockets.

        Raises:
            ConnectionLostError: the peer is gone.
        """
        prefix = _PREFIX.pack(len(header), sum(part.nbytes for part in body))
        try:
            if descriptor is not None:
                socket.send_fds(self._socket, [prefix], [descriptor])
                prefix = b""
            self._send_all([memoryview(prefix + header), *body])
        except OSError as error:
            raise ConnectionLostError(f"the peer is gone: {error}") from None

    def receive(self, max_body: int = MAX_BYTES) -> Frame:
        """The next message.

        Raises:
            ConnectionLostError: the peer is gone, perhaps in the middle of a message.
            WireError: it announces more than the limits.
        """
        try:
            prefix, descriptors = self._receive_prefix()
            header_length, body_length = _PREFIX.unpack(prefix)
            if header_length > MAX_MESSAGE_BYTES or body_length > max_body:
                close_all(descriptors)
                raise WireError(f"a message of {header_length} + {body_length} bytes exceeds the limits")
            header, body = bytearray(header_length), bytearray(body_length)
            self._receive_into(memoryview(header))
            self._receive_into(memoryview(body))
        except OSError as error:
            raise ConnectionLostError(f"the peer is gone: {error}") from None
        return Frame(bytes(header), body, descriptors)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def _send_all(self, parts: list[memoryview]) -> None:
        parts = [part.cast("B") for part in parts if part.nbytes]
        while parts:
            sent = self._socket.sendmsg(parts)
            while parts and sent >= parts[0].nbytes:
                sent -= parts.pop(0).nbytes
            if sent:
                parts[0] = parts[0][sent:]

    def _receive_prefix(self) -> tuple[bytes, list[int]]:
        if self.is_local:
            prefix, descriptors, _, _ = socket.recv_fds(self._socket, _PREFIX.size, _MAX_DESCRIPTORS)
        else:
            prefix, descriptors = self._socket.recv(_PREFIX.size), []
        if len(prefix) < _PREFIX.size:
            rest = bytearray(_PREFIX.size - len(prefix))
            if not prefix:
                raise ConnectionLostError("the peer closed the connection")
            self._receive_into(memoryview(rest))
            prefix += bytes(rest)
        return prefix, list(descriptors)

    def _receive_into(self, target: memoryview) -> None:
        while target.nbytes:
            count = self._socket.recv_into(target)
            if not count:
                raise ConnectionLostError("the peer closed the connection in the middle of a message")
            target = target[count:]


def close_all(descriptors: list[int]) -> None:
    """Close descriptors that came with a message and are not wanted."""
    for descriptor in descriptors:
        os.close(descriptor)


def listen(address: str) -> socket.socket:
    """A listening socket at ``unix:///path`` or ``tcp://host:port`` (port 0: any free one).

    Raises:
        WireError: the address is of neither form.
        OSError: it cannot be bound.
    """
    family, where = _parse(address)
    server = socket.socket(family, socket.SOCK_STREAM)
    if family != socket.AF_UNIX:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(where)
    server.listen(1024)
    return server


def address_of(server: socket.socket) -> str:
    """The address that ``connect`` takes to reach a listening socket."""
    if server.family == socket.AF_UNIX:
        return f"unix://{server.getsockname()}"
    host, port = server.getsockname()[:2]
    return f"tcp://{host}:{port}"


def connect(address: str, timeout_s: float) -> Stream:
    """
    Raises:
        ConnectionLostError: nobody answers there.
        WireError: the address is of neither form.
    """
    family, where = _parse(address)
    connection = socket.socket(family, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        connection.connect(where)
    except OSError as error:
        connection.close()
        raise ConnectionLostError(f"nobody answers at {address}: {error}") from None
    connection.settimeout(None)
    return Stream(connection)


def is_loopback(address: str) -> bool:
    """Whether only processes of this machine can reach ``address``."""
    family, where = _parse(address)
    return family == socket.AF_UNIX or (where[0] in ("localhost", "::1") or str(where[0]).startswith("127."))


def _parse(address: str) -> tuple[int, str | tuple[str, int]]:
    kind, _, where = address.partition("://")
    if kind == "unix" and where:
        return socket.AF_UNIX, where
    host, _, port = where.rpartition(":")
    if kind == "tcp" and host and port.isdecimal():
        host = host.strip("[]")
        return (socket.AF_INET6 if ":" in host else socket.AF_INET), (host, int(port))
    raise WireError(f"an address is unix:///path or tcp://host:port, got {address!r}")
