"""The tables of a ledger, and an attempt as a row of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robotrials.results.record import EndReason, EpisodeRecord, Timings

SCHEMA_VERSION = 1
APPLICATION_ID = 0x52545249  # "RTRI", in the header of the file: tells our ledgers from other SQLite databases.

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE attempts (
    episode INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT NOT NULL,
    started_at REAL NOT NULL,
    accepted INTEGER NOT NULL CHECK (accepted IN (0, 1)),
    ended TEXT NOT NULL,
    success INTEGER CHECK (success IN (0, 1)),
    steps INTEGER NOT NULL,
    reward_sum REAL,
    reward_max REAL,
    looks INTEGER NOT NULL,
    renders INTEGER NOT NULL,
    reset_s REAL NOT NULL,
    simulate_s REAL NOT NULL,
    render_s REAL NOT NULL,
    infer_s REAL NOT NULL,
    wait_s REAL NOT NULL,
    total_s REAL NOT NULL,
    video TEXT,
    error TEXT,
    film_s REAL NOT NULL DEFAULT 0,
    nonfinite INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (episode, attempt, worker, started_at)
) WITHOUT ROWID;
CREATE UNIQUE INDEX one_accepted_row_per_episode ON attempts (episode) WHERE accepted = 1;
"""
COLUMNS = (
    "episode, attempt, worker, started_at, ended, success, steps, reward_sum, reward_max, looks, renders, "
    "reset_s, simulate_s, render_s, infer_s, wait_s, total_s, video, error, film_s, nonfinite"
)
ADDED = {"film_s": "REAL NOT NULL DEFAULT 0", "nonfinite": "INTEGER NOT NULL DEFAULT 0"}
"""Columns that ledgers of earlier versions lack. What they hold there is 0; earlier versions read ledgers with them."""
RECORD = (
    f"INSERT INTO attempts ({COLUMNS}, accepted) VALUES ({'?, ' * len(COLUMNS.split(','))}?) "
    "ON CONFLICT (episode, attempt, worker, started_at) DO UPDATE SET accepted = max(accepted, excluded.accepted)"
)


def row_of(record: EpisodeRecord) -> tuple[Any, ...]:
    """Plain Python values in the order of COLUMNS; NumPy scalars would be refused or stored as bytes."""
    times = record.timings
    return (
        int(record.episode),
        int(record.attempt),
        record.worker,
        _storable(record.started_at),
        record.end.value,
        None if record.success is None else int(record.success),
        int(record.steps),
        None if record.reward_sum is None else _storable(record.reward_sum),
        None if record.reward_max is None else _storable(record.reward_max),
        int(record.looks),
        int(record.renders),
        _storable(times.reset),
        _storable(times.simulate),
        _storable(times.render),
        _storable(times.infer),
        _storable(times.wait),
        _storable(times.total),
        record.video,
        None if record.error is None else record.error.encode("utf-8", "backslashreplace").decode("utf-8"),
        _storable(times.film),
        int(record.nonfinite),
    )


def record_of(row: Sequence[Any]) -> EpisodeRecord:
    episode, attempt, worker, started_at, ended, success, steps, reward_sum, reward_max, looks, renders = row[:11]
    return EpisodeRecord(
        episode=episode,
        attempt=attempt,
        worker=worker,
        end=EndReason(ended),
        success=None if success is None else bool(success),
        steps=steps,
        reward_sum=read_float(reward_sum),
        reward_max=read_float(reward_max),
        looks=looks,
        renders=renders,
        timings=Timings(
            reset=float(row[11]),
            simulate=float(row[12]),
            render=float(row[13]),
            infer=float(row[14]),
            wait=float(row[15]),
            total=float(row[16]),
            film=float(row[19]),
        ),
        video=row[17],
        error=row[18],
        nonfinite=int(row[20]),
        started_at=float(started_at),
    )


def read_float(stored: float | str | None) -> float | None:
    """A number as the ledger holds it, back as a float; None stays None."""
    return None if stored is None else float(stored)


def _storable(number: float) -> float | str:
    """SQLite turns NaN into NULL, which here means "none": keep it as a text, which ``float`` reads back."""
    number = float(number)
    return number if number == number else "nan"
