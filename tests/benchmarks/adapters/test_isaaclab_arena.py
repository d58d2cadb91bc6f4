"""On a folder that stands in for the Hub repository of Isaac Lab-Arena's environments, with tensors of NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.isaaclab_arena import ArenaGroup, IsaacLabArena
from robotrials.benchmarks.registry import make_benchmark
from robotrials.benchmarks.scene_group import OneScene
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice
from robotrials.worker.many_scenes import SceneHost, SceneSlot
from tests.benchmarks.scenes import episode

ENV = '''"""A stand-in for env.py of Isaac Lab-Arena: scenes that all move with every step, and reset one by one."""
from types import SimpleNamespace

import numpy as np

CONFIGS = []


class Arena:
    def __init__(self, n):
        self.num_envs, self.unwrapped, self.at = n, self, np.zeros((n, 2), np.float32)
        done = lambda name: self.at[:, 0] > 2
        self.termination_manager = SimpleNamespace(active_terms=["time_out", "success"], get_term=done)

    def _seen(self):
        picture = np.repeat(self.at[:, :1], 4 * 6 * 4, 1).reshape(-1, 4, 6, 4).astype(np.uint8)
        return {"policy": {"a": self.at[:, :1], "b": self.at.reshape(-1, 1, 2)}, "camera_obs": {"top": picture}}

    def reset(self, seed, env_ids):
        for slot in np.asarray(env_ids):
            self.at[slot] = np.random.RandomState(seed).rand(2)
        return self._seen(), {}

    def step(self, actions):
        self.at = self.at + np.asarray(actions)[:, :2] + 0.01
        ends = self.at[:, 0] > 2
        return self._seen(), self.at[:, 0], ends, np.zeros(self.num_envs, bool), {}

    def close(self):
        pass


def make_env(n_envs, use_async_envs, cfg):
    CONFIGS.append(cfg)
    return {"arena": {0: Arena(n_envs)}}
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "env.py").write_text(ENV)
    monkeypatch.setattr(ArenaGroup, "_on_device", lambda self, array: array)  # no torch is needed for NumPy
    return tmp_path


def arena(folder: Path, **options: Any) -> IsaacLabArena:
    given = {"state_keys": "a,b", "camera_keys": "top", "state_dim": 3, "action_dim": 4, "camera_height": 4}
    choice = {"repo": str(folder), "trust_remote_code": True, "camera_width": 6, **given, **options}
    made = make_benchmark(EnvChoice("isaaclab_arena", choice))
    assert isinstance(made, IsaacLabArena)
    return made


def test_a_task_is_what_the_options_say(folder: Path) -> None:
    (task,) = arena(folder).tasks()
    assert (task.name, task.instruction, task.max_steps) == (
        "gr1_microwave",
        "Reach out to the microwave and open it.",
        300,
    )
    assert {key: f.shape for key, f in task.observations.items()} == {
        "observation.images.top": (4, 6, 3),
        "observation.state": (3,),
    }
    with pytest.raises(ConfigError, match="add --trust_remote_code=true"):
        arena(folder, trust_remote_code=False)
    with pytest.raises(ConfigError, match="nothing would be observed"):
        arena(folder, state_keys="", camera_keys="")


def test_one_scene_is_an_environment(folder: Path) -> None:
    benchmark = arena(folder)
    (task,) = benchmark.tasks()
    env = benchmark.make(task)
    assert isinstance(env, OneScene)
    env.reset(episode(task, 3))
    start = np.random.RandomState(3).rand(2).astype(np.float32)
    seen = env.observe(["observation.images.top"])
    assert np.array_equal(seen["observation.state"], [start[0], start[0], start[1]])
    assert np.asarray(seen["observation.images.top"]).shape == (4, 6, 3)
    assert env.step(np.zeros(4)).success is False
    assert env.step(np.full(4, 3.0))[1:] == (True, False, True)
    assert env.render().shape == (4, 6, 3)
    with pytest.raises(ContractError, match=r"no camera observation\.image;"):
        env.observe(["observation.image"])
    env.close()
    env.close()


def test_slots_are_reset_one_by_one_and_stepped_together(folder: Path) -> None:
    benchmark = arena(folder, num_envs=3, kwargs={"mimic": True})
    (task,) = benchmark.tasks()
    assert not benchmark.exact_together
    steps: dict[int, list[float]] = {}

    def player(place: SceneSlot) -> None:
        for seed in (10 + place.slot, 20 + place.slot):
            env = place.take(benchmark, task)
            env.reset(episode(task, seed))
            rewards = [env.step(np.full(4, 0.1 * (place.slot + 1))).reward for _ in range(4 - place.slot)]
            steps[seed] = rewards
            place.leave()

    SceneHost(benchmark.scenes).run([player] * 3)
    for seed, rewards in steps.items():
        start, pace = np.random.RandomState(seed).rand(2)[0], 0.1 * (seed % 10 + 1) + 0.01
        assert rewards == pytest.approx([start + pace * (k + 1) for k in range(len(rewards))], rel=1e-4)


def test_a_task_that_names_no_success_says_so(folder: Path) -> None:
    benchmark = arena(folder)
    (task,) = benchmark.tasks()
    group = benchmark.make_group(task, 1)
    group._sim.termination_manager.active_terms = ["time_out"]
    group.reset(0, episode(task, 3))
    assert group.step({0: np.zeros(4)})[0].success is None


def test_the_index_of_a_slot_goes_to_the_device(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    (tmp_path / "env.py").write_text(ENV)
    benchmark = arena(tmp_path, device="cpu")
    group = benchmark.make_group(benchmark.tasks()[0], 2)
    assert torch.equal(group._ids(1), torch.tensor([1]))
