"""Slices of a plan for machines that share nothing: which episodes belong to shard k of n."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from robotrials.errors import ConfigError
from robotrials.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Shard:
    """Slice ``id`` (from 0) of ``count``; 0 of 1 is the whole plan."""

    id: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"--eval.num_shards must be at least 1, got {self.count}")
        if not 0 <= self.id < self.count:
            raise ConfigError(
                f"--eval.shard_id counts from 0: of --eval.num_shards={self.count} the last is {self.count - 1}, "
                f"got {self.id}"
            )

    @property
    def is_whole(self) -> bool:
        return self.count == 1

    def __str__(self) -> str:
        return f"{self.id} of {self.count}"


def shard_of(task: int, index: int, per_task: int, count: int) -> int:
    """Which of ``count`` shards plays episode ``index`` (of ``per_task``) of the ``task``-th task.

    Any two shards differ by one episode at most: in all, within each task, and within each index over the tasks.
    Dealing the episodes out one by one (``task * per_task + index``) gives the first two, but when ``count`` divides
    ``per_task`` shard k gets episode k of every task, and what is harder about that episode (its seed, its initial
    state) falls to one shard. So the deal starts one further each time it comes round to the same shard.
    """
    period = count // gcd(per_task, count)
    return (task * per_task + index + task // period) % count


def slice_plan(plan: Plan, shard: Shard) -> Plan:
    """The part of ``plan`` that ``shard`` plays: its episodes as they are, ids included, and the tasks that have any.

    ``plan`` holds equally many episodes of every task, as ``build_plan`` lays them out.

    Raises:
        ConfigError: there are more shards than episodes.
    """
    if shard.is_whole:
        return plan
    if shard.count > len(plan):
        raise ConfigError(f"--eval.num_shards={shard.count}: the plan has only {len(plan)} episodes to share out")
    position = {task.key: number for number, task in enumerate(plan.tasks)}
    per_task = len(plan) // len(plan.tasks)
    episodes = tuple(
        episode
        for episode in plan
        if shard_of(position[(episode.suite, episode.task)], episode.index, per_task, shard.count) == shard.id
    )
    present = {(episode.suite, episode.task) for episode in episodes}
    return Plan(tuple(task for task in plan.tasks if task.key in present), episodes)
