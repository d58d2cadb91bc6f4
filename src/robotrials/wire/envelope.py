"""The envelope of every message: one msgpack map ``{"v": version, "t": kind, ...fields}``, checked before use."""

from __future__ import annotations

from typing import Any, ClassVar

import msgpack

from robotrials.errors import WireError
from robotrials.wire.codec import from_plain, to_plain

PROTOCOL = 1
"""Version of every message; another version is refused, naming both."""

MAX_MESSAGE_BYTES = 16 * 2**20
"""Control messages are small; a Job of a thousand tasks is under one MiB."""


MAX_ITEMS = 1 << 17
"""Entries of one list or map: memory for as many as a header claims is taken before they are read, and headers nest."""


class Message:
    """Base of all messages: a frozen dataclass whose ``kind`` is what the wire calls it."""

    kind: ClassVar[str]


class Vocabulary:
    """The kinds of message that one conversation knows.

    Example: ``Vocabulary(Hello, Stop).decode(encode(Stop("done")))`` is ``Stop("done")``.
    """

    def __init__(self, *kinds: type[Message]) -> None:
        self._kinds = {cls.kind: cls for cls in kinds}

    def decode(self, data: bytes) -> Message:
        """The message that ``data`` holds.

        Raises:
            WireError: not msgpack, too large, another protocol version, an unknown kind, a field of another type.
        """
        if len(data) > MAX_MESSAGE_BYTES:
            raise WireError(f"a message of {len(data)} bytes exceeds the limit of {MAX_MESSAGE_BYTES}")
        try:
            plain = msgpack.unpackb(
                data, raw=False, strict_map_key=True, max_array_len=MAX_ITEMS, max_map_len=MAX_ITEMS
            )
        except (ValueError, TypeError, RecursionError, MemoryError, msgpack.UnpackException) as error:
            raise WireError(f"not a message: {error}") from None
        if not isinstance(plain, dict):
            raise WireError(f"not a message: a {type(plain).__name__}")
        version, kind = plain.pop("v", None), plain.pop("t", None)
        if version != PROTOCOL:
            raise WireError(
                f"the peer speaks protocol {version!r}, this is {PROTOCOL}: both need one robotrials version"
            )
        if not isinstance(kind, str) or kind not in self._kinds:
            raise WireError(f"unknown message kind {kind!r}")
        return from_plain(self._kinds[kind], plain)


def encode(message: Message) -> bytes:
    """One message as bytes."""
    plain: dict[str, Any] = {"v": PROTOCOL, "t": message.kind, **to_plain(message)}
    return msgpack.packb(plain, use_bin_type=True)  # type: ignore[no-any-return]
