"""Which results of a run its rates are made of.

Successes end early and failures at the step limit, so what has ended of an unfinished run is a biased sample: after 4
of 60 episodes on six workers all four may be successes, with six failures under way. So a result counts only if every
episode before it, in an order that was fixed beforehand, has one too: the longest finished beginning of that order.
Results beyond it are set aside until the episodes before them have ended. The bias that remains is that of one episode,
the first that is unfinished: in simulations (failures ten times as long, 6 workers, 60 episodes, half of them
successes) the rate is 50 to 53 % from nine counted episodes on, where that of all that ended is 63 %.

The order is a function of the plan and of ``tasks_at_once`` in run.json, the number of worker processes of the first
session, never of outcomes. Tasks, those with the highest step limit first, are taken in blocks of so many; within a
block episodes come round by round: the first of every task, then the second of every task. That is nearly the order in
which the queue hands them out, so the finished beginning is long: with 10 tasks of 50 episodes on 8 workers, half of
them ended, 200 of 250 results count, where round by round over all tasks only 8 would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan
from robotrials.plan.shards import shard_of


@dataclass(frozen=True)
class Counting:
    """What counts of a run. ``planned`` episodes are what its rates are about, ``counted`` those of them that have a
    result which counts. ``out_of_order``: results set aside, because an episode before them has none yet. ``surplus``:
    results beyond the decision of ``--until``."""

    planned: frozenset[int]
    counted: frozenset[int]
    out_of_order: frozenset[int] = frozenset()
    surplus: frozenset[int] = frozenset()


def everything(plan: Plan) -> Counting:
    """Every result counts."""
    ids = frozenset(episode.id for episode in plan)
    return Counting(ids, ids)


def what_counts(
    described: Mapping[str, Any], plan: Plan, settled: Iterable[int], tried: Iterable[int] = ()
) -> Counting:
    """What counts of the run that ``described`` (run.json) describes; ``settled`` episodes have a result, if only an
    error. All of them, of a run that has played its plan.

    ``tried`` episodes have had an attempt. One that has a result by none of them erred and is to be played again: as
    with any error nothing waits for it, else resuming a run for one error would leave all other results out.
    """
    done = frozenset(settled)
    decided = counted_ids(described, plan)
    planned = frozenset(episode.id for episode in plan) if decided is None else decided
    surplus = done - planned
    if planned <= done:
        return Counting(planned, planned, surplus=surplus)
    counted: set[int] = set()
    erred = frozenset(tried) - done
    for order in orders(described, plan):
        counted |= beginning((episode for episode in order if episode.id not in erred), done)
    return Counting(planned, frozenset(counted & planned), (done & planned) - counted, surplus)


def beginning(order: Iterable[EpisodeSpec], settled: frozenset[int]) -> set[int]:
    """The longest beginning of ``order`` in which every episode is settled."""
    found: set[int] = set()
    for episode in order:
        if episode.id not in settled:
            break
        found.add(episode.id)
    return found


def orders(described: Mapping[str, Any], plan: Plan) -> list[list[EpisodeSpec]]:
    """The fixed order of the run's episodes; of a run merged from shards one for each, since each began by itself."""
    at_once = (described.get("order") or {}).get("tasks_at_once")
    order = in_blocks(plan, at_once) if isinstance(at_once, int) and at_once > 0 else balanced(plan)
    merged = described.get("merged_from") or ()
    if not merged:
        return [order]
    n_shards, per_task = int(merged[0]["shard"]["of"]), int(described["config"]["eval"]["n_episodes"])
    slices: list[list[EpisodeSpec]] = [[] for _ in range(n_shards)]
    for episode in order:
        slices[shard_of(episode.id // per_task, episode.index, per_task, n_shards)].append(episode)
    return slices


def balanced(plan: Plan) -> list[EpisodeSpec]:
    """The episodes of ``plan`` round by round: the first of every task, then the second of every task, and so on."""
    position = {task.key: i for i, task in enumerate(plan.tasks)}
    return sorted(plan.episodes, key=lambda episode: (episode.index, position[(episode.suite, episode.task)]))


def in_blocks(plan: Plan, tasks_at_once: int) -> list[EpisodeSpec]:
    """Tasks by step limit, the highest first, in blocks of ``tasks_at_once``; round by round within a block."""
    ranked = sorted(plan.tasks, key=lambda task: -task.max_steps)
    place = {task.key: i for i, task in enumerate(ranked)}

    def key(episode: EpisodeSpec) -> tuple[int, int, int]:
        at = place[(episode.suite, episode.task)]
        return at // tasks_at_once, episode.index, at

    return sorted(plan.episodes, key=key)


def counted_ids(described: Mapping[str, Any], plan: Plan) -> frozenset[int] | None:
    """The episodes by which ``--until`` decided: a beginning of the balanced order, whose length run.json has. None
    where it did not stop the run."""
    counted = (described.get("stopping") or {}).get("counted")
    return None if counted is None else frozenset(episode.id for episode in balanced(plan)[:counted])


def out_of_order_words(n: int, errors: int = 0) -> str:
    """Why ``n`` results, ``errors`` of them errors, are in no rate; empty for none.

    >>> out_of_order_words(7)
    '7 more episodes ended out of order; they are left out of the rates because successes tend to end first'
    """
    if not n:
        return ""
    more = "1 more episode" if n == 1 else f"{n:,} more episodes"
    erred = f" ({errors:,} of them in an error)" if errors else ""
    they = "it is" if n == 1 else "they are"
    return f"{more}{erred} ended out of order; {they} left out of the rates because successes tend to end first"
