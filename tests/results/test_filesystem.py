from __future__ import annotations

import os
from pathlib import Path

import pytest

from robotrials.results.filesystem import network_file_system, write_atomically

MOUNTS = r"""/dev/sda1 / ext4 rw 0 0
proc /proc proc rw 0 0
server:/home /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/local xfs rw 0 0
scratch@tcp:/fs /scratch lustre rw 0 0
me@host: /mnt/my\040files fuse.sshfs rw 0 0
overlay /mnt/over fuse.fuse-overlayfs rw 0 0
tmpfs /twice tmpfs rw 0 0
server:/x /twice nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data/run", None),
        ("/home/me/run", "nfs4"),
        ("/home", "nfs4"),
        ("/homework/run", None),
        ("/home/local/run", None),
        ("/scratch/a/b", "lustre"),
        ("/mnt/my files/run", "fuse.sshfs"),
        ("/mnt/over/run", None),
        ("/twice/run", "nfs"),
    ],
)
def test_the_innermost_and_latest_mount_decides(tmp_path: Path, path: str, kind: str | None) -> None:
    table = tmp_path / "mounts"
    table.write_text(MOUNTS)
    assert network_file_system(Path(path), table) == kind


def test_without_a_mount_table_a_path_counts_as_local(tmp_path: Path) -> None:
    assert network_file_system(tmp_path, tmp_path / "none") is None


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    write_atomically(target, b"old")
    write_atomically(target, b"new")
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["run.json"]


def test_when_replacing_fails_the_old_file_stays_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    target.mkdir()
    (target / "inside").touch()
    with pytest.raises(OSError, match=r"run\.json"):
        write_atomically(target, b"new")
    assert os.listdir(tmp_path) == ["run.json"]
