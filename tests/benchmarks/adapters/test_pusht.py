from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from robotrials.benchmarks.adapters.pusht import PushTEnv
from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec
from tests.benchmarks.scenes import IMAGE, digest, episode, in_a_fresh_process, make


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[TaskSpec, PushTEnv]]:
    task, env = make("pusht")
    assert isinstance(env, PushTEnv)
    yield task, env
    env.close()


def at_the_block(env: Env, rng: np.random.Generator) -> np.ndarray:
    """Blows at the block from all sides: contacts are what can depend on the past."""
    assert isinstance(env, PushTEnv)
    return np.array(env._sim.block.position) + rng.normal(0.0, 60.0, 2)


def test_the_task_is_lerobots() -> None:
    (task,) = make_benchmark(EnvChoice("pusht")).tasks()
    assert (task.suite, task.name, task.id) == ("pusht", "PushT-v0", 0)
    assert (task.max_steps, task.control_hz) == (300, 10.0)
    assert {key: (f.shape, f.dtype) for key, f in task.observations.items()} == {
        "observation.image": ((96, 96, 3), "uint8"),
        "observation.state": ((2,), "float32"),
        "observation.environment_state": ((16,), "float32"),
    }
    assert (task.action.low, task.action.high) == ((0.0, 0.0), (512.0, 512.0))
    assert task.record_key is None


def test_obs_type_chooses_what_is_observed() -> None:
    (task,) = make_benchmark(EnvChoice("pusht", {"obs_type": "environment_state_agent_pos"})).tasks()
    assert list(task.observations) == ["observation.state", "observation.environment_state"]
    task, env = make("pusht", obs_type="pixels")
    env.reset(episode(task, 0))
    assert set(env.observe([IMAGE])) == {"task", IMAGE}


@pytest.mark.parametrize(
    ("option", "value"), [("task", "PushT-v1"), ("fps", 30), ("episode_length", 0), ("observation_width", 0)]
)
def test_an_option_that_cannot_be_meant_is_refused(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=str(value)):
        make_benchmark(EnvChoice("pusht", {option: value})).tasks()


@pytest.mark.parametrize("seed", [1003, 1011])
def test_it_is_the_environment_that_lerobot_eval_runs(scene: tuple[TaskSpec, PushTEnv], seed: int) -> None:
    import gym_pusht  # noqa: F401  (registers the environment)
    import gymnasium

    task, env = scene
    theirs = gymnasium.make(
        "gym_pusht/PushT-v0",
        disable_env_checker=True,
        obs_type="pixels_agent_pos",
        render_mode="rgb_array",
        visualization_width=384,
        visualization_height=384,
    )
    seen, _ = theirs.reset(seed=seed)
    env.reset(episode(task, seed))
    rng = np.random.default_rng(seed)
    rewards = []
    for _ in range(60):
        mine = env.observe([IMAGE])
        assert np.array_equal(mine[IMAGE], seen["pixels"])
        assert np.array_equal(mine["observation.state"], seen["agent_pos"].astype(np.float32))
        assert np.array_equal(env.render(), theirs.render())
        action = at_the_block(env, rng).astype(np.float32)
        seen, reward, terminated, _, info = theirs.step(action)
        outcome = env.step(action)
        # Not equal: the last bit of their sum depends on addresses in memory.
        assert outcome.reward == pytest.approx(reward, rel=1e-12, abs=1e-15)
        assert (outcome.terminated, outcome.success) == (terminated, info["is_success"])
        rewards.append(outcome.reward)
    assert len(set(rewards)) > 10  # the block was moved over the goal, so coverage has been compared


def test_an_episode_is_a_function_of_its_seed(scene: tuple[TaskSpec, PushTEnv]) -> None:
    task, env = scene
    looks = tuple(range(0, 120, 20))
    first = digest(task, env, 7, at_the_block, 120, looks)
    for seed in (8, 9):
        digest(task, env, seed, at_the_block, 50)
    assert digest(task, env, 7, at_the_block, 120, looks) == first
    assert digest(task, env, 8, at_the_block, 120, looks) != first


def test_an_episode_is_the_same_in_another_process(scene: tuple[TaskSpec, PushTEnv]) -> None:
    task, env = scene
    code = (
        "from tests.benchmarks.scenes import digest, make\n"
        "from tests.benchmarks.adapters.test_pusht import at_the_block\n"
        "print(digest(*make('pusht'), 5, at_the_block, 200, (0, 199)))\n"
    )
    out, _ = in_a_fresh_process(code)
    assert out.strip() == digest(task, env, 5, at_the_block, 200, (0, 199))


def test_looking_changes_nothing(scene: tuple[TaskSpec, PushTEnv]) -> None:
    task, env = scene

    def states(look: bool) -> list[bytes]:
        env.reset(episode(task, 3))
        rng = np.random.default_rng(3)
        trace = []
        for _ in range(40):
            if look:
                env.observe([IMAGE])
                env.render()
            trace.append(
                repr(env.step(at_the_block(env, rng))).encode() + np.float64(env._sim.block.position).tobytes()
            )
        return trace

    assert states(look=True) == states(look=False)


@pytest.mark.parametrize("size", [(96, 96), (384, 384), (680, 680), (100, 64), (50, 70)])
def test_pictures_are_the_simulators_own_pixel_for_pixel(
    scene: tuple[TaskSpec, PushTEnv], size: tuple[int, int]
) -> None:
    from gym_pusht.envs.pusht import PushTEnv as Simulator

    task, env = scene
    env.reset(episode(task, 5))
    for target in ((100.0, 400.0), (256.0, 300.0), (511.0, 0.0)):
        env.step(np.array(target, np.float32))
        screen = env._sim._draw()
        for marked in (False, min(size) >= 96):  # below, the simulator cannot draw its mark
            np.testing.assert_array_equal(
                env._picture(screen, *size, marked), Simulator._get_img(env._sim, screen, *size, marked)
            )


def test_stepping_draws_nothing(scene: tuple[TaskSpec, PushTEnv], monkeypatch: pytest.MonkeyPatch) -> None:
    task, env = scene
    drawn = []
    draw = env._sim._draw
    monkeypatch.setattr(env._sim, "_draw", lambda: drawn.append(1) or draw())
    env.reset(episode(task, 0))
    env.step(np.array([100.0, 100.0]))
    env.observe([])
    assert drawn == []
    env.observe([IMAGE])
    env.render()
    assert drawn == [1, 1]


def test_the_first_picture_does_not_mark_an_action_of_the_episode_before(scene: tuple[TaskSpec, PushTEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    before = env.render()
    env.step(np.array([100.0, 100.0]))
    assert not np.array_equal(env.render(), before)
    env.reset(episode(task, 0))
    assert np.array_equal(env.render(), before)


def test_the_precision_of_an_action_does_not_matter(scene: tuple[TaskSpec, PushTEnv]) -> None:
    task, env = scene
    seen = []
    for dtype in (np.float32, np.float64):
        env.reset(episode(task, 0))
        env.step(np.array([100.1, 200.2], dtype=dtype))
        seen.append(env.observe([])["observation.state"])
    assert np.array_equal(seen[0], seen[1])


def test_success_ends_the_episode(scene: tuple[TaskSpec, PushTEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    x, y, angle = env._sim.goal_pose
    env._sim.agent.position = (30.0, 30.0)
    env._sim.block.angle = angle  # before the position: it turns about the centre of mass
    env._sim.block.position = (x, y)
    outcome = env.step(np.array([30.0, 30.0]))
    assert outcome == (1.0, True, False, True)


def test_a_simulator_that_says_nothing_of_success_is_reported_so(
    scene: tuple[TaskSpec, PushTEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, env = scene
    seen = {"agent_pos": np.zeros(2), "environment_state": np.zeros(16)}
    monkeypatch.setattr(env._sim, "step", lambda action: (seen, 0.0, False, False, {}))
    assert env.step(np.zeros(2)).success is None


def test_a_camera_it_has_not_is_refused(scene: tuple[TaskSpec, PushTEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    with pytest.raises(ContractError, match=r"no camera observation\.images\.wrist; it has: observation\.image"):
        env.observe(["observation.images.wrist"])


def test_it_has_no_expert(scene: tuple[TaskSpec, PushTEnv]) -> None:
    with pytest.raises(ConfigError, match="no scripted expert"):
        scene[1].expert()


def test_nothing_is_printed() -> None:
    printed = in_a_fresh_process("from tests.benchmarks.scenes import make\nmake('pusht')[1].close()\n")
    assert printed == ("", "")


def test_task_specs_need_no_simulator() -> None:
    (task,) = make_benchmark(EnvChoice("pusht")).tasks()
    assert dataclasses.asdict(task)["instruction"] == "Push the T-shaped block onto the T-shaped target."
