"""Websocket servers for tests, each in a thread: a scripted one that misbehaves on purpose."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve


@contextmanager
def scripted(converse: Callable[[ServerConnection], Any]) -> Iterator[str]:
    """A server that holds ``converse`` with every client; its URL."""

    def handle(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            converse(connection)

    with serve(handle, "127.0.0.1", 0, compression=None, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()
