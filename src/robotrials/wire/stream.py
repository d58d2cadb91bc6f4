"""Messages with a body over a connected socket, Unix or TCP: ``<header length><body length><header><body>``."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
import time
from array import array
from dataclasses import dataclass, field

from robotrials.errors import WireError
from robotrials.wire.arrays import MAX_BYTES
from robotrials.wire.envelope import MAX_MESSAGE_BYTES

PREFIX = struct.Struct("<IQ")
_MAX_DESCRIPTORS = 4
_DESCRIPTORS_SIZE = socket.CMSG_LEN(_MAX_DESCRIPTORS * array("i").itemsize)
_READ_SIZE = 16 * 1024
"""Control messages fit; of a large body the rest is read straight into its place."""


class ConnectionLostError(WireError):
    """Raised when the peer closed the connection or died."""


@dataclass
class Frame:
    """One message as bytes: the encoded envelope and its body."""

    header: bytes
    body: bytearray = field(default_factory=bytearray)


def give_way() -> None:
    """Let whoever waits for this core have it: between two looks of one who waits awake, it may be the other end."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()


class Stream:
    """One connection. Blocking; for one thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._read = bytearray()
        self._descriptors: list[int] = []
        self.is_local = connection.family == socket.AF_UNIX
        if not self.is_local:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _keep_alive(connection)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, header: bytes, *body: memoryview, descriptor: int | None = None) -> None:
        """Send one message; ``descriptor`` travels along on Unix sockets.

        Raises:
            ConnectionLostError: the peer is gone.
        """
        prefix = PREFIX.pack(len(header), sum(part.nbytes for part in body))
        try:
            if descriptor is not None:
                socket.send_fds(self._socket, [prefix], [descriptor])
                prefix = b""
            self._send_all([memoryview(prefix + header), *body])
        except OSError as error:
            raise lost(error) from None

    def receive(self, max_body: int = MAX_BYTES, spin_s: float = 0.0, max_header: int = MAX_MESSAGE_BYTES) -> Frame:
        """The next message; for ``spin_s`` seconds it is looked for again and again before the process goes to sleep.
        Waking from sleep takes longer than a whole exchange between two processes that are awake.

        Raises:
            ConnectionLostError: the peer is gone, perhaps in the middle of a message.
            WireError: it announces more than the limits.
        """
        try:
            if spin_s and not self._read:
                self._spin(spin_s)
            self._fill(PREFIX.size)
            header_length, body_length = self._lengths(max_header, max_body)
            self._fill(PREFIX.size + header_length)
        except OSError as error:
            raise lost(error) from None
        frame, there = self._begun(header_length, body_length)
        try:
            self._receive_into(memoryview(frame.body)[there:])
        except OSError as error:
            raise lost(error) from None
        return frame

    def take_descriptor(self) -> int | None:
        """The descriptor that came along with the messages so far; it is the caller's to close."""
        return self._descriptors.pop(0) if self._descriptors else None

    def close(self) -> None:
        while (descriptor := self.take_descriptor()) is not None:
            os.close(descriptor)
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

    def _lengths(self, max_header: int, max_body: int) -> tuple[int, int]:
        """Of the header and the body of the message whose prefix has been read.

        Raises:
            WireError: they exceed the limits.
        """
        header_length, body_length = PREFIX.unpack_from(self._read)
        if header_length > max_header or body_length > max_body:
            raise WireError(f"a message of {header_length} + {body_length} bytes exceeds the limits")
        return header_length, body_length

    def _begun(self, header_length: int, body_length: int) -> tuple[Frame, int]:
        """The message whose header has been read, and how many bytes of its body have."""
        start = PREFIX.size + header_length
        header = bytes(self._read[PREFIX.size : start])
        body = bytearray(body_length)
        there = min(len(self._read) - start, body_length)
        if there:
            body[:there] = self._read[start : start + there]
        del self._read[: start + there]
        return Frame(header, body), there

    def _spin(self, seconds: float) -> None:
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            try:
                self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                give_way()
                continue
            return

    def _fill(self, n: int) -> None:
        """Have at least ``n`` bytes read; small messages come whole with the first call."""
        while len(self._read) < n:
            data = self._some()
            if not data:
                where = "in the middle of a message" if self._read else "the connection"
                raise ConnectionLostError(f"the peer closed {where}")
            self._read += data

    def _some(self, flags: int = 0) -> bytes:
        """Bytes that have come, with the descriptors that came along; empty when the peer has closed."""
        if not self.is_local:
            return self._socket.recv(_READ_SIZE, flags)
        data, beside, _, _ = self._socket.recvmsg(_READ_SIZE, _DESCRIPTORS_SIZE, flags)
        if beside:
            self._keep_descriptors(beside)
        return data

    def _keep_descriptors(self, beside: list[tuple[int, int, bytes]]) -> None:
        for level, kind, data in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                found = array("i")
                found.frombytes(data[: len(data) - len(data) % found.itemsize])
                self._descriptors.extend(found)
        if len(self._descriptors) > _MAX_DESCRIPTORS:
            raise WireError("more descriptors than messages that announce one")

    def _receive_into(self, target: memoryview) -> None:
        while target.nbytes:
            count = self._socket.recv_into(target)
            if not count:
                raise ConnectionLostError("the peer closed the connection in the middle of a message")
            target = target[count:]


def lost(error: OSError) -> ConnectionLostError:
    """What an error of a socket says of its peer."""
    return ConnectionLostError(f"the peer is gone: {error}")


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
        _keep_alive(server)  # which accepted connections inherit
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
    """Whether only this machine can reach ``address``.

    Raises:
        WireError: it is no address.
    """
    family, where = _parse(address)
    if family == socket.AF_UNIX:
        return True
    host = where[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _keep_alive(connection: socket.socket) -> None:
    """Find out within a minute that the other machine is gone, or the network: neither says goodbye."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _parse(address: str) -> tuple[int, str | tuple[str, int]]:
    kind, _, where = address.partition("://")
    if kind == "unix" and where:
        return socket.AF_UNIX, where
    host, _, port = where.rpartition(":")
    if kind == "tcp" and host and port.isdecimal():
        host = host.strip("[]")
        return (socket.AF_INET6 if ":" in host else socket.AF_INET), (host, int(port))
    raise WireError(f"an address is unix:///path or tcp://host:port, got {address!r}")
