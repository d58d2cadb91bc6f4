"""The disk is full; the ledger is truncated, overwritten, gone; two coordinators want one directory."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.runs import TOY, ChaosRun, Outcomes, check

TWENTY = (*TOY, "--eval.n_episodes=20", "--eval.batch_size=2", "--env.step_s=0.01")


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    place = folder / "disk"
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=4m", "chaos", str(place)]
    if shutil.which("mount") is None or subprocess.run(options, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(file: Path) -> None:
    """Take all the room there is."""
    with open(file, "wb", buffering=0) as filler:
        for size in (65536, 512):
            try:
                while True:
                    filler.write(b"\0" * size)
            except OSError:
                continue


def test_a_full_disk_ends_the_run_as_partial_and_with_room_it_goes_on(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes], small_disk: Path
) -> None:
    run = make_run(TWENTY, directory=small_disk / "run")
    run.begin()
    run.wait_for_records(3)
    fill(small_disk / "filler")
    assert run.wait() == 2, run.said
    run.until_nobody_is_left()
    assert "free some space and resume: what was recorded before is safe" in run.said
    kept = run.n_finished()
    (small_disk / "filler").unlink()
    run.resume()
    check(run, reference("toy"), status=run.wait())
    assert 3 <= kept < 40


def test_a_file_that_may_not_grow_ends_the_run_as_partial(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    run = make_run(TWENTY)
    run.begin()
    run.wait_for_records(3)
    assert run.process is not None
    resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    assert run.wait() == 2, run.said
    run.until_nobody_is_left()
    assert "what was recorded before is safe" in run.said
    run.resume()
    check(run, reference("toy"), status=run.wait())


def half_a_run(run: ChaosRun) -> Path:
    """A run that was stopped in order; its ledger."""
    run.begin()
    run.wait_for_records(12)
    assert run.process is not None
    run.process.send_signal(signal.SIGTERM)
    assert run.wait() == 2
    return run.directory / "ledger.sqlite"


def _overwrite(ledger: Path, offset: int, garbage: bytes) -> None:
    with open(ledger, "r+b") as file:
        file.seek(offset)
        file.write(garbage)


def _damages(draw: random.Random, size: int) -> dict[str, Callable[[Path], None]]:
    """Each by name; what is cut or overwritten is drawn."""
    page = 4096 * draw.randrange(1, size // 4096)
    return {
        "cut to half": lambda ledger: _truncate(ledger, size // 2),
        "cut to nothing": lambda ledger: _truncate(ledger, 0),
        "cut by a byte of its last page": lambda ledger: _truncate(ledger, size - 1),
        "garbage throughout": lambda ledger: _overwrite(ledger, 0, draw.randbytes(size)),
        "garbage in its header": lambda ledger: _overwrite(ledger, 0, draw.randbytes(100)),
        "garbage in a page": lambda ledger: _overwrite(ledger, page, draw.randbytes(4096)),
        "a page of zeros": lambda ledger: _overwrite(ledger, page, bytes(4096)),
        "gone": lambda ledger: ledger.unlink(),
    }


def _truncate(ledger: Path, size: int) -> None:
    with open(ledger, "r+b") as file:
        file.truncate(size)


def test_a_damaged_ledger_is_refused_untouched_and_its_copy_goes_on(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes], rng: random.Random
) -> None:
    run = make_run(TWENTY)
    ledger = half_a_run(run)
    good = ledger.read_bytes()
    for name, damage in _damages(rng, len(good)).items():
        damage(ledger)
        bad = ledger.read_bytes() if ledger.exists() else None
        run.log.unlink()
        run.resume()
        assert run.wait() == 1, f"{name}: {run.said}"
        assert "ledger.sqlite" in run.said, f"{name}: {run.said}"
        assert "another run directory" in run.said, f"{name}: {run.said}"
        assert (ledger.read_bytes() if ledger.exists() else None) == bad, f"{name}: it is there to be salvaged"
        ledger.write_bytes(good)
    run.resume()
    check(run, reference("toy"), status=run.wait())


def test_small_garbage_in_a_ledger_is_refused_or_harmless(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes], rng: random.Random, full: bool
) -> None:
    """Never a changed outcome, wherever the garbage falls."""
    run = make_run(TWENTY)
    ledger = half_a_run(run)
    good = ledger.read_bytes()
    for _ in range(40 if full else 3):
        _overwrite(ledger, rng.randrange(len(good) - 512), rng.randbytes(512))
        run.resume()
        status = run.wait()
        if status == 0:
            check(run, reference("toy"), status=status)
        else:
            assert status == 1, run.said
        ledger.write_bytes(good)
    run.resume()
    check(run, reference("toy"), status=run.wait())


@pytest.mark.parametrize("kind", ["cut", "garbage"])
def test_a_write_ahead_log_that_was_damaged_costs_no_more_than_what_it_held(
    kind: str, make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes], rng: random.Random
) -> None:
    """Commits that are not there any more are episodes that run again."""
    run = make_run(TWENTY)
    process = run.begin()
    run.wait_for_records(8)
    process.kill()
    process.wait()
    run.until_nobody_is_left()
    log = run.directory / "ledger.sqlite-wal"
    size = log.stat().st_size
    if kind == "cut":
        _truncate(log, rng.randrange(size))
    else:
        _overwrite(log, rng.randrange(size - 4096), rng.randbytes(4096))
    run.resume()
    check(run, reference("toy"), status=run.wait())


def test_a_second_coordinator_is_refused_and_the_first_goes_on(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    run = make_run(TWENTY)
    first = run.begin()
    run.wait_for_records(1)
    first.send_signal(signal.SIGSTOP)  # so that it cannot be over sooner than the others are there
    for words in (["resume", str(run.directory)], ["eval", *run.flags, "--eval.record=none"]):
        second = run.command(*words, *([f"--output_dir={run.directory}"] if words[0] == "eval" else []))
        assert run.wait(second) == 1, run.said
    first.send_signal(signal.SIGCONT)
    check(run, reference("toy"), status=run.wait(first), says=[f"in use by process {first.pid}", "stop it first"])
    assert run.said.count("in use by process") == 2
