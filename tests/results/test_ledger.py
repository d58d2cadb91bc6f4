from __future__ import annotations

import dataclasses
import gc
import logging
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from robotrials.errors import LedgerError, UnreadableLedgerError
from robotrials.results import ledger as ledger_module
from robotrials.results.ledger import Ledger
from robotrials.results.record import EndReason, EpisodeRecord, Timings

FULL = EpisodeRecord(
    episode=3,
    attempt=2,
    worker="worker-1",
    end=EndReason.SUCCESS,
    success=True,
    steps=87,
    reward_sum=0.1 + 0.2,
    reward_max=-1e-300,
    looks=9,
    renders=31,
    timings=Timings(reset=0.1, simulate=0.2, render=0.3, infer=0.4, wait=0.5, film=0.25, total=1.75),
    video="videos/easy/push-v3/3.mp4",
    error=None,
    started_at=1.7e9 + 1 / 3,
    nonfinite=12,
)


def success(episode: int, attempt: int = 1, worker: str = "w0", reward: float = 1.0) -> EpisodeRecord:
    return EpisodeRecord(episode, attempt, worker, EndReason.SUCCESS, True, 10, reward, reward)


def error(episode: int, attempt: int = 1, text: str = "RuntimeError: boom") -> EpisodeRecord:
    return EpisodeRecord(episode, attempt, "w0", EndReason.ERROR, None, 4, None, None, error=text)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.sqlite", {"plan": "9f2c"})


def test_every_field_of_a_record_comes_back_unchanged(ledger: Ledger) -> None:
    other = dataclasses.replace(FULL, episode=4, end=EndReason.TIME_LIMIT, success=False, video=None)
    failed = dataclasses.replace(error(5), error="two\nlines, ünïcode and a \x00")
    ledger.record([(FULL, True), (other, True), (failed, True)])
    assert list(ledger.accepted()) == [FULL, other, failed]


def test_the_late_duplicate_is_kept_as_an_attempt_and_the_first_result_stands(ledger: Ledger) -> None:
    assert ledger.record([(success(0, worker="fast", reward=1.0), True)]) == [0]
    assert ledger.record([(success(0, attempt=2, worker="slow", reward=2.0), True), (success(1), True)]) == [1]
    assert [record.reward_sum for record in ledger.accepted()] == [1.0, 1.0]
    assert [record.worker for record in ledger.attempts_of(0)] == ["fast", "slow"]


def test_two_results_for_one_episode_in_one_batch_leave_the_first(ledger: Ledger) -> None:
    assert ledger.record([(success(0, 1, reward=1.0), True), (success(0, 2, reward=2.0), True)]) == [0]
    assert [record.reward_sum for record in ledger.accepted()] == [1.0]


def test_the_file_itself_refuses_a_second_result(ledger: Ledger) -> None:
    ledger.record([(success(0, 1), True), (success(0, 2), False)])
    with sqlite3.connect(ledger.path) as direct, pytest.raises(sqlite3.IntegrityError):
        direct.execute("UPDATE attempts SET accepted = 1")
    direct.close()


def test_the_same_attempt_twice_is_one_row_and_can_still_become_the_result(ledger: Ledger) -> None:
    assert ledger.record([(error(0), False)]) == []
    assert ledger.record([(error(0), True)]) == [0]
    assert ledger.attempts_of(0) == [error(0)]
    assert ledger.accepted_ids() == {0}


def test_reopened_errors_stay_as_attempts_and_make_room_for_a_result(ledger: Ledger) -> None:
    ledger.record([(error(2, 1), False), (error(2, 2), True), (success(0), True), (error(1), True)])
    assert ledger.reopen_errors() == [1, 2]
    assert ledger.accepted_ids() == {0}
    assert ledger.attempt_counts() == {0: 1, 1: 1, 2: 2}
    assert ledger.record([(success(2, 3), True)]) == [2]
    assert [record.end for record in ledger.attempts_of(2)] == [EndReason.ERROR, EndReason.ERROR, EndReason.SUCCESS]
    assert ledger.reopen_errors() == []


def test_a_batch_that_fails_half_way_leaves_nothing(ledger: Ledger) -> None:
    broken = dataclasses.replace(success(1), steps=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ledger.record([(success(0), True), (broken, True)])
    assert ledger.accepted_ids() == set()
    assert ledger.record([(success(0), True)]) == [0]


def test_numpy_scalars_are_stored_as_the_numbers_they_are(ledger: Ledger) -> None:
    given = dataclasses.replace(
        success(0),
        steps=np.int64(7),
        reward_sum=np.float64(0.3),
        reward_max=np.float32(0.5),
        success=np.bool_(True),  # type: ignore[arg-type]
    )
    ledger.record([(given, True)])
    (kept,) = ledger.accepted()
    assert (kept.steps, kept.reward_sum, kept.reward_max, kept.success) == (7, 0.3, 0.5, True)


def test_a_nan_reward_is_not_taken_for_none_and_infinity_survives(ledger: Ledger) -> None:
    ledger.record([(dataclasses.replace(success(0), reward_sum=math.nan, reward_max=math.inf), True)])
    (kept,) = ledger.accepted()
    assert kept.reward_sum is not None
    assert math.isnan(kept.reward_sum)
    assert kept.reward_max == math.inf


def test_text_that_is_no_unicode_is_written_escaped(ledger: Ledger) -> None:
    ledger.record([(error(0, text="no file \udcff"), True)])
    (kept,) = ledger.accepted()
    assert kept.error == "no file \\udcff"


def digest_of(folder: Path, batch: list[tuple[EpisodeRecord, bool]]) -> str:
    with Ledger.create(folder / f"{len(list(folder.iterdir()))}.sqlite", {}) as ledger:
        ledger.record(batch)
        return ledger.outcome_digest()


def test_the_digest_knows_outcomes_and_nothing_of_how_they_were_run(tmp_path: Path) -> None:
    plain = digest_of(tmp_path, [(success(0), True), (FULL, True)])
    elsewhere = dataclasses.replace(
        FULL, attempt=1, worker="w7", timings=Timings(total=9.0), video=None, looks=1, renders=0, started_at=5.0
    )
    assert digest_of(tmp_path, [(error(0), False), (elsewhere, True), (success(0, 2, "w5"), True)]) == plain


@pytest.mark.parametrize(
    "change",
    [
        {"episode": 4},
        {"success": False},
        {"end": EndReason.TIME_LIMIT},
        {"steps": 88},
        {"reward_sum": 0.3},  # one unit in the last place below 0.1 + 0.2
        {"reward_max": None},
        {"reward_sum": math.nan},
    ],
)
def test_the_digest_changes_with_any_part_of_an_outcome(tmp_path: Path, change: dict[str, object]) -> None:
    changed = dataclasses.replace(FULL, **change)  # type: ignore[arg-type]
    assert digest_of(tmp_path, [(changed, True)]) != digest_of(tmp_path, [(FULL, True)])


def test_outcomes_are_plain_rows_in_the_order_of_episodes(ledger: Ledger) -> None:
    ledger.record([(error(7), True), (FULL, True), (success(5), False)])
    assert list(ledger.outcomes()) == [
        (3, "success", True, 87, 0.1 + 0.2, -1e-300),
        (7, "error", None, 4, None, None),
    ]


def test_identity_and_meta_survive_closing(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "l.sqlite", {"policy": {"revision": "a1"}}) as ledger:
        ledger.set_meta("elapsed_s", 1.5)
        ledger.set_meta("elapsed_s", 2.5)
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        assert ledger.identity == {"policy": {"revision": "a1"}}
        assert ledger.meta("elapsed_s") == 2.5
        assert ledger.meta("nothing", "default") == "default"


def test_closing_leaves_one_plain_file(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "l.sqlite", {}) as ledger:
        ledger.record([(success(0), True)])
        assert (tmp_path / "l.sqlite-wal").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["l.sqlite"]


def test_a_reader_beside_the_writer_sees_what_is_committed(ledger: Ledger) -> None:
    with Ledger.open(ledger.path, read_only=True) as reader:
        ledger.record([(success(0), True)])
        assert reader.accepted_ids() == {0}
        with pytest.raises(LedgerError, match="readonly"):
            reader.record([(success(1), True)])


def test_killed_with_sigkill_everything_recorded_is_there(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from robotrials.results.ledger import Ledger\n"
        "from robotrials.results.record import EndReason, EpisodeRecord\n"
        f"ledger = Ledger.create(Path({str(path)!r}), {{}})\n"
        "for i in range(10**9):\n"
        "    ledger.record([(EpisodeRecord(i, 1, 'w', EndReason.SUCCESS, True, 1, 1.0, 1.0), True)])\n"
        "    sys.stdout.write(f'{i}\\n'); sys.stdout.flush()\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    told = [int(writer.stdout.readline()) for _ in range(300)]
    os.kill(writer.pid, signal.SIGKILL)
    told += [int(line) for line in writer.stdout.read().splitlines() if line]
    writer.wait()
    with Ledger.open(path) as ledger:
        assert ledger.accepted_ids() >= set(told)


def test_creating_over_an_existing_ledger_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(ledger.path, {})


def test_a_stale_log_of_a_deleted_ledger_is_not_replayed(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    ledger = Ledger.create(path, {})
    ledger.record([(success(0), True)])
    shutil.copy(f"{path}-wal", tmp_path / "kept")
    ledger.close()
    path.unlink()
    shutil.copy(tmp_path / "kept", f"{path}-wal")
    with Ledger.create(path, {}) as fresh:
        assert fresh.accepted_ids() == set()


def test_a_missing_ledger_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"there is no ledger at .*gone"):
        Ledger.open(tmp_path / "gone")


@pytest.mark.parametrize("content", [b"hello " * 1000, b"{}"])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "l.sqlite").write_bytes(content)
    with pytest.raises(LedgerError, match="no SQLite file"):
        Ledger.open(tmp_path / "l.sqlite")


def test_an_empty_file_and_another_programs_database_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE t (x)")
    other.close()
    for name in ("empty", "other"):
        with pytest.raises(LedgerError, match="not a ledger of robotrials"):
            Ledger.open(tmp_path / name)


@pytest.mark.parametrize(("version", "which"), [(0, "older"), (99, "newer")])
def test_another_schema_version_says_which_robotrials_to_use(tmp_path: Path, version: int, which: str) -> None:
    path = tmp_path / "l.sqlite"
    Ledger.create(path, {}).close()
    direct = sqlite3.connect(path)
    direct.execute(f"PRAGMA user_version = {version}")
    direct.close()
    with pytest.raises(LedgerError, match=f"version {version}.*{which}"):
        Ledger.open(path)


def filled(path: Path, episodes: int) -> Path:
    with Ledger.create(path, {}) as ledger:
        ledger.record([(success(i), True) for i in range(episodes)])
    return path


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_truncated_ledger_is_refused_with_what_to_do(tmp_path: Path, share: float) -> None:
    path = filled(tmp_path / "l.sqlite", 500)
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(LedgerError, match=r"truncated or damaged.*\.recover"):
        Ledger.open(path)


def test_a_ledger_that_lacks_a_byte_is_refused(tmp_path: Path) -> None:
    """SQLite itself reads a zero there, which is the end of some number."""
    path = filled(tmp_path / "l.sqlite", 500)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(UnreadableLedgerError, match="cut off within its last page"):
        Ledger.open(path)


def test_a_ledger_with_a_scrambled_page_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path / "l.sqlite", 500)
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(LedgerError, match=r"damaged.*\.recover"):
        Ledger.open(path)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_ledger_from_before_observations_were_looked_through_is_read(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path, {}) as ledger:
        ledger.record([(FULL, True)])
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE attempts DROP COLUMN nonfinite")
    connection.commit()
    connection.close()
    older = dataclasses.replace(FULL, nonfinite=0)
    with Ledger.open(path, read_only=read_only) as ledger:
        assert list(ledger.accepted()) == [older]
        if not read_only:
            newer = dataclasses.replace(FULL, episode=4)
            ledger.record([(newer, True)])
            assert list(ledger.accepted()) == [older, newer]


def test_a_row_that_cannot_be_read_is_named_and_refused(tmp_path: Path) -> None:
    """Garbage that happens to leave the file's structure whole."""
    path = filled(tmp_path / "l.sqlite", 3)
    direct = sqlite3.connect(path)
    direct.execute("UPDATE attempts SET ended = 'sucksess' WHERE episode = 1")
    direct.commit()
    direct.close()
    with (
        Ledger.open(path) as ledger,
        pytest.raises(UnreadableLedgerError, match=r"row of episode 1 is damaged.*another"),
    ):
        list(ledger.accepted())


def test_a_full_disk_is_said_and_costs_nothing_that_was_recorded(ledger: Ledger) -> None:
    ledger.record([(success(0), True)])
    (pages,) = ledger._connection.execute("PRAGMA page_count").fetchone()
    ledger._connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own "database or disk is full"
    with pytest.raises(LedgerError, match=r"ledger\.sqlite: .*full; free some space"):
        ledger.record([(success(i), True) for i in range(1, 2000)])
    assert ledger.accepted_ids() == {0}
    ledger._connection.execute("PRAGMA max_page_count = 1000000")
    assert ledger.record([(success(1), True)]) == [1]


def test_a_ledger_that_another_process_holds_is_said(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "_BUSY_TIMEOUT_S", 0.05)
    other = Ledger.open(ledger.path)
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked; another process holds it"):
        other.record([(success(0), True)])
    holder.close()


def test_on_a_network_file_system_there_is_no_write_ahead_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ledger_module, "network_file_system", lambda path: "nfs4")
    with caplog.at_level(logging.WARNING), Ledger.create(tmp_path / "l.sqlite", {}) as ledger:
        ledger.record([(success(0), True)])
        assert not (tmp_path / "l.sqlite-wal").exists()
        assert ledger._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert "network file system (nfs4)" in caplog.text


def test_memory_stays_flat_over_a_hundred_thousand_episodes(ledger: Ledger) -> None:
    def write(first: int, last: int) -> None:
        for start in range(first, last, 500):
            ledger.record([(dataclasses.replace(FULL, episode=i), True) for i in range(start, start + 500)])

    write(0, 60_000)
    tracemalloc.start()
    try:
        write(60_000, 61_000)
        ledger.outcome_digest()
        gc.collect()  # also empties CPython's lists of freed tuples, which count as allocated
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        write(61_000, 100_000)
        assert sum(1 for _ in ledger.accepted()) == 100_000
        ledger.outcome_digest()
        _, peak = tracemalloc.get_traced_memory()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000  # a list of their numbers alone would be 312,000
    assert peak - before < 2_000_000


def test_marks_are_kept_of_results_alone(ledger: Ledger) -> None:
    ledger.record([(dataclasses.replace(success(1), marks=("success_lost",)), True), (success(2), True)])
    ledger.record([(dataclasses.replace(success(2, 2), marks=("solved_at_once",)), True)])  # too late to be its result
    assert ledger.marks() == {1: ("success_lost",)}


def test_a_ledger_without_the_time_of_films_is_read_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path, {}) as ledger:
        ledger.record([(FULL, True)])
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE attempts DROP COLUMN film_s")
    connection.close()
    older = dataclasses.replace(FULL, timings=dataclasses.replace(FULL.timings, film=0.0))
    with Ledger.open(path, read_only=True) as ledger:
        assert list(ledger.accepted()) == [older]
    later = dataclasses.replace(FULL, episode=FULL.episode + 1)
    with Ledger.open(path) as ledger:
        ledger.record([(later, True)])
        assert list(ledger.accepted()) == [older, later]
