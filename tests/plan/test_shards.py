"""Slices of a plan: disjoint, complete, and alike in all that could make one harder than another."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robotrials.errors import ConfigError
from robotrials.plan.plan import Plan, build_plan
from robotrials.plan.shards import Shard, shard_of, slice_plan
from tests import toy


def plan_of(n_tasks: int, n_episodes: int) -> Plan:
    names = ",".join(f"t{number}" for number in range(n_tasks))
    return build_plan(toy.Toy(toy.ToyConfig(task=names)).tasks(), n_episodes, 1000)


@given(n_tasks=st.integers(1, 40), per_task=st.integers(1, 60), count=st.integers(1, 70))
@settings(max_examples=300, deadline=None)
def test_shards_differ_by_one_episode_at_most_in_all_by_task_and_by_index(
    n_tasks: int, per_task: int, count: int
) -> None:
    of = {(t, i): shard_of(t, i, per_task, count) for t in range(n_tasks) for i in range(per_task)}
    groups = [list(of.values())]
    groups += [[of[t, i] for i in range(per_task)] for t in range(n_tasks)]
    groups += [[of[t, i] for t in range(n_tasks)] for i in range(per_task)]
    for members in groups:
        sizes = Counter(members)
        each = [sizes[shard] for shard in range(count)]
        assert max(each) - min(each) <= 1


@pytest.mark.parametrize(("n_tasks", "n_episodes", "count"), [(1, 7, 3), (4, 10, 10), (5, 4, 3), (3, 1, 2)])
def test_shards_are_disjoint_and_complete_and_keep_the_episodes_as_they_are(
    n_tasks: int, n_episodes: int, count: int
) -> None:
    plan = plan_of(n_tasks, n_episodes)
    slices = [slice_plan(plan, Shard(k, count)) for k in range(count)]
    together = sorted((episode for part in slices for episode in part), key=lambda episode: episode.id)
    assert tuple(together) == plan.episodes
    for part in slices:
        assert {task.key for task in part.tasks} == {(e.suite, e.task) for e in part}
        assert all(part.episode(e.id) is e and e.id in part for e in part)


def test_shard_does_not_get_the_same_episode_of_every_task() -> None:
    indices = Counter(episode.index for episode in slice_plan(plan_of(10, 10), Shard(0, 10)))
    assert indices == dict.fromkeys(range(10), 1)


def test_one_shard_is_the_plan_itself() -> None:
    plan = plan_of(2, 3)
    assert slice_plan(plan, Shard()) is plan


@pytest.mark.parametrize(("number", "count"), [(0, 0), (-1, 2), (2, 2)])
def test_shard_that_does_not_exist_is_refused(number: int, count: int) -> None:
    with pytest.raises(ConfigError, match=r"--eval\.(num_shards|shard_id)"):
        Shard(number, count)


def test_more_shards_than_episodes_are_refused() -> None:
    with pytest.raises(ConfigError, match="only 6 episodes"):
        slice_plan(plan_of(2, 3), Shard(0, 7))
