"""The plan is a pure function of the configuration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robotrials.errors import ConfigError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import build_plan
from tests.toy import Toy, ToyConfig

TASKS = Toy(ToyConfig(task="a,b")).tasks()


def test_episode_i_of_every_task_has_seed_base_plus_i() -> None:
    plan = build_plan(TASKS, 3, 1000)
    assert [(e.id, e.task, e.index, e.seed) for e in plan] == [
        (0, "a", 0, 1000),
        (1, "a", 1, 1001),
        (2, "a", 2, 1002),
        (3, "b", 0, 1000),
        (4, "b", 1, 1001),
        (5, "b", 2, 1002),
    ]


def test_initial_states_are_used_in_order_and_wrap_around() -> None:
    task = replace(TASKS[0], n_init_states=2)
    assert [e.init_state for e in build_plan([task], 5, 0)] == [0, 1, 0, 1, 0]


def test_hash_is_equal_for_equal_plans_and_differs_for_any_change() -> None:
    base = build_plan(TASKS, 3, 1000).hash()
    assert build_plan(TASKS, 3, 1000).hash() == base
    others = [
        build_plan(TASKS, 4, 1000),
        build_plan(TASKS, 3, 1001),
        build_plan(TASKS[:1], 3, 1000),
        build_plan([replace(TASKS[0], instruction="Stay"), TASKS[1]], 3, 1000),
    ]
    assert base not in {plan.hash() for plan in others}


def test_group_enters_the_hash_only_where_a_task_has_one() -> None:
    before_groups_existed = "ad471dddec5853b05f002f7b2c6e96629129fbbdf86e2a4cac39c3f99caea7b7"
    assert build_plan(TASKS, 3, 1000).hash() == before_groups_existed
    assert build_plan([replace(TASKS[0], group="camera"), TASKS[1]], 3, 1000).hash() != before_groups_existed


@pytest.mark.parametrize(
    ("tasks", "n", "seed", "words"),
    [
        ([], 1, 0, "names no task"),
        (TASKS, 0, 0, "at least 1, got 0"),
        (TASKS, 1, -5, "must not be negative"),
        ([TASKS[0], replace(TASKS[0], suite="easy")], 1, 0, "asked for twice, in toys and in easy"),
    ],
)
def test_impossible_plan_is_refused(tasks: list, n: int, seed: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_plan(tasks, n, seed)


def test_generators_depend_on_episode_and_stream_alone() -> None:
    episode = EpisodeSpec(0, "s", "t", 0, 1000, None, 10)
    draw = episode.rng("policy").random(4)
    np.testing.assert_array_equal(draw, episode.rng("policy").random(4))
    np.testing.assert_array_equal(draw, replace(episode, id=99).rng("policy").random(4))
    for other in (
        episode.rng("noise"),
        replace(episode, task="u").rng("policy"),
        replace(episode, seed=1).rng("policy"),
    ):
        assert not np.array_equal(draw, other.random(4))
