"""Groups of scenes, and what they are one by one."""

from __future__ import annotations

import numpy as np
import pytest

from robotrials.benchmarks.scene_group import EnvGroup, OneScene, scenes_of
from robotrials.errors import ConfigError
from robotrials.plan.plan import build_plan
from tests import toy
from tests.toy_scenes import Drifting, ToyScenes, ToyScenesConfig

BENCHMARK = ToyScenes(ToyScenesConfig(num_envs=3))
EPISODES = build_plan(BENCHMARK.tasks(), 2, 1000).episodes


def test_a_benchmark_says_how_many_scenes_its_processes_have() -> None:
    assert scenes_of(BENCHMARK) == 3
    assert scenes_of(toy.Toy(toy.ToyConfig())) == 1


def test_a_group_of_one_is_an_environment() -> None:
    env, alone = BENCHMARK.make(BENCHMARK.tasks()[0]), toy.ToyEnv(toy.ToyConfig())
    assert isinstance(env, OneScene)
    for scene in (env, alone):
        scene.reset(EPISODES[1])
    for _ in range(4):
        assert env.step(np.ones(1)) == alone.step(np.ones(1))
    assert np.array_equal(env.render(), alone.render())
    seen, right = (scene.observe(["observation.image"]) for scene in (env, alone))
    assert seen.keys() == right.keys()
    assert np.array_equal(seen["observation.state"], right["observation.state"])
    env.close()
    assert isinstance(env.group, Drifting)
    assert env.group.is_closed


def test_environments_as_a_group_are_stepped_only_when_somebody_plays_there() -> None:
    envs = [toy.ToyEnv(toy.ToyConfig()) for _ in range(2)]
    group = EnvGroup(envs)
    for slot, episode in enumerate(EPISODES):
        group.reset(slot, episode)
    assert group.step({1: np.ones(1)}).keys() == {1}
    assert envs[0].position == 0.0
    assert envs[1].position == pytest.approx(0.5, abs=0.1)


def test_an_empty_group_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one scene"):
        EnvGroup([])
