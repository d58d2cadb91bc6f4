"""The verbs on real runs of the toy benchmark, as a shell sees them: stdout, stderr, exit status."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SLOW = "--env.step_s=0.02"


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "robotrials", *words]


def toy(directory: Path, *more: str, policy: str = "tests.toy:Seer", tasks: str = "a,b") -> list[str]:
    return command(
        "eval",
        f"--policy.type={policy}",
        "--env.type=tests.toy:Toy",
        f"--env.task={tasks}",
        "--eval.n_episodes=4",
        "--eval.batch_size=2",
        "--eval.record=first:1",
        f"--output_dir={directory}",
        *more,
    )


def shell(words: list[str], **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120, **more)  # type: ignore[call-overload, no-any-return]


def figures(table: str, task: str) -> list[str]:
    """The cells of one line of the table."""
    (line,) = [line for line in table.splitlines() if line.split()[:1] == [task]]
    return line.split()


def test_a_run_ends_with_a_table_on_stdout_and_status_zero_and_again_changes_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = shell(toy(run))
    assert done.returncode == 0, done.stderr
    info = json.loads((run / "eval_info.json").read_text())
    for name in ("a", "b"):
        (entry,) = [entry for entry in info["per_task"] if entry["task"] == name]
        assert figures(done.stdout, name)[1] == f"{sum(entry['metrics']['successes'])}/4"
    assert figures(done.stdout, "toys")[1] == f"{info['overall']['n_success']}/8"
    assert f"Results    {run}/eval_info.json" in done.stdout
    assert f"Videos     {run}/videos (2)" in done.stdout
    assert done.stderr.startswith("Seer on Toy: 2 tasks, 8 episodes, 2 workers\n")

    again = shell(command("resume", str(run)))
    assert again.returncode == 0
    assert again.stderr == "Seer on Toy: complete, all 8 episodes have finished\n"
    assert "nothing: all 8 episodes had finished before" in again.stdout
    assert again.stdout.split("Ran")[0] == done.stdout.split("Ran")[0]


def test_errors_stand_beside_the_rate_and_make_status_two(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = shell(toy(run, "--env.trouble=raise@a/1", "--eval.max_attempts=2"))
    assert done.returncode == 2
    assert figures(done.stdout, "a")[1].endswith("/3")
    assert figures(done.stdout, "a")[-2] == "1"
    assert "Errors     RuntimeError: the physics exploded" in done.stdout
    assert "toys/a/1: attempt 1 erred, trying again: RuntimeError: the physics exploded" in done.stderr
    assert done.stderr.endswith(f"1 episode ended in an error. To try again:\n  robotrials resume {run}\n")

    again = shell(command("resume", str(run), "--dry_run"))
    assert again.returncode == 0
    assert "8 episodes of 2 tasks; 7 have finished, 1 to run" in again.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_with_status_two_and_says_how_to_go_on(number: signal.Signals, tmp_path: Path) -> None:
    run = tmp_path / "a run"
    words = toy(run, "--env.step_s=0.04")
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ledger = run / "ledger.sqlite"
    deadline = time.monotonic() + 60
    while not (ledger.exists() and rows(ledger)) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert "Not run" in out
    stopped = re.search(r"^Stopped: (\d) of 8 episodes are written down. To go on:\n  (.*)\n", err, re.MULTILINE)
    assert stopped is not None, err
    assert 1 <= int(stopped[1]) < 8
    assert stopped[2] == f"robotrials resume '{run}'"

    resumed = shell(command("resume", str(run)))
    assert resumed.returncode == 0, resumed.stderr
    assert f"{8 - int(stopped[1])} of 8 episodes to run" in resumed.stderr
    assert f"; {stopped[1]} had finished before" in resumed.stdout


def rows(ledger: Path) -> int:
    from robotrials.errors import LedgerError
    from robotrials.results.ledger import Ledger

    try:
        with Ledger.open(ledger, read_only=True) as opened:
            return len(opened.accepted_ids())
    except LedgerError:  # being created
        return 0


def test_a_dry_run_shows_the_plan_and_starts_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = shell(toy(run, "--dry_run", "--eval.order=shuffled"))
    assert done.returncode == 0
    assert not run.exists()
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["a", "4", "1000–1003", "60", "Go", "to", "the", "goal", "of", "a"] in lines
    assert ["Episodes", "8", "episodes", "of", "2", "tasks"] in lines
    assert ["Workers", "2", "processes"] in lines
    assert ["observation.state", "float32[2]"] in lines
    assert ["Directory", str(run)] in lines
    (identity,) = [line[1] for line in lines if line[:1] == ["Identity"]]
    assert re.fullmatch(r"[0-9a-f]{16,}", identity)


def test_another_run_in_the_same_directory_is_refused_with_what_differs(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert shell(toy(run)).returncode == 0
    other = shell(toy(run, "--policy.n=3"))
    assert other.returncode == 1
    assert "holds another run" in other.stderr
    assert "3" in other.stderr
    assert other.stdout == ""


def test_a_reader_who_leaves_early_stops_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(toy(run), cwd=ROOT, stdout=write, stderr=write, check=False, timeout=120)
    os.close(write)
    assert done.returncode == 0
    assert rows(run / "ledger.sqlite") == 8


def test_closed_streams_and_a_full_disk_behind_stdout_stop_nothing(tmp_path: Path) -> None:
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *toy(tmp_path / "closed")], cwd=ROOT, check=False)
    assert closed.returncode == 0
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command("resume", str(tmp_path / "closed")), stdout=full, stderr=subprocess.PIPE, cwd=ROOT, check=False
        )
    assert done.returncode == 0
    assert done.stderr.endswith(b"stdout cannot be written: No space left on device\n")


def in_a_terminal(words: list[str], **environment: str) -> tuple[int, str]:
    """Run with stdin, stdout and stderr on a terminal of 100 columns; its exit status and all it wrote."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
        os.execvpe(words[0], words, {**plain, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", **environment})
    written = b""
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # EIO: the other side has ended
            break
        if not chunk:
            break
        written += chunk
    _, status = os.waitpid(pid, 0)
    os.close(descriptor)
    return os.waitstatus_to_exitcode(status), written.decode()


def test_on_a_terminal_the_run_is_live_and_coloured(tmp_path: Path) -> None:
    status, text = in_a_terminal(toy(tmp_path / "run", SLOW))
    assert status == 0, text
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert re.search(r"[1-8]/8  \d+ %", plain)  # the bar
    assert "\x1b[2K" in text  # is drawn over
    assert re.search(r"\x1b\[[0-9;]*32m", text)  # successes are green
    assert plain.rstrip().splitlines()[-1].startswith("Videos")


def test_no_color_leaves_shapes_and_takes_colours(tmp_path: Path) -> None:
    status, text = in_a_terminal(toy(tmp_path / "run", SLOW), NO_COLOR="1")
    assert status == 0, text
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", text)
    assert "━" in text


def test_a_dumb_terminal_gets_no_cursor_movements(tmp_path: Path) -> None:
    status, text = in_a_terminal(toy(tmp_path / "run"), TERM="dumb")
    assert status == 0, text
    assert "\x1b" not in text
