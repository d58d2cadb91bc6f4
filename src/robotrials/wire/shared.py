"""Memory that two processes of one machine share, without a name: only who is handed its descriptor can open it."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import sys

from robotrials.errors import WireError
from robotrials.wire.arrays import MAX_BYTES

IS_AVAILABLE = sys.platform == "linux"
"""Anonymous files that can be sealed are Linux's; elsewhere arrays go through the socket."""

_SEALS = 0x0007  # F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW: the size is final


class SharedBytes:
    """``size`` bytes of memory. ``descriptor`` can be sent to another process (``socket.send_fds``)."""

    def __init__(self, descriptor: int, size: int, writable: bool) -> None:
        self.descriptor = descriptor
        self.size = size
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._map = mmap.mmap(descriptor, size, access=access)
        self.bytes = memoryview(self._map)

    @classmethod
    def create(cls, size: int) -> SharedBytes:
        """New memory, zeroed. Its size is sealed, so that no reader can be made to touch what is not there."""
        descriptor = os.memfd_create("robotrials", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, max(size, 1))
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        return cls(descriptor, max(size, 1), writable=True)

    @classmethod
    def attach(cls, descriptor: int) -> SharedBytes:
        """Memory that a peer made, to read.

        Raises:
            WireError: the descriptor is no sealed memory, or exceeds the limit; it is closed.
        """
        try:
            seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
            size = os.fstat(descriptor).st_size
        except OSError as error:
            os.close(descriptor)
            raise WireError(f"the peer shared something that is no memory: {error}") from None
        if seals & _SEALS != _SEALS or not 0 < size <= MAX_BYTES:
            os.close(descriptor)
            raise WireError(f"the peer shared memory of {size} bytes with seals {seals:#x}; it must be of final size")
        return cls(descriptor, size, writable=False)

    def close(self) -> None:
        self.bytes.release()
        with contextlib.suppress(BufferError):  # views of it are still alive: freed with the last of them
            self._map.close()
        os.close(self.descriptor)
