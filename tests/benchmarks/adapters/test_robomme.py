"""On a stand-in with the calls of RoboMME's BenchmarkEnvBuilder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robotrials.benchmarks.adapters.robomme import TASKS
from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec
from tests.benchmarks.scenes import episode, make
from tests.benchmarks.stand_ins import forget, install

FAKE = '''"""A stand-in for robomme.env_record_wrapper: a counter that succeeds at its third step."""
import numpy as np

BUILT = []
CLOSED = []


class Env:
    def __init__(self, number, steps):
        self.number, self.left, self.at = number, steps, 0

    def _seen(self):
        old, new = np.zeros((256, 256, 3), np.uint8), np.full((256, 256, 3), 10 * self.at, np.uint8)
        joints = np.arange(7) + self.number
        return {"front_rgb_list": [old, new], "wrist_rgb_list": [new, old], "joint_state_list": [joints * 0, joints],
                "gripper_state_list": [np.array([0.5, 0.5])]}

    def reset(self):
        return self._seen(), {"task_goal": ["Pick the cube %d times." % self.number, "another way"]}

    def step(self, action):
        self.at += 1
        done = self.at == 3
        status = "success" if done and action[0] > 0 else "fail" if done else "ongoing"
        return self._seen(), np.float32(0.5), np.array(done), np.array(False), {"status": status}

    def close(self):
        CLOSED.append(self.number)


class BenchmarkEnvBuilder:
    def __init__(self, env_id, dataset, action_space, gui_render, max_steps):
        self.steps = max_steps
        BUILT.append((env_id, dataset, action_space, gui_render, max_steps))

    def make_env_for_episode(self, episode_idx, max_steps):
        return Env(episode_idx, max_steps)
'''


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TaskSpec, Env]]:
    install(tmp_path, {"robomme/env_record_wrapper.py": FAKE}, monkeypatch)
    yield make("robomme", task="PickXtimes")
    forget("robomme")


def test_sixteen_tasks_in_four_suites() -> None:
    tasks = make_benchmark(EnvChoice("robomme", {"task": "counting,permanence,reference,imitation"})).tasks()
    assert len(tasks) == len(TASKS) == 16
    assert tasks[4].instruction == "Video unmask."
    assert [(task.suite, task.id) for task in tasks[4:6]] == [("permanence", 0), ("permanence", 1)]
    (task,) = make_benchmark(EnvChoice("robomme", {"task": "StopCube", "action_space": "ee_pose"})).tasks()
    assert (task.action.dim, task.max_steps, task.control_hz) == (7, 300, 10.0)
    with pytest.raises(ConfigError, match=r"no task or suite StopCub \(did you mean StopCube\?\)"):
        make_benchmark(EnvChoice("robomme", {"task": "StopCub"})).tasks()


def test_the_episode_is_the_seeds_and_the_present_is_the_last_of_a_list(scene: tuple[TaskSpec, Env]) -> None:
    task, env = scene
    env.reset(episode(task, 1007))
    seen = env.observe(list(task.images))
    assert seen["task"] == "Pick the cube 7 times."
    assert np.array_equal(seen["observation.state"], [7, 8, 9, 10, 11, 12, 13, 0.5])
    env.step(np.ones(8))
    seen = env.observe(list(task.images))
    assert np.asarray(seen["observation.images.image"]).max() == 10
    assert np.asarray(seen["observation.images.wrist_image"]).max() == 0
    assert env.render().max() == 10
    with pytest.raises(ContractError, match=r"no camera observation\.image; it has: observation\.images\.image"):
        env.observe(["observation.image"])


def test_success_is_its_status_and_every_episode_has_a_simulator_of_its_own(scene: tuple[TaskSpec, Env]) -> None:
    import robomme.env_record_wrapper as fake

    task, env = scene
    assert fake.BUILT == [("PickXtimes", "test", "joint_angle", False, 300)]
    for sign, success in ((1.0, True), (-1.0, False)):
        env.reset(episode(task, 3))
        outcomes = [env.step(np.full(8, sign)) for _ in range(3)]
        assert [o.success for o in outcomes] == [False, False, success]
        assert [o.terminated for o in outcomes] == [False, False, True]
        assert outcomes[0].reward == 0.5
    env.close()
    env.close()
    assert fake.CLOSED == [3, 3]


def test_a_missing_status_is_no_failure(scene: tuple[TaskSpec, Env], monkeypatch: pytest.MonkeyPatch) -> None:
    import robomme.env_record_wrapper as fake

    task, env = scene
    monkeypatch.setattr(fake.Env, "step", lambda self, action: (self._seen(), 0.0, True, False, {}))
    env.reset(episode(task, 3))
    assert env.step(np.zeros(8)).success is None


def test_a_pose_out_of_reach_fails_the_episode_and_a_failing_simulator_does_not(
    scene: tuple[TaskSpec, Env], monkeypatch: pytest.MonkeyPatch
) -> None:
    import robomme.env_record_wrapper as fake

    task, env = scene
    env.reset(episode(task, 3))
    env.step(np.ones(8))
    unreachable = {"status": "error", "error_message": "no joints reach it"}
    monkeypatch.setattr(fake.Env, "step", lambda self, action: ({}, 0.0, True, False, unreachable))
    assert env.step(np.ones(8)) == (0.0, True, False, False)
    assert env.render().max() == 10  # what was last seen
    broken = {"status": "error", "error_message": "a planner fell over", "exception_type": "ValueError"}
    monkeypatch.setattr(fake.Env, "step", lambda self, action: (None, 0.0, True, False, broken))
    with pytest.raises(RuntimeError, match="PickXtimes: ValueError: a planner fell over"):
        env.step(np.ones(8))
