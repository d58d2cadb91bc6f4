"""What has run out is named, with what to set; limits that can be raised are."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from robotrials.engine.launchers.base import WorkerExit
from robotrials.engine.layout import require_descriptors
from robotrials.errors import ConfigError
from robotrials.machine import limits
from robotrials.machine.limits import allow_descriptors, is_worn_out, remedy


@pytest.mark.parametrize(
    ("error", "worn_out", "words"),
    [
        (OSError(errno.EMFILE, "Too many open files"), True, "ulimit -n is"),
        (OSError(errno.ENFILE, "Too many open files in system"), True, "fs.file-max"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True, "--eval.batch_size"),
        (MemoryError(), True, "--eval.batch_size"),
        (RuntimeError("can't start new thread"), True, "ulimit -u"),
        (OSError(errno.ENOSPC, "No space left", "/dev/shm/torch_1"), False, "--docker.shm_size"),
        (OSError(errno.ENOSPC, "No space left", "/no/such/folder/file"), False, "free space in / ("),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), False, "free"),
        (OSError(errno.ENOENT, "No such file"), False, None),
        (RuntimeError("the physics exploded"), False, None),
    ],
)
def test_what_ran_out_is_named_with_what_to_do(error: BaseException, worn_out: bool, words: str | None) -> None:
    found = remedy(error)
    assert found is None if words is None else words in (found or "")
    assert is_worn_out(error) is worn_out


def test_full_file_systems_are_named_where_the_error_names_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_is_full", lambda place: place == "/dev/shm")
    found = remedy(OSError(errno.ENOSPC, "No space left on device"))
    assert found is not None
    assert found.startswith("free space in /dev/shm (")


def limits_of(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> list[tuple[int, int]]:
    """Pretend that these are the limits; what is set afterwards."""
    held = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda which: held[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: held.append(limits))
    return held


def test_soft_limit_of_descriptors_is_raised_as_far_as_is_needed_and_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    held = limits_of(monkeypatch, 20, 4096)
    assert allow_descriptors(100) == (100, 4096)
    assert allow_descriptors(50) == (100, 4096)
    assert allow_descriptors(9999) == (4096, 4096)
    assert held == [(20, 4096), (100, 4096), (4096, 4096)]


def test_layout_that_the_hard_limit_does_not_allow_is_refused_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    limits_of(monkeypatch, 20, 200)
    require_descriptors(n_workers=80, n_servers=2, listens=True)
    with pytest.raises(ConfigError, match=r"90 workers and 1 policy servers need up to 302 .* 200: .*ulimit -n 302"):
        require_descriptors(n_workers=90, n_servers=1, listens=False)


def test_run_without_enough_descriptors_is_refused_in_one_line_with_status_1(tmp_path: Path) -> None:
    words = ["--policy.type=tests.toy:Seer", "--env.type=tests.toy:Toy", "--eval.n_episodes=1", "--eval.batch_size=1"]
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30)); "
        "from robotrials.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "eval", *words, f"--output_dir={tmp_path / 'run'}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    assert done.returncode == 1
    assert "the hard limit is 30: raise it (ulimit -n 64)" in done.stderr
    assert "Traceback" not in done.stderr


def test_how_a_worker_ended_is_told_from_its_status() -> None:
    told = {code: WorkerExit.of_process("w0", code, "log", "") for code in (0, 3, -9, -7, -200)}
    assert (told[3].status, told[3].signal, told[3].how) == (3, None, "exit status 3")
    assert (told[-9].status, told[-9].signal, told[-9].how) == (None, 9, "killed by SIGKILL")
    assert told[-7].how.startswith("killed by SIGBUS; most likely shared memory is full (")
    assert told[-200].how == "killed by signal 200"
    assert told[0].status == 0
