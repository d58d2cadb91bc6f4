"""What this process may take of its machine (descriptors, space, threads), and words for when that has run out."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

_NEARLY_FULL = 1 / 200
"""Of a file system: less than this is free."""
_MIB = 2**20
_OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT)
_OF_THE_PROCESS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def descriptor_limit() -> str:
    """The limit of open files, in words."""
    if resource is None:
        return "no limit of open files is known"
    return f"ulimit -n is {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}"


def allow_descriptors(needed: int) -> tuple[int, int]:
    """Raise the soft limit of open files to ``needed`` as far as the hard limit allows; child processes inherit it.
    Both limits afterwards."""
    if resource is None:
        return needed, needed
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < needed:
        soft = needed if hard == unlimited else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return (needed if soft == unlimited else soft), (needed if hard == unlimited else hard)


def is_worn_out(error: BaseException) -> bool:
    """Whether ``error`` says that this process has used up what it may have: another one may succeed."""
    return isinstance(error, MemoryError) or _is_out_of_threads(error) or _errno(error) in _OF_THE_PROCESS


def remedy(error: BaseException) -> str | None:
    """What to set or to free where ``error`` says that something of this machine has run out; None for other errors."""
    number = _errno(error)
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return "memory is full: use fewer workers (--eval.batch_size)"
    if _is_out_of_threads(error):
        return "raise the limit of threads (ulimit -u, or the container's limit of processes), or use fewer workers"
    if number == errno.EMFILE:
        return f"this process may not open more files: {descriptor_limit()}; raise it, such as ulimit -n 4096"
    if number == errno.ENFILE:
        return "this machine may not open more files (sysctl fs.file-max)"
    if number in _OUT_OF_SPACE:
        return _space_remedy(getattr(error, "filename", None))
    return None


def is_out_of_space(error: BaseException) -> bool:
    """Whether a file system or a quota is full."""
    return _errno(error) in _OUT_OF_SPACE


def shared_memory_remedy() -> str:
    """What to do where a process was killed by SIGBUS, as one is that writes to shared memory for which there is no
    room."""
    return f"most likely shared memory is full ({_free('/dev/shm')}): free it, or in a container set --docker.shm_size"


def _errno(error: BaseException) -> int | None:
    """Of errors of the system, and of libraries that say it in the same way."""
    number = getattr(error, "errno", None)
    return number if isinstance(number, int) else None


def _is_out_of_threads(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and "can't start new thread" in str(error)


def _space_remedy(filename: object) -> str:
    if isinstance(filename, str) and filename:
        return _free_some(str(_existing(Path(filename))))
    full = [place for place in ("/dev/shm", tempfile.gettempdir(), os.getcwd()) if _is_full(place)]
    if not full:
        return "free space on the file system that is written to, or raise the quota"
    return "; ".join(_free_some(place) for place in dict.fromkeys(full))


def _free_some(place: str) -> str:
    more = ", or in a container set --docker.shm_size" if place.startswith("/dev/shm") else ""
    return f"free space in {place} ({_free(place)}){more}"


def _existing(path: Path) -> Path:
    folders = [path.parent, *path.parent.parents]
    return next((folder for folder in folders if folder.is_dir()), Path("/"))


def _free(place: str) -> str:
    try:
        usage = shutil.disk_usage(place)
    except OSError as error:
        return f"{place}: {error.strerror}"
    return f"{usage.free / _MIB:,.0f} of {usage.total / _MIB:,.0f} MiB are free"


def _is_full(place: str) -> bool:
    try:
        usage = shutil.disk_usage(place)
    except OSError:
        return False
    return usage.free < _NEARLY_FULL * usage.total
