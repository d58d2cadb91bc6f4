"""Which file system a path lies on, and files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

_NETWORK_TYPES = re.compile(
    r"^(nfs4?|lustre|gpfs|beegfs|fhgfs|ceph|cifs|smb3|smbfs|afs|9p|glusterfs|ocfs2|gfs2|panfs|pvfs2|orangefs|wekafs|acfs)$"
)
# Of FUSE mounts these are known to be remote; a local one (fuse-overlayfs, ntfs-3g) shares memory as SQLite needs.
_NETWORK_FUSE = re.compile(
    r"^fuse\.(sshfs|glusterfs|ceph|s3fs|gcsfuse|rclone|juicefs|goofys|mountpoint-s3|blobfuse2?|moosefs|mfs|weka|davfs)"
)


def network_file_system(path: Path, mounts: Path = Path("/proc/mounts")) -> str | None:
    """The type (``nfs4``, ``lustre``, ...) of the network file system that ``path`` lies on; None when it is local.

    Read from the mount table, so it is known on Linux alone; elsewhere the answer is None.
    """
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    target = os.path.realpath(path)
    best, kind = "", ""
    for line in table.splitlines():
        columns = line.split(" ")
        if len(columns) < 3:
            continue
        point = _unescape(columns[1])
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # A later mount on the same point hides the earlier one.
            best, kind = point, columns[2]
    return kind if _NETWORK_TYPES.match(kind) or _NETWORK_FUSE.match(kind) else None


def _unescape(point: str) -> str:
    """The kernel writes space, tab, newline and backslash of a mount point as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), point)


def write_atomically(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` so that a reader, or a crash at any instant, sees the old file or the new one whole.

    Raises:
        OSError: the disk is full, or the folder cannot be written; ``path`` is then as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` last through a loss of power. Some network file systems cannot: then do nothing."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
