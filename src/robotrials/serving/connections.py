"""The connections of a policy server: who is let in, who waits too long, and what happens when there are too many.

Whoever reaches the address can connect. Until a peer has shown the token it counts as a stranger: there are at most
``admission.MAX_STRANGERS``, the oldest makes room for the next, and each has ``STRANGER_S`` to be let in.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from robotrials.serving import admission
from robotrials.serving.admission import Spare
from robotrials.wire.ready_stream import ReadyStream
from robotrials.wire.stream import ConnectionLostError, give_way

CLIENT_S = 30.0
"""Seconds for which a client may stop in the middle of a message, or of reading an answer."""
_ACCEPTS_AT_ONCE = 64
_LOOK_EVERY_S = 0.5
_SPIN_S = 200e-6


@dataclass
class Peer:
    """One connection."""

    number: int
    stream: ReadyStream


P = TypeVar("P", bound=Peer)


class Connections(Generic[P]):
    """All connections of one thread; ``make`` makes the server's own record of each."""

    def __init__(self, make: Callable[[int, ReadyStream], P]) -> None:
        self._make = make
        self._selector = selectors.DefaultSelector()
        self._by_number: dict[int, P] = {}
        self._strangers: dict[int, P] = {}
        """Oldest first."""
        self._since: dict[int, float] = {}
        """When those began who must not take for ever: strangers, and clients within a message or an answer."""
        self._next_number = 1
        self._next_look = 0.0
        self._spare = Spare()

    def listen_at(self, listener: socket.socket) -> None:
        """Take connections from this socket too."""
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, listener)

    @property
    def clients(self) -> list[P]:
        """Those that were let in."""
        return [peer for number, peer in self._by_number.items() if number not in self._strangers]

    @property
    def are_watched(self) -> bool:
        """Whether there are any whose time may be over."""
        return bool(self._since)

    def get(self, number: int) -> P | None:
        return self._by_number.get(number)

    def ready(self, timeout_s: float, is_fast: bool) -> list[P]:
        """Those from which something has come; waits up to ``timeout_s`` for the first. ``is_fast``: it is expected
        sooner than this process could be woken from sleep."""
        events = self._selector.select(0.0 if is_fast else timeout_s)
        if not events and is_fast:
            deadline = time.perf_counter() + min(_SPIN_S, timeout_s)
            while not events and time.perf_counter() < deadline:
                give_way()
                events = self._selector.select(0.0)
            events = events or self._selector.select(timeout_s)
        found = []
        for key, mask in events:
            if isinstance(key.data, socket.socket):
                self._accept(key.data)
            elif mask & selectors.EVENT_WRITE:
                self._flush(key.data)
            else:
                found.append(key.data)
        return found

    def let_in(self, peer: P) -> None:
        """The peer has shown the token."""
        self._strangers.pop(peer.number, None)
        self._since.pop(peer.number, None)

    def note(self, peer: P) -> None:
        """Something has come from, or was sent to, ``peer``: watch whether it goes on."""
        if peer.stream.is_idle:
            if self._since and peer.number not in self._strangers:
                self._since.pop(peer.number, None)
            return
        if peer.stream.has_unsent:
            # Nothing more is taken from a client that does not read its answers.
            self._selector.modify(peer.stream, selectors.EVENT_WRITE, peer)
        if peer.number not in self._strangers:
            self._since[peer.number] = time.monotonic()

    def late(self) -> list[P]:
        """Those whose time is over."""
        now = time.monotonic()
        if now < self._next_look:
            return []
        self._next_look = now + _LOOK_EVERY_S
        return [
            self._by_number[number]
            for number, since in self._since.items()
            if now - since > (admission.STRANGER_S if number in self._strangers else CLIENT_S)
        ]

    def drop(self, peer: P) -> bool:
        """Close the connection; False if it was closed before."""
        if self._by_number.pop(peer.number, None) is None:
            return False
        self._strangers.pop(peer.number, None)
        self._since.pop(peer.number, None)
        self._selector.unregister(peer.stream)
        peer.stream.close()
        return True

    def close(self) -> None:
        """Drop whoever is left; listening sockets stay open."""
        for peer in list(self._by_number.values()):
            self.drop(peer)
        self._selector.close()
        self._spare.close()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in admission.NO_ROOM:
                    self._make_room(listener, error)
                return  # otherwise the peer was gone before it was taken
            try:
                stream = ReadyStream(connection)
            except OSError:
                connection.close()
                continue
            self._add(stream)

    def _add(self, stream: ReadyStream) -> None:
        peer = self._make(self._next_number, stream)
        self._next_number += 1
        if len(self._strangers) >= admission.MAX_STRANGERS:
            self.drop(next(iter(self._strangers.values())))
        self._by_number[peer.number] = self._strangers[peer.number] = peer
        self._since[peer.number] = time.monotonic()
        self._selector.register(stream, selectors.EVENT_READ, peer)

    def _make_room(self, listener: socket.socket, error: OSError) -> None:
        """There is no descriptor for who knocks: the oldest stranger goes, else who knocks is sent away."""
        self._spare.tell(error)
        if self._strangers:
            self.drop(next(iter(self._strangers.values())))
        else:
            self._spare.refuse(listener)

    def _flush(self, peer: P) -> None:
        if peer.number not in self._by_number:
            return  # dropped since it was found ready
        try:
            peer.stream.flush()
        except ConnectionLostError:
            # Its end is read like any other: the server forgets what it knows of the client then.
            self._selector.modify(peer.stream, selectors.EVENT_READ, peer)
            return
        if not peer.stream.has_unsent:
            self._selector.modify(peer.stream, selectors.EVENT_READ, peer)
        self.note(peer)
