"""The watchdog: who is found to hang, by heartbeats on a clock that the test moves."""

from __future__ import annotations

import pytest

from robotrials.control.messages import Beat
from robotrials.engine.worker_table import WorkerEntry, WorkerState, WorkerStateError, WorkerTable


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def moved(table: WorkerTable, entry: WorkerEntry, *states: WorkerState) -> None:
    for state in states:
        table.enter(entry, state)


def beat(entry: WorkerEntry, count: int, phase: str = "idle") -> Beat:
    return Beat(entry.name, "token", 0, count, phase, 0)


def test_a_policy_server_that_is_idle_and_beats_does_not_hang() -> None:
    clock = Clock()
    table = WorkerTable(10.0, "s", clock)
    server = table.enlist(0)[0]
    moved(table, server, WorkerState.LOADING, WorkerState.SERVING)
    for _ in range(100):
        clock.now += 1.0
        table.beat(beat(server, 5))
        assert table.hung() == []


def test_a_policy_server_that_was_stopped_while_idle_is_found_by_its_silence() -> None:
    """Its phase says idle; workers would wait for it, and each be taken for the one that hangs."""
    clock = Clock()
    table = WorkerTable(10.0, "s", clock)
    server = table.enlist(0)[0]
    moved(table, server, WorkerState.LOADING, WorkerState.SERVING)
    table.beat(beat(server, 5))
    clock.now += 9.0
    assert table.hung() == []
    clock.now += 2.0
    assert table.hung() == [(server, "no sign of life for 11 s (--eval.step_timeout=10)")]


def test_a_policy_server_whose_heart_stood_still_while_it_loaded_is_not_blamed() -> None:
    clock = Clock()
    table = WorkerTable(10.0, "s", clock)
    server = table.enlist(0)[0]
    table.enter(server, WorkerState.LOADING)
    clock.now += 60.0
    table.enter(server, WorkerState.SERVING)
    assert table.hung() == []


def test_a_worker_is_found_by_its_count_even_if_it_beats() -> None:
    clock = Clock()
    table = WorkerTable(10.0, clock=clock)
    worker = table.enlist(0)[0]
    moved(table, worker, WorkerState.LOADING, WorkerState.IDLE, WorkerState.BUSY)
    for _ in range(11):
        clock.now += 1.0
        table.beat(beat(worker, 7, "simulate"))
    assert table.hung() == [], "its first beat counted"
    clock.now += 1.0
    ((found, reason),) = table.hung()
    assert found is worker
    assert reason.startswith("hung: no progress for 11 s in phase simulate at step 0")


def test_nothing_is_given_to_one_that_is_gone() -> None:
    """Two die in the same moment: what the first had held must not go to the second, which was idle."""
    table = WorkerTable(10.0)
    worker = table.enlist(0)[0]
    moved(table, worker, WorkerState.LOADING, WorkerState.IDLE)
    assert table.remove(worker.name) is worker
    assert worker.state is WorkerState.ENDING


def test_the_workers_of_one_process_are_numbered_through_and_found_by_it() -> None:
    table = WorkerTable(10.0)
    first, second = table.enlist(0, 3, 0), table.enlist(1, 2, 3)
    assert [(entry.name, entry.slot) for entry in (*first, *second)] == [
        ("w0-0", 0),
        ("w0-1", 1),
        ("w0-2", 2),
        ("w1-0", 3),
        ("w1-1", 4),
    ]
    assert table.of_process("w1") == second
    for entry in second:
        table.remove(entry.name)
    assert [entry.name for entry in table.enlist(1, 2, 3)] == ["w1.2-0", "w1.2-1"]


def test_states_that_cannot_follow_each_other_are_refused() -> None:
    table = WorkerTable(10.0)
    worker, server = table.enlist(0)[0], table.enlist(1)[0]
    with pytest.raises(WorkerStateError, match="w0 cannot become busy while it is starting"):
        table.enter(worker, WorkerState.BUSY)
    moved(table, worker, WorkerState.WAITING, WorkerState.LOADING, WorkerState.IDLE, WorkerState.BUSY)
    with pytest.raises(WorkerStateError, match="cannot become loading while it is busy"):
        table.enter(worker, WorkerState.LOADING)
    moved(table, worker, WorkerState.ENDING, WorkerState.ENDING)
    with pytest.raises(WorkerStateError, match="cannot become idle while it is ending"):
        table.enter(worker, WorkerState.IDLE)
    moved(table, server, WorkerState.LOADING, WorkerState.SERVING)
    with pytest.raises(WorkerStateError):
        table.enter(server, WorkerState.SERVING)
