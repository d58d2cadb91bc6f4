"""A websocket as other projects' policy servers speak it: one binary message there, one back."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from robotrials.errors import NotInstalledError, WireError
from robotrials.install import install_command
from robotrials.wire.plain_arrays import MAX_FOREIGN_BYTES
from robotrials.wire.stream import ConnectionLostError

_TOO_BIG = 1009  # RFC 6455, section 7.4.1


def require_websockets() -> None:
    """
    Raises:
        NotInstalledError: the package is missing.
    """
    if importlib.util.find_spec("websockets") is None:
        raise NotInstalledError(f"websocket policies need websockets: {install_command('remote')}")


class Websocket:
    """One connection, for one thread. Sizes are checked before memory is taken; nothing is ever decompressed."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        """
        Raises:
            ConnectionLostError: nobody answers there, or refuses.
            WireError: ``url`` is none of a websocket.
            NotInstalledError: the package websockets is missing.
        """
        require_websockets()
        from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
        from websockets.sync.client import connect

        try:
            self._manager = connect(
                url,
                additional_headers=dict(headers),
                compression=None,
                max_size=MAX_FOREIGN_BYTES,
                open_timeout=timeout_s,
                close_timeout=1.0,
                ping_interval=None,  # a server may hold its lock for minutes while it compiles
                proxy=None,
            )
            # From websockets 17 on a connection is entered; before, entering it changes nothing.
            self._connection: Any = self._manager.__enter__()
        except InvalidURI as error:
            raise WireError(f"{url} is no address of a websocket (ws://host:port): {error}") from None
        except InvalidStatus as error:
            raise WireError(f"{url} refused with HTTP status {error.response.status_code}") from None
        except (OSError, InvalidHandshake, EOFError) as error:
            raise ConnectionLostError(f"nobody answers at {url}: {error}") from None

    def send(self, data: bytes) -> None:
        """
        Raises:
            ConnectionLostError: the peer is gone.
        """
        from websockets.exceptions import ConnectionClosed

        try:
            self._connection.send(data)
        except ConnectionClosed as error:
            raise ConnectionLostError(f"the peer is gone: {error}") from None

    def receive(self, timeout_s: float) -> bytes | str:
        """The next message: binary, or a text.

        Raises:
            ConnectionLostError: the peer is gone, or says nothing for ``timeout_s``.
            WireError: the message exceeds the limit.
        """
        from websockets.exceptions import ConnectionClosed

        try:
            message: bytes | str = self._connection.recv(timeout_s)
        except TimeoutError:
            raise ConnectionLostError(f"no answer within {timeout_s:g} s") from None
        except ConnectionClosed as error:
            if error.sent is not None and error.sent.code == _TOO_BIG:
                raise WireError(f"the peer's message exceeds the limit of {MAX_FOREIGN_BYTES} bytes") from None
            raise ConnectionLostError(f"the peer is gone: {error}") from None
        return message

    def refuse_waiting(self) -> None:
        """
        Raises:
            WireError: a message has come that nobody asked for.
            ConnectionLostError: the peer is gone.
        """
        from websockets.exceptions import ConnectionClosed

        try:
            self._connection.recv(0)
        except TimeoutError:
            return
        except ConnectionClosed as error:
            raise ConnectionLostError(f"the peer is gone: {error}") from None
        raise WireError("the server sent a message that nobody asked for: a late or duplicated reply")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Websocket:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def shown(value: Any, length: int = 500) -> str:
    """What a peer said, cut to ``length`` characters and without control characters, for messages and logs."""
    text = str(value)
    text = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return text if len(text) <= length else text[:length] + "..."
