"""LeRobot's own environments through the bridge, on the interpreter that has LeRobot."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.lerobot_env import _check_cameras, _without
from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, NoPictureError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec
from tests.benchmarks.scenes import IMAGE, episode


def test_a_config_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"--env\.config is needed"):
        make_benchmark(EnvChoice("lerobot_env"))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("pixels/top", {"pixels": {"top": np.zeros((20, 30), np.uint8)}}),
        ("pixels", {"pixels": np.zeros((20, 30, 3), np.float32)}),
        ("pixels", {"pixels": np.zeros((3, 20, 30), np.uint8)}),
        ("depth", {"depth": np.zeros((20, 30), np.float32), "agent_pos": np.zeros(2)}),
    ],
)
def test_a_camera_that_lerobot_would_not_read_as_one_is_refused_unless_left_out(name: str, shown: Any) -> None:
    with pytest.raises(ConfigError, match=rf"{name}, .*, looks like a camera.* --env\.ignore={name}"):
        _check_cameras(shown)
    _check_cameras(_without(shown, frozenset([name])))


def bridge(**options: Any) -> tuple[TaskSpec, Env]:
    pytest.importorskip("lerobot")
    made = make_benchmark(EnvChoice("lerobot_env", options))
    (task,) = made.tasks()
    return task, made.make(task)


def test_pusht_is_what_it_is_without_the_bridge() -> None:
    task, env = bridge(config="pusht")
    native = make_benchmark(EnvChoice("pusht"))
    (other,) = native.tasks()
    own = native.make(other)
    assert (task.max_steps, task.control_hz, task.action) == (other.max_steps, other.control_hz, other.action)
    assert task.observations == {key: other.observations[key] for key in (IMAGE, "observation.state")}
    for seed in (1000, 1001):
        env.reset(episode(task, seed))
        own.reset(episode(other, seed))
        rng = np.random.default_rng(seed)
        for _ in range(40):
            mine, theirs = own.observe([IMAGE]), env.observe([IMAGE])
            for key in (IMAGE, "observation.state"):
                assert np.array_equal(mine[key], theirs[key])
            assert "observation.state" in env.observe([])
            action = rng.uniform(100, 400, 2)
            stepped, expected = env.step(action), own.step(action)
            assert stepped.reward == pytest.approx(expected.reward, rel=1e-12, abs=1e-15)
            assert stepped[1:] == expected[1:]
        assert np.array_equal(env.render(), own.render())
    env.close()


@pytest.mark.slow
def test_aloha_runs_through_the_bridge_and_depends_on_the_seed_alone() -> None:
    pytest.importorskip("gym_aloha")
    task, env = bridge(config="aloha", task="AlohaTransferCube-v0")
    top = "observation.images.top"
    assert task.observations[top].shape == (480, 640, 3)
    assert (task.action.dim, task.observations["observation.state"].shape) == (14, (14,))

    def play(seed: int) -> list[Any]:
        env.reset(episode(task, seed))
        rng = np.random.default_rng(seed)
        shown = [np.asarray(env.observe([top])[top]).tobytes()]
        for _ in range(3):
            shown.append(env.step(rng.uniform(-0.2, 0.2, 14)))
            shown.append(np.asarray(env.observe([])["observation.state"]).tobytes())
        return shown

    first = play(5)
    assert play(6) != first
    assert play(5) == first
    env.close()


PLUGIN = '''
"""A stand-in for a plugin of LeRobot: an environment's config in a module of its own."""
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
from lerobot.envs.configs import EnvConfig


class Still(gym.Env):
    observation_space = gym.spaces.Dict({"agent_pos": gym.spaces.Box(-1, 1, (3,), np.float32)})
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    task = "Stand still."
    _max_episode_steps = 4

    def reset(self, *, seed=None, options=None):
        return {"agent_pos": np.arange(3, dtype=np.float32)}, {}

    def step(self, action):
        return {"agent_pos": np.arange(3, dtype=np.float32)}, 1.0, bool(action[0] > 0), False, {}


@EnvConfig.register_subclass("still")
@dataclass
class StillConfig(EnvConfig):
    task: str = "Still-v0"
    depth: int = 1

    @property
    def gym_kwargs(self):
        return {}

    def create_envs(self, n_envs, use_async_envs=False):
        return {"still": {0: gym.vector.SyncVectorEnv([Still] * n_envs)}}
'''


def test_a_plugins_environment_is_found_and_a_missing_success_signal_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_still.py").write_text(textwrap.dedent(PLUGIN))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    still: dict[str, Any] = {"config": "still", "plugins": ["my_still"], "options": {"depth": 2}}
    with pytest.raises(ConfigError, match="still does not say what success is: its info holds nothing"):
        bridge(**still)
    task, env = bridge(**still, success="terminated")
    assert (task.instruction, task.max_steps, task.images) == ("Stand still.", 4, ())
    env.reset(episode(task, 0))
    assert np.array_equal(env.observe([])["observation.state"], [0.0, 1.0, 2.0])
    assert env.step(np.zeros(2)).success is False
    assert env.step(np.ones(2)).success is True
    with pytest.raises(NoPictureError, match=r"draws nothing \(render_mode is None\) and observes no image"):
        env.render()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"config": "push"}, r"no such environment \(did you mean pusht\?\)"),
        ({"config": "pusht", "options": {"obs_typ": "pixels"}}, r"pusht has no obs_typ \(did you mean obs_type\?\)"),
        ({"config": "isaaclab_arena"}, r"runs code of .*: if you trust it, add --trust_remote_code=true"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], says: str) -> None:
    pytest.importorskip("lerobot")
    with pytest.raises(ConfigError, match=says):
        make_benchmark(EnvChoice("lerobot_env", options)).tasks()
