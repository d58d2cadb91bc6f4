"""A tiny run whose figures can be worked out by hand: two suites, three tasks, four episodes each."""

from __future__ import annotations

from robotrials.plan.plan import Plan, build_plan
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.results.ledger import Ledger
from robotrials.results.record import EndReason, EpisodeRecord, Timings


def task(suite: str, name: str, task_id: int) -> TaskSpec:
    return TaskSpec(suite, name, task_id, f"do {name}", 500, 80.0, {}, ActionSpec(1, (-1.0,), (1.0,)))


def plan() -> Plan:
    """Episodes 0-3 easy/push, 4-7 easy/reach, 8-11 hard/hammer; seeds 1000-1003 of each."""
    return build_plan([task("easy", "push", 0), task("easy", "reach", 1), task("hard", "hammer", 0)], 4, 1000)


def finished(episode: int, success: bool, steps: int, reward_sum: float, reward_max: float) -> EpisodeRecord:
    return EpisodeRecord(
        episode=episode,
        attempt=1,
        worker="w0",
        end=EndReason.SUCCESS if success else EndReason.TIME_LIMIT,
        success=success,
        steps=steps,
        reward_sum=reward_sum,
        reward_max=reward_max,
        timings=Timings(reset=0.5, simulate=1.0, render=2.0, infer=0.25, wait=0.125, total=4.0),
        video=f"videos/{episode}.mp4" if episode in (0, 4) else None,
    )


def errored(episode: int, attempt: int = 3) -> EpisodeRecord:
    return EpisodeRecord(episode, attempt, "w0", EndReason.ERROR, None, 7, None, None, error="RuntimeError: boom")


def fill(ledger: Ledger) -> None:
    """push: 3 of 4 succeed. reach: 1 of 2, one error, one not run. hammer: two errors, nothing else."""
    batch = [
        finished(1, True, 20, 2.0, 1.0),
        finished(0, True, 10, 1.0, 0.5),
        finished(3, False, 500, -3.0, -0.5),
        finished(2, True, 30, 4.0, 1.0),
        finished(4, True, 40, 8.0, 2.0),
        finished(6, False, 60, 2.0, 1.0),
        errored(5),
        errored(8),
        errored(9),
    ]
    ledger.record([(record, True) for record in batch] + [(errored(5, 1), False), (errored(5, 2), False)])
