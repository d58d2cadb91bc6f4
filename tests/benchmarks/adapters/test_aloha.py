from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robotrials.benchmarks.adapters.aloha import TASKS, AlohaEnv
from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec
from tests.benchmarks.scenes import digest, episode, in_a_fresh_process, make
from tests.benchmarks.spread import assert_exact

TOP = "observation.images.top"


def at_random(env: Env, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1.0, 1.0, 14).astype(np.float32)


def test_the_tasks_are_lerobots() -> None:
    tasks = make_benchmark(EnvChoice("aloha", {"task": "AlohaInsertion-v0,AlohaTransferCube-v0"})).tasks()
    assert [task.name for task in tasks] == list(TASKS)
    for task in tasks:
        assert (task.max_steps, task.control_hz, task.record_key) == (400, 50.0, TOP)
        assert {key: (f.shape, f.dtype) for key, f in task.observations.items()} == {
            TOP: ((480, 640, 3), "uint8"),
            "observation.state": ((14,), "float32"),
        }
        assert (task.action.dim, task.action.low[0], task.action.high[-1]) == (14, -1.0, 1.0)
    assert tasks[1].instruction == "Pick up the cube with the right arm and transfer it to the left arm."


def test_cameras_sizes_and_kinds_of_observation_can_be_chosen() -> None:
    options = {"camera_names": "top,angle", "observation_width": "64", "observation_height": "48"}
    (task,) = make_benchmark(EnvChoice("aloha", options)).tasks()
    assert task.images == (TOP, "observation.images.angle")
    assert task.observations[TOP].shape == (48, 64, 3)
    (task,) = make_benchmark(EnvChoice("aloha", {"obs_type": "agent_pos"})).tasks()
    assert list(task.observations) == ["observation.state"]
    assert task.record_key is None


@pytest.mark.parametrize(
    ("option", "value"),
    [("task", "AlohaInsert"), ("fps", 30), ("episode_length", 0), ("camera_names", "wrist"), ("observation_width", 0)],
)
def test_an_option_that_cannot_be_meant_is_refused(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=str(value)):
        make_benchmark(EnvChoice("aloha", {option: value})).tasks()


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[TaskSpec, AlohaEnv]]:
    pytest.importorskip("gym_aloha")
    task, env = make("aloha", task="AlohaTransferCube-v0")
    assert isinstance(env, AlohaEnv)
    yield task, env
    env.close()


@pytest.mark.parametrize("name", TASKS)
def test_states_rewards_and_pictures_are_those_of_the_environment_that_draws_at_every_step(name: str) -> None:
    pytest.importorskip("gym_aloha")
    import gymnasium

    task, env = make("aloha", task=name)
    original = gymnasium.make(f"gym_aloha/{name}", obs_type="pixels_agent_pos", disable_env_checker=True)
    assert isinstance(env, AlohaEnv)
    theirs, _ = original.reset(seed=1003)
    env.reset(episode(task, 1003))
    rng = np.random.default_rng(3)
    for step in range(8):
        ours = env.observe([TOP] if step in (0, 7) else [])
        assert env._qpos.tobytes() == theirs["agent_pos"].tobytes()
        if step in (0, 7):
            assert np.array_equal(ours[TOP], theirs["pixels"]["top"])
        action = at_random(env, rng)
        theirs, reward, terminated, _, info = original.step(action)
        assert env.step(action) == (reward, terminated, False, info["is_success"])
    original.unwrapped._env.physics.free()
    env.close()


def test_an_episode_is_a_function_of_its_seed(scene: tuple[TaskSpec, AlohaEnv]) -> None:
    task, env = scene
    first = digest(task, env, 7, at_random, 60, (0, 60), TOP)
    for seed in (8, 9):
        digest(task, env, seed, at_random, 25)
    assert digest(task, env, 7, at_random, 60, (0, 60), TOP) == first
    assert digest(task, env, 8, at_random, 60, (0, 60), TOP) != first


def test_an_episode_is_the_same_in_another_process(scene: tuple[TaskSpec, AlohaEnv]) -> None:
    task, env = scene
    code = (
        "from tests.benchmarks.scenes import digest, make\n"
        "from tests.benchmarks.adapters.test_aloha import TOP, at_random\n"
        "task, env = make('aloha', task='AlohaTransferCube-v0')\n"
        "print(digest(task, env, 5, at_random, 40, (39,), TOP))\n"
        "env.close()\n"
    )
    # Nothing on standard error either: contexts are freed before dm_control's render thread is gone.
    assert in_a_fresh_process(code) == (digest(task, env, 5, at_random, 40, (39,), TOP) + "\n", "")


def test_looking_changes_nothing(scene: tuple[TaskSpec, AlohaEnv]) -> None:
    task, env = scene

    def states(look: bool) -> list[bytes]:
        env.reset(episode(task, 3))
        rng = np.random.default_rng(3)
        trace = []
        for step in range(20):
            if look and step % 5 == 0:
                env.observe([TOP])
                env.render()
            trace.append(repr(env.step(at_random(env, rng))).encode() + env._sim._env.physics.get_state().tobytes())
        return trace

    assert states(look=True) == states(look=False)


def test_stepping_draws_nothing() -> None:
    pytest.importorskip("gym_aloha")
    task, env = make("aloha", obs_type="agent_pos")
    assert isinstance(env, AlohaEnv)
    env.reset(episode(task, 0))
    env.step(np.zeros(14))
    assert list(env.observe([])) == ["task", "observation.state"]
    assert env._sim._env.physics._contexts is None
    env.render()
    assert env._sim._env.physics._contexts is not None
    env.close()
    env.close()  # safe to call twice


def test_the_cube_in_the_left_gripper_is_success_and_ends_the_episode(scene: tuple[TaskSpec, AlohaEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    at_rest = np.array([0, -0.96, 1.16, 0, -0.3, 0, 0.1] * 2)
    physics = env._sim._env.physics
    finger = physics.named.data.geom_xpos["vx300s_left/10_left_gripper_finger"]
    physics.named.data.qpos["red_box_joint"][:3] = finger
    outcome = env.step(at_rest)
    assert outcome == (4.0, True, False, True)
    env.reset(episode(task, 0))
    assert env.step(at_rest) == (0.0, False, False, False)


def test_the_precision_of_an_action_does_not_matter(scene: tuple[TaskSpec, AlohaEnv]) -> None:
    task, env = scene
    seen = []
    for dtype in (np.float32, np.float64):
        env.reset(episode(task, 0))
        env.step(np.full(14, 0.1, dtype=dtype))
        seen.append(env._qpos.copy())
    assert np.array_equal(seen[0], seen[1])


def test_pictures_have_the_size_asked_for_and_cameras_differ() -> None:
    pytest.importorskip("gym_aloha")
    options = {"camera_names": "top,angle", "observation_width": 800, "observation_height": 600}
    task, env = make("aloha", **options)
    env.reset(episode(task, 0))
    seen = env.observe(task.images)
    assert {np.asarray(seen[key]).shape for key in task.images} == {(600, 800, 3)}  # more than the model's 640 x 480
    assert not np.array_equal(seen[TOP], seen["observation.images.angle"])
    env.close()


def test_a_camera_it_has_not_is_refused(scene: tuple[TaskSpec, AlohaEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    with pytest.raises(ContractError, match=r"no camera observation\.images\.wrist; it has: observation\.images\.top"):
        env.observe(["observation.images.wrist"])


def test_outcomes_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    pytest.importorskip("gym_aloha")
    options = {"task": ",".join(TASKS), "episode_length": "40"}
    assert_exact(EnvChoice("aloha", options), tmp_path)


def test_task_specs_need_no_simulator() -> None:
    (task,) = make_benchmark(EnvChoice("aloha")).tasks()
    assert dataclasses.asdict(task)["instruction"] == "Insert the peg into the socket."
