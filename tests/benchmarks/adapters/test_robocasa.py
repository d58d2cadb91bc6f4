"""On a stand-in with the calls of RoboCasa's gym wrapper and registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice
from tests.benchmarks.scenes import episode
from tests.benchmarks.stand_ins import forget, install

WRAPPER = '''"""A stand-in for robocasa.wrappers.gym_wrapper."""
import numpy as np

MADE = []
PARTS = {"state.base_position": 3, "state.base_rotation": 4, "state.end_effector_position_relative": 3,
         "state.end_effector_rotation_relative": 4, "state.gripper_qpos": 2}


class RoboCasaGymEnv:
    def __init__(self, **kwargs):
        MADE.append(kwargs)
        self.size = (kwargs["camera_heights"], kwargs["camera_widths"], 3)
        self.env, self.closed = self, False

    def get_ep_meta(self):
        return {"lang": "Close the fridge of kitchen %d." % self.seed}

    def _seen(self):
        seen = {key: np.full(n, i, np.float64) for i, (key, n) in enumerate(PARTS.items())}
        for camera in ("robot0_agentview_left", "robot0_eye_in_hand", "robot0_agentview_right"):
            seen["video." + camera] = np.full(self.size, self.seed, np.uint8)
        return seen

    def reset(self, seed):
        self.seed = seed
        return self._seen(), {}

    def step(self, action):
        self.action = action
        return self._seen(), 1.0, False, False, {"success": action["action.gripper_close"][0] > 0}

    def render(self):
        return np.zeros((512, 768, 3), np.uint8)

    def close(self):
        self.closed = True
'''
REGISTRY = '''"""A stand-in for robocasa.utils.dataset_registry."""
TARGET_TASKS = {"atomic_seen": ["CloseFridge", "OpenDrawer"]}
PRETRAINING_TASKS = {"pretrain50": ["CloseFridge", "New"]}
'''
HORIZONS = '''"""A stand-in for robocasa.utils.dataset_registry_utils."""
def get_task_horizon(task):
    if task == "New":
        raise ValueError("no horizon")
    return {"CloseFridge": 900, "OpenDrawer": 500}[task]
'''


@pytest.fixture
def robocasa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    files = {
        "robocasa/wrappers/gym_wrapper.py": WRAPPER,
        "robocasa/utils/dataset_registry.py": REGISTRY,
        "robocasa/utils/dataset_registry_utils.py": HORIZONS,
    }
    install(tmp_path, files, monkeypatch)
    from robotrials.benchmarks.adapters import robocasa as adapter

    adapter._registered.cache_clear()
    yield
    adapter._registered.cache_clear()
    forget("robocasa")


def test_the_step_limit_is_the_horizon_that_robocasa_names(robocasa: None) -> None:
    (task,) = make_benchmark(EnvChoice("robocasa")).tasks()
    assert (task.name, task.max_steps, task.control_hz, task.action.dim) == ("CloseFridge", 900, 20.0, 12)
    assert task.observations["observation.state"].shape == (16,)
    assert task.instruction == "Close fridge."
    (task,) = make_benchmark(EnvChoice("robocasa", {"task": "New", "episode_length": 40})).tasks()
    assert task.max_steps == 40
    with pytest.raises(ConfigError, match=r"no horizon for New: give --env\.episode_length"):
        make_benchmark(EnvChoice("robocasa", {"task": "New"})).tasks()


def test_a_group_is_robocasas_and_decides_the_split(robocasa: None) -> None:
    benchmark = make_benchmark(EnvChoice("robocasa", {"task": "atomic_seen"}))
    tasks = benchmark.tasks()
    assert [(t.suite, t.name, t.id, t.max_steps) for t in tasks] == [
        ("atomic_seen", "CloseFridge", 0, 900),
        ("atomic_seen", "OpenDrawer", 1, 500),
    ]
    benchmark.make(tasks[0])
    import robocasa.wrappers.gym_wrapper as fake

    assert (fake.MADE[-1]["split"], fake.MADE[-1]["obj_registries"]) == ("target", ("lightwheel",))
    with pytest.raises(ConfigError, match="a group stands alone"):
        make_benchmark(EnvChoice("robocasa", {"task": "atomic_seen,New"})).tasks()


def test_the_scene_is_that_of_the_seed_and_vectors_keep_lerobots_order(robocasa: None) -> None:
    benchmark = make_benchmark(EnvChoice("robocasa", {"observation_width": 32, "observation_height": 24}))
    (task,) = benchmark.tasks()
    env = benchmark.make(task)
    env.reset(episode(task, 17))
    key = "observation.images.robot0_eye_in_hand"
    seen = env.observe([key])
    assert seen["task"] == "Close the fridge of kitchen 17."
    assert np.array_equal(seen["observation.state"], [0] * 3 + [1] * 4 + [2] * 3 + [3] * 4 + [4] * 2)
    picture = np.asarray(seen[key])
    assert (picture.shape, picture.max()) == ((24, 32, 3), 17)
    outcome = env.step(np.arange(12) - 11.5)
    assert outcome == (1.0, False, False, False)
    import robotrials.benchmarks.adapters.robocasa as adapter

    assert isinstance(env, adapter.RoboCasaEnv)
    sent = env._sim.action
    assert {name: part.tolist() for name, part in sent.items()} == {
        "action.base_motion": [-11.5, -10.5, -9.5, -8.5],
        "action.control_mode": [-7.5],
        "action.end_effector_position": [-6.5, -5.5, -4.5],
        "action.end_effector_rotation": [-3.5, -2.5, -1.5],
        "action.gripper_close": [-0.5],
    }
    assert env.step(np.ones(12)) == (1.0, True, False, True)
    assert env.render().shape == (512, 768, 3)
    with pytest.raises(ContractError, match=r"no camera observation\.images\.wrist"):
        env.observe(["observation.images.wrist"])
    env.close()


def test_what_robocasa_does_not_say_is_no_zero(robocasa: None, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = make_benchmark(EnvChoice("robocasa", {"episode_length": 9}))
    (task,) = benchmark.tasks()
    env = benchmark.make(task)
    import robocasa.wrappers.gym_wrapper as fake

    monkeypatch.setattr(fake.RoboCasaGymEnv, "step", lambda self, action: (self._seen(), 0.0, True, False, {}))
    env.reset(episode(task, 1))
    assert env.step(np.ones(12)).success is None
    monkeypatch.setitem(fake.PARTS, "state.gripper_qpos", 3)
    env.reset(episode(task, 1))
    with pytest.raises(ContractError, match=r"state\.gripper_qpos has 3 numbers; right is 2"):
        env.observe([])


def test_without_robocasa_a_horizon_has_to_be_given() -> None:
    with pytest.raises(ConfigError, match=r"has no RoboCasa to ask for horizons; give --env\.episode_length"):
        make_benchmark(EnvChoice("robocasa", {"task": "OpenDoor"})).tasks()
