"""On a stand-in with the calls of RoboTwin's task classes and its settings files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robotrials.benchmarks.adapters.robotwin import TASKS
from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec
from tests.benchmarks.scenes import episode, make
from tests.benchmarks.stand_ins import forget, install

TASK = '''"""A stand-in for a task of RoboTwin."""
import numpy as np

LOOKS = []
SETTINGS = []


class click_bell:
    def setup_demo(self, **settings):
        SETTINGS.append(settings)
        self.joints = np.full(14, settings["seed"], float)
        self.eval_success = False

    def get_obs(self):
        LOOKS.append(1)
        rgb = np.full((240, 320, 4), int(self.joints[0]) % 256, np.uint8)
        cameras = {name: {"rgb": rgb} for name in ("head_camera", "left_camera", "right_camera")}
        return {"observation": cameras, "joint_action": {"vector": self.joints.copy()}}

    def take_action(self, action):
        self.joints = self.joints + action

    def check_success(self):
        return self.joints[0] > 20

    def close_env(self):
        SETTINGS.append("closed")
'''


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TaskSpec, Env]]:
    torch = "import contextlib\nenable_grad = contextlib.nullcontext\n"
    config = "embodiment: [aloha-agilex]\ncamera: {head_camera_type: D435}\nrender_freq: 5\n"
    files = {
        "envs/click_bell.py": TASK,
        "envs/__init__.py": f"CONFIGS_PATH = {str(tmp_path / 'task_config')!r}\n",
        "task_config/demo_clean.yml": config,
        "task_config/_embodiment_config.yml": f"aloha-agilex: {{file_path: {str(tmp_path / 'robot')!r}}}\n",
        "task_config/_camera_config.yml": "D435: {h: 240, w: 320}\n",
        "robot/config.yml": "joints: 14\n",
    }
    try:
        import torch as real
    except ImportError:
        files["torch.py"] = torch
    else:
        assert real
    install(tmp_path, files, monkeypatch)
    yield make("robotwin", task="click_bell")
    forget("envs", *(["torch"] if "torch.py" in files else []))


def test_fifty_tasks() -> None:
    tasks = make_benchmark(EnvChoice("robotwin", {"task": "all"})).tasks()
    assert len(tasks) == len(TASKS) == 50
    assert (tasks[5].suite, tasks[5].name, tasks[5].instruction) == ("all", "click_bell", "Click bell.")
    with pytest.raises(ConfigError, match=r"no task click_bel \(did you mean click_bell\?\)"):
        make_benchmark(EnvChoice("robotwin", {"task": "click_bel"})).tasks()


def test_the_seed_and_robotwins_own_settings_make_the_scene(scene: tuple[TaskSpec, Env]) -> None:
    import envs.click_bell as fake

    task, env = scene
    env.reset(episode(task, 12))
    env.reset(episode(task, 13))
    assert fake.SETTINGS[1] == "closed"
    settings = fake.SETTINGS[2]
    assert (settings["seed"], settings["is_test"], settings["task_name"]) == (13, True, "click_bell")
    assert (settings["head_camera_h"], settings["head_camera_w"], settings["render_freq"]) == (240, 320, 0)
    assert settings["left_embodiment_config"] == {"joints": 14}
    assert settings["dual_arm_embodied"] is True


def test_it_looks_once_a_step_and_only_when_somebody_does(scene: tuple[TaskSpec, Env]) -> None:
    import envs.click_bell as fake

    task, env = scene
    env.reset(episode(task, 12))
    env.step(np.ones(14))
    assert fake.LOOKS == []
    seen = env.observe(list(task.images))
    env.render()
    assert len(fake.LOOKS) == 1
    assert np.array_equal(seen["observation.state"], np.full(14, 13.0))
    picture = np.asarray(seen["observation.images.left_camera"])
    assert (picture.shape, picture.max()) == ((240, 320, 3), 13)
    with pytest.raises(ContractError, match=r"no camera observation\.images\.wrist; it has: observation\.images\.head"):
        env.observe(["observation.images.wrist"])


def test_success_ends_the_episode_and_is_its_reward(scene: tuple[TaskSpec, Env]) -> None:
    import envs.click_bell as fake

    task, env = scene
    env.reset(episode(task, 12))
    assert env.step(np.ones(14)) == (0.0, False, False, False)
    assert env.step(np.full(14, 9.0)) == (1.0, True, False, True)
    del fake.click_bell.check_success
    assert env.step(np.ones(14)).success is None
    env.close()


def test_settings_that_do_not_exist_are_named(scene: tuple[TaskSpec, Env]) -> None:
    with pytest.raises(ConfigError, match=r"--env\.task_config=demo_hard: RoboTwin has demo_clean"):
        make("robotwin", task="click_bell", task_config="demo_hard")
    with pytest.raises(ConfigError, match=r"envs/stamp_seal\.py cannot be imported"):
        make("robotwin", task="stamp_seal")
