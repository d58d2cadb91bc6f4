"""On a stand-in with the calls of VLABench and of the parts of dm_control that are used beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")

from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, ContractError, RobotrialsError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec
from tests.benchmarks.scenes import episode, make
from tests.benchmarks.stand_ins import forget, install

ENVS = '''"""A stand-in for VLABench.envs: layouts from the global generator, some of which diverge."""
from types import SimpleNamespace

import numpy as np
from dm_control.rl.control import PhysicsError

BUILDS = []
DIVERGES = [False]


class Env:
    def __init__(self, layout, size):
        self.layout, self.size, self.at = layout, size, np.zeros(9)
        self.physics = SimpleNamespace(data=SimpleNamespace(ctrl=np.zeros(9)))
        robot = SimpleNamespace(end_effector_site=SimpleNamespace(full_identifier="franka/ee"), n_dof=7)
        self.task = SimpleNamespace(task_description=["Pick the fruit."], robot=robot, random=np.random.RandomState(0),
                                    should_terminate_episode=lambda physics: self.at[0] > 1)

    def get_robot_frame_position(self):
        return [0.0, -0.4, 0.78]

    def reset(self):
        self.extra = float(self.task.random.rand())

    def get_observation(self):
        rgb = np.stack([np.full((3, *self.size), 10 * k, np.uint8) for k in range(3)])
        pose = [0.1, -0.3, 0.88, np.cos(0.25), 0.0, 0.0, np.sin(0.25), 1.0]  # turned by 0.5 about z
        return {"rgb": rgb, "ee_state": np.array(pose)}

    def step(self, control):
        self.at = control
        if control[0] < -1:
            raise PhysicsError("mjWARN_BADQACC")
        return SimpleNamespace(reward=None)

    def close(self):
        pass


def load_env(task, robot, render_resolution):
    layout = float(np.random.rand())
    BUILDS.append((task, robot, layout))
    if DIVERGES[0] or len(BUILDS) == 1:
        raise PhysicsError("mjWARN_BADQACC")
    return Env(layout, render_resolution)
'''
KINEMATICS = '''"""A stand-in for dm_control's inverse kinematics: joints that tell what was asked for."""
from types import SimpleNamespace

import numpy as np

ASKED = []


def qpos_from_site_pose(physics, site_name, target_pos, target_quat, inplace, max_steps):
    ASKED.append((site_name, target_pos, target_quat, inplace))
    return SimpleNamespace(qpos=np.concatenate([target_pos, target_quat, np.ones(5)]))
'''
FILES = {
    "VLABench/envs.py": ENVS,
    "VLABench/robots.py": '"""A stand-in."""\n',
    "VLABench/tasks.py": '"""A stand-in."""\n',
    "dm_control/rl/control.py": '"""A stand-in."""\nclass PhysicsError(RuntimeError):\n    pass\n',
    "dm_control/utils/inverse_kinematics.py": KINEMATICS,
}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TaskSpec, Env]]:
    install(tmp_path, FILES, monkeypatch)
    yield make("vlabench", task="select_fruit", observation_width=12, observation_height=10)
    forget("VLABench", "dm_control")


def test_suites_and_tasks_are_known_without_the_simulator() -> None:
    tasks = make_benchmark(EnvChoice("vlabench", {"task": "primitive,heat_food"})).tasks()
    assert (tasks[0].suite, tasks[0].name, tasks[-1].suite) == ("primitive", "select_fruit", "heat_food")
    assert tasks[0].instruction == "Select fruit."
    assert (tasks[0].max_steps, tasks[0].action.low[-1], tasks[0].action.dim) == (500, 0.0, 7)
    with pytest.raises(ConfigError, match=r"no task or suite select_frui \(did you mean select_fruit\?\)"):
        make_benchmark(EnvChoice("vlabench", {"task": "select_frui"})).tasks()


def test_the_layout_is_the_seeds_even_after_one_that_diverges(scene: tuple[TaskSpec, Env]) -> None:
    import VLABench.envs as fake

    task, env = scene

    def layout(seed: int) -> tuple[float, float]:
        env.reset(episode(task, seed))
        np.random.rand()  # whoever draws in between
        return env._sim.layout, env._sim.extra  # type: ignore[attr-defined]

    after_one_that_diverged = layout(5)
    assert len(fake.BUILDS) == 2
    fake.BUILDS.append(())
    other, again = layout(6), layout(5)
    assert again != other
    # The first layout of seed 5 diverged when it was built first; now it stands, and is the same ever after.
    assert again[0] == fake.BUILDS[0][2]
    assert layout(5) == again != after_one_that_diverged


def test_states_are_in_the_robots_frame_and_pictures_in_its_order(scene: tuple[TaskSpec, Env]) -> None:
    task, env = scene
    env.reset(episode(task, 5))
    seen = env.observe(list(task.images))
    assert seen["task"] == "Pick the fruit."
    assert np.allclose(np.asarray(seen["observation.state"]), [0.1, 0.1, 0.1, 0, 0, 0.5, 1.0], atol=1e-6)
    assert [np.asarray(seen[key]).max() for key in task.images] == [0, 10, 20]
    assert np.asarray(seen["observation.images.image"]).shape == (10, 12, 3)
    with pytest.raises(ContractError, match=r"no camera observation\.image;"):
        env.observe(["observation.image"])


def test_actions_are_poses_solved_for_joints_and_both_fingers(scene: tuple[TaskSpec, Env]) -> None:
    import dm_control.utils.inverse_kinematics as kinematics

    task, env = scene
    env.reset(episode(task, 5))
    assert env.step(np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.5, 0.5])) == (0.0, False, False, False)
    site, position, quaternion, inplace = kinematics.ASKED[0]
    assert (site, inplace) == ("franka/ee", False)
    assert np.allclose(position, [0.1, -0.4, 0.78])
    assert np.allclose(quaternion, [np.cos(0.25), 0, 0, np.sin(0.25)])
    assert env._sim.at[-2:].tolist() == [0.02, 0.02]  # type: ignore[attr-defined]
    assert env.step(np.array([1.5, 0, 0, 0, 0, 0, 1.0])) == (0.0, True, False, True)


def test_divergence_ends_an_episode_and_a_seed_with_no_layout_is_an_error(scene: tuple[TaskSpec, Env]) -> None:
    import VLABench.envs as fake

    task, env = scene
    env.reset(episode(task, 5))
    assert env.step(np.array([-1.5, 0, 0, 0, 0, 0, 1.0])) == (0.0, True, False, False)
    fake.DIVERGES[0] = True
    with pytest.raises(RobotrialsError, match="diverged in 20 layouts of seed 6: mjWARN_BADQACC"):
        env.reset(episode(task, 6))
    fake.DIVERGES[0] = False
    env.reset(episode(task, 5))
    del env._sim.task.should_terminate_episode  # type: ignore[attr-defined]
    assert env.step(np.zeros(7)).success is None
    env.close()
