"""Sockets between coordinator and workers: ZeroMQ, with the limits that keep a bad peer from hurting."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname

import zmq

from robotrials.errors import ConfigError
from robotrials.wire.envelope import MAX_MESSAGE_BYTES, Message, encode

_LONGEST_PLACE = 70
"""Bytes of a folder's path that leave room for ours and the socket's name in it."""
_LOCK = "lock"
_HANDSHAKE_MS = 5_000
"""How long a peer may take from its connection to the end of ZeroMQ's handshake."""
_HIGH_WATER = 100_000
"""Messages queued per peer before the sender blocks: far above one per worker in flight."""


@dataclass(frozen=True)
class PrivateEndpoint:
    """A Unix socket in a directory that only this user can enter, until ``remove``. What a process that was killed has
    left of its own is removed by the next one: the kernel's lock on the file in it tells whether its owner lives."""

    directory: str
    address: str
    lock: int = -1

    @classmethod
    def create(cls) -> PrivateEndpoint:
        # The system's temporary folder rather than the run's: socket paths end at 107 bytes, run directories do not.
        place = tempfile.gettempdir()
        if len(os.fsencode(place)) > _LONGEST_PLACE:
            place = "/tmp"  # a job's own TMPDIR on a cluster
        _clear_orphans(Path(place))
        directory = tempfile.mkdtemp(prefix="robotrials-", dir=place)
        lock = os.open(os.path.join(directory, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: then nothing is cleared
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(lock, b"held")
        return cls(directory, f"ipc://{os.path.join(directory, 'coordinator')}", lock)

    def let_in(self, user: int, group: int) -> None:
        """Give the folder and the sockets that are in it to another user's processes, as only root can, for whom alone
        that is needed. Who connects still has to show the token."""
        if os.getuid() == 0:
            for path in (self.directory, *(entry.path for entry in os.scandir(self.directory))):
                os.chown(path, user, group)

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        if self.lock >= 0:
            os.close(self.lock)


def _clear_orphans(place: Path) -> None:
    """Remove the folders of endpoints whose process is gone. One that is just being made has no ``held`` in it yet."""
    for lock in place.glob(f"robotrials-*/{_LOCK}"):
        with contextlib.suppress(OSError), open(lock, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if file.read() == b"held":
                shutil.rmtree(lock.parent, ignore_errors=True)


def new_token() -> str:
    """A secret that workers of one run share with its coordinator."""
    return secrets.token_hex(16)


def _guarded(socket: zmq.Socket[bytes]) -> zmq.Socket[bytes]:
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    socket.setsockopt(zmq.SNDHWM, _HIGH_WATER)
    socket.setsockopt(zmq.RCVHWM, _HIGH_WATER)
    socket.setsockopt(zmq.LINGER, 0)
    return socket


def bind_router(context: zmq.Context[zmq.Socket[bytes]], address: str) -> zmq.Socket[bytes]:
    """The coordinator's socket: each peer is addressed by the identity ZeroMQ gives it."""
    socket = _guarded(context.socket(zmq.ROUTER))
    socket.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MS)
    socket.bind(address)
    return socket


def also_bind(socket: zmq.Socket[bytes], address: str) -> str:
    """Take workers from ``tcp://HOST:PORT`` too (port 0: any free one). Returns the address by which others reach it.

    Raises:
        ConfigError: it is no such address, or cannot be had.
    """
    host, port = host_of(address), address.rpartition(":")[2]
    try:
        socket.bind(f"tcp://{host}:{port if int(port) else '*'}")
    except zmq.ZMQError as error:
        raise ConfigError(f"cannot listen on --eval.listen={address}: {error}") from None
    bound = socket.getsockopt_string(zmq.LAST_ENDPOINT)
    return f"tcp://{name_for_others(host)}:{bound.rpartition(':')[2]}"


def host_of(address: str, flag: str = "--eval.listen", hint: str = ", HOST 0.0.0.0 for all") -> str:
    """``flag`` and ``hint`` are for the message.

    Raises:
        ConfigError: ``address`` is not ``tcp://HOST:PORT``.
    """
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    if not address.startswith("tcp://") or not host or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{flag}={address} is no address; right is tcp://HOST:PORT{hint}")
    return host


def name_for_others(host: str) -> str:
    """The name by which other machines find what listens at ``host``."""
    return gethostname() if host in ("0.0.0.0", "*", "[::]") else host


def connect_dealer(context: zmq.Context[zmq.Socket[bytes]], address: str) -> zmq.Socket[bytes]:
    """A worker's socket."""
    socket = _guarded(context.socket(zmq.DEALER))
    socket.connect(address)
    return socket


def send(socket: zmq.Socket[bytes], message: Message) -> None:
    socket.send(encode(message))
