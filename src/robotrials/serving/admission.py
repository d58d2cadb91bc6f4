"""How a server stays reachable when it is out of descriptors or besieged: limits on peers that have not been let in."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import threading
import time
from typing import Any

from robotrials.machine.limits import descriptor_limit

log = logging.getLogger(__name__)

MAX_STRANGERS = 256
"""Connections that have not shown the token; the oldest makes room for the next."""
STRANGER_S = 5.0
"""Seconds a peer has from its connection to being let in."""
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
"""What ``accept`` says when there is no descriptor, or no memory, for another connection."""
_TELL_EVERY_S = 10.0
_PAUSE_S = 0.05


class Spare:
    """A descriptor that is given up for a moment to accept, and close, a connection for which there is none: left in
    the queue it would be reported again and again."""

    def __init__(self) -> None:
        self._descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._told_at = -_TELL_EVERY_S

    def tell(self, error: OSError) -> None:
        """Into the log, now and then."""
        now = time.monotonic()
        if now - self._told_at >= _TELL_EVERY_S:
            self._told_at = now
            log.error(
                "cannot take another connection: %s (%s); raise it, or connect fewer workers",
                error.strerror,
                descriptor_limit(),
            )

    def refuse(self, listener: socket.socket) -> None:
        """Close the connection that has waited longest at ``listener``."""
        self.close()
        with contextlib.suppress(OSError):
            descriptor, _ = socket.socket._accept(listener)  # type: ignore[attr-defined]
            os.close(descriptor)
        try:
            self._descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            time.sleep(_PAUSE_S)  # not at full speed until there is one again

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class GuardedListener(socket.socket):
    """A listening socket for a server that has a thread for each connection. ``let_in`` says of one that it is no
    stranger any more."""

    def __init__(self, listener: socket.socket) -> None:
        """Takes the place of ``listener``, which is detached."""
        super().__init__(fileno=listener.detach())
        self._spare = Spare()
        self._lock = threading.Lock()
        self._strangers: list[socket.socket] = []
        """Oldest first."""

    def let_in(self, connection: socket.socket) -> None:
        with self._lock:
            self._strangers = [each for each in self._strangers if each is not connection]

    def accept(self) -> tuple[socket.socket, Any]:
        """As ``socket.accept``; never fails for lack of descriptors."""
        while True:
            try:
                connection, address = super().accept()
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                self._spare.tell(error)
                if self._drop_oldest(0):
                    time.sleep(_PAUSE_S)  # until its thread has closed it
                else:
                    self._spare.refuse(self)
                continue
            self._drop_oldest(MAX_STRANGERS - 1)
            with self._lock:
                self._strangers.append(connection)
            return connection, address

    def close(self) -> None:
        super().close()
        self._spare.close()

    def _drop_oldest(self, beyond: int) -> bool:
        """Wake the threads of the oldest strangers ``beyond`` so many; whether there was one."""
        with self._lock:
            living = [each for each in self._strangers if each.fileno() >= 0]
            dropped = living[: max(0, len(living) - beyond)] if beyond else living[:1]
            self._strangers = living[len(dropped) :]
        for each in dropped:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return bool(dropped)
