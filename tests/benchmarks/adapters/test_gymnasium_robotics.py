from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robotrials.benchmarks.adapters.gym.env import GymEnv
from robotrials.benchmarks.adapters.gymnasium_robotics import TASKS, GymnasiumRobotics
from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec
from tests.benchmarks.scenes import IMAGE, digest, episode, in_a_fresh_process, make
from tests.benchmarks.spread import assert_exact

LIFT = "FetchPickAndPlace-v4"
SMALL = {"observation_width": 64, "observation_height": 48}


def at_random(env: Env, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1.0, 1.0, 4)


def test_tasks_tell_their_shapes_and_sentences_without_the_simulator() -> None:
    tasks = make_benchmark(EnvChoice("gymnasium_robotics", {"task": "fetch"})).tasks()
    assert [task.name for task in tasks] == list(TASKS)
    assert {task.max_steps for task in tasks} == {50}
    assert [task.observations["observation.state"].shape for task in tasks] == [(10,), (25,), (25,), (25,)]
    assert tasks[3].instruction == "Pick up the block and hold it at the target."
    assert (tasks[0].suite, tasks[0].record_key) == ("fetch", IMAGE)


@pytest.mark.parametrize(
    ("option", "value"), [("task", "FetchLift-v4"), ("fps", 30), ("episode_length", 0), ("reward_type", "none")]
)
def test_an_option_that_cannot_be_meant_is_refused(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=str(value)):
        make_benchmark(EnvChoice("gymnasium_robotics", {"task": LIFT, option: value})).tasks()


@pytest.mark.parametrize(("mujoco", "works"), [("3.3.0", True), ("3.10.0", True), ("3.17.0", False), ("4.0.0", False)])
def test_versions_of_mujoco_that_cannot_build_fetch_are_refused(mujoco: str, works: bool) -> None:
    conflict = GymnasiumRobotics.conflict({"gymnasium-robotics": "1.4.2", "mujoco": mujoco})
    assert (conflict is None) is works


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[TaskSpec, GymEnv]]:
    pytest.importorskip("gymnasium_robotics")
    task, env = make("gymnasium_robotics", task=LIFT, **SMALL)
    assert isinstance(env, GymEnv)
    yield task, env
    env.close()


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_as_declared_and_as_gymnasium_makes_it(name: str) -> None:
    pytest.importorskip("gymnasium_robotics")
    import gymnasium

    task, env = make("gymnasium_robotics", task=name, **SMALL)
    original = gymnasium.make(name, disable_env_checker=True)
    theirs, _ = original.reset(seed=1004)
    env.reset(episode(task, 1004))
    rng = np.random.default_rng(4)
    for _ in range(12):
        seen = env.observe([])
        assert np.array_equal(seen["observation.state"], theirs["observation"].astype(np.float32))
        assert np.array_equal(seen["observation.environment_state"], theirs["desired_goal"].astype(np.float32))
        action = at_random(env, rng).astype(np.float32)
        theirs, reward, terminated, truncated, info = original.step(action)
        assert env.step(action) == (reward, terminated, truncated, bool(info["is_success"]))
    seen = env.observe(task.images)
    found = {key: (np.asarray(seen[key]).shape, str(np.asarray(seen[key]).dtype)) for key in task.observations}
    assert found == {key: (f.shape, f.dtype) for key, f in task.observations.items()}
    original.close()
    env.close()


def test_an_episode_is_a_function_of_its_seed(scene: tuple[TaskSpec, GymEnv]) -> None:
    task, env = scene
    first = digest(task, env, 7, at_random, 30, (0, 30))
    for seed in (8, 9):
        digest(task, env, seed, at_random, 15, (3,))
    assert digest(task, env, 7, at_random, 30, (0, 30)) == first
    assert digest(task, env, 8, at_random, 30, (0, 30)) != first


def test_an_episode_is_the_same_in_another_process(scene: tuple[TaskSpec, GymEnv]) -> None:
    task, env = scene
    code = (
        "from tests.benchmarks.scenes import digest, make\n"
        "from tests.benchmarks.adapters.test_gymnasium_robotics import LIFT, SMALL, at_random\n"
        "task, env = make('gymnasium_robotics', task=LIFT, **SMALL)\n"
        "print(digest(task, env, 5, at_random, 30, (29,)))\n"
        "env.close()\n"
    )
    # Nothing on standard error either, neither the end of EGL nor the news of the package.
    assert in_a_fresh_process(code) == (digest(task, env, 5, at_random, 30, (29,)) + "\n", "")


def test_looking_changes_nothing_although_drawing_runs_the_simulator_forward(scene: tuple[TaskSpec, GymEnv]) -> None:
    task, env = scene

    def states(looks: bool, around: bool = True) -> list[bytes]:
        env.reset(episode(task, 3))
        rng = np.random.default_rng(3)
        data = env._sim.unwrapped.data
        trace = []
        for step in range(30):
            if looks and step % 3 == 0:
                if around:
                    env.observe([IMAGE])
                else:
                    env._sim.render()
            trace.append(repr(env.step(at_random(env, rng))).encode() + data.qpos.tobytes() + data.qvel.tobytes())
        return trace

    assert states(looks=True) == states(looks=False)
    assert states(looks=True, around=False) != states(looks=False)  # what the adapter mends


def test_a_picture_does_not_depend_on_earlier_ones(scene: tuple[TaskSpec, GymEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 3))
    for _ in range(5):
        env.step(np.full(4, 0.5))
    once = env.render()
    assert np.array_equal(env.render(), once)
    env.reset(episode(task, 4))
    env.render()
    env.reset(episode(task, 3))
    env.render()
    for _ in range(5):
        env.step(np.full(4, 0.5))
    assert np.array_equal(env.render(), once)


def test_reaching_the_goal_is_success_and_does_not_end_the_episode(scene: tuple[TaskSpec, GymEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    assert env.step(np.zeros(4)) == (-1.0, False, False, False)
    inner = env._sim.unwrapped
    inner.goal = inner._get_obs()["achieved_goal"].copy()
    assert env.step(np.zeros(4)) == (0.0, False, False, True)


def test_outcomes_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium_robotics")
    options = {"task": "FetchReach-v4,FetchPush-v4", "reward_type": "dense"}
    assert_exact(EnvChoice("gymnasium_robotics", options), tmp_path)
