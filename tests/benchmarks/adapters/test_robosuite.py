from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robotrials.benchmarks.adapters.robosuite.benchmark import Robosuite, RobosuiteEnv
from robotrials.benchmarks.adapters.robosuite.tasks import GROUPS, TASKS
from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec
from tests.benchmarks.scenes import digest, episode, in_a_fresh_process, make
from tests.benchmarks.spread import assert_exact

VIEW, HAND = "observation.images.agentview", "observation.images.robot0_eye_in_hand"
SMALL = {"observation_width": 64, "observation_height": 48}


def at_random(env: Env, rng: np.random.Generator) -> np.ndarray:
    assert isinstance(env, RobosuiteEnv)
    return rng.uniform(-1.0, 1.0, env._task.action.dim)


def test_a_task_tells_its_shapes_and_its_sentence_without_the_simulator() -> None:
    (task,) = make_benchmark(EnvChoice("robosuite", {"task": "Lift"})).tasks()
    assert (task.suite, task.name, task.max_steps, task.control_hz) == ("Lift", "Lift", 500, 20.0)
    assert task.instruction == "Lift the cube off the table."
    assert {key: (f.shape, f.dtype) for key, f in task.observations.items()} == {
        VIEW: ((256, 256, 3), "uint8"),
        HAND: ((256, 256, 3), "uint8"),
        "observation.state": ((9,), "float32"),
        "observation.environment_state": ((10,), "float32"),
    }
    assert (task.action.dim, task.record_key) == (7, VIEW)


def test_groups_hold_every_task_once() -> None:
    tasks = make_benchmark(EnvChoice("robosuite", {"task": "single_arm,two_arm"})).tasks()
    assert sorted(task.name for task in tasks) == sorted(TASKS)
    assert [task.action.dim for task in tasks if task.suite == "two_arm"] == [14, 12, 14, 14]
    assert len(GROUPS["single_arm"]) == 15


@pytest.mark.parametrize(
    ("option", "value"),
    [("task", "Lifts"), ("task", ""), ("fps", 30), ("episode_length", 0), ("camera_names", ""), ("state", "joints")],
)
def test_an_option_that_cannot_be_meant_is_refused(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"--env.{option}|robosuite has no {option}"):
        make_benchmark(EnvChoice("robosuite", {"task": "Lift", option: value})).tasks()


def test_mujoco_4_is_refused_with_the_remedy() -> None:
    conflict = Robosuite.conflict({"robosuite": "1.5.2", "mujoco": "4.0.0"})
    assert conflict is not None
    assert 'pip install "mujoco==3.3.0"' in conflict
    assert Robosuite.conflict({"robosuite": "1.5.2", "mujoco": "3.3.0"}) is None


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[TaskSpec, RobosuiteEnv]]:
    pytest.importorskip("robosuite")
    task, env = make("robosuite", task="Lift", **SMALL)
    assert isinstance(env, RobosuiteEnv)
    yield task, env
    env.close()


# Run in a process of its own: robosuite's render contexts, once freed, leave the thread's EGL to nobody.
_PARITY = """
import numpy as np
from tests.benchmarks.scenes import episode, make
task, env = make("robosuite", task="Door", observation_width=64, observation_height=48)
import robosuite
env.reset(episode(task, 1004))
original = robosuite.make(
    "Door", robots="Panda", has_renderer=False, use_camera_obs=True, camera_names=["agentview", "robot0_eye_in_hand"],
    camera_widths=64, camera_heights=48, ignore_done=True, hard_reset=False, seed=1004,
)
theirs = original.reset()
rng = np.random.default_rng(4)
compared = 0
for step in range(10):
    ours = env.observe(task.images if step in (0, 9) else [])
    for key in theirs.keys() & env._seen.keys():
        assert np.array_equal(theirs[key], env._seen[key]), (step, key)
        compared += 1
    for key in ours.keys() & set(task.images):
        upside_down = theirs[key.removeprefix("observation.images.") + "_image"]
        assert np.array_equal(ours[key], upside_down[::-1]), (step, key)
        compared += 1
    action = rng.uniform(-1, 1, 7)
    theirs, reward, _, _ = original.step(action)
    assert env.step(action) == (reward, False, False, False)
env.close()
print(compared)
import os; os._exit(0)
"""


def test_states_and_pictures_are_those_of_robosuite_that_draws_at_every_step() -> None:
    pytest.importorskip("robosuite")
    out, _ = in_a_fresh_process(_PARITY)
    assert int(out) > 100


def test_an_episode_is_a_function_of_its_seed(scene: tuple[TaskSpec, RobosuiteEnv]) -> None:
    task, env = scene
    first = digest(task, env, 7, at_random, 25, (0, 25), VIEW)
    digest(task, env, 8, at_random, 10)
    assert digest(task, env, 7, at_random, 25, (0, 25), VIEW) == first
    assert digest(task, env, 8, at_random, 25, (0, 25), VIEW) != first


def test_an_episode_is_the_same_in_another_process(scene: tuple[TaskSpec, RobosuiteEnv]) -> None:
    task, env = scene
    code = (
        "from tests.benchmarks.scenes import digest, make\n"
        "from tests.benchmarks.adapters.test_robosuite import SMALL, VIEW, at_random\n"
        "task, env = make('robosuite', task='Lift', **SMALL)\n"
        "print(digest(task, env, 5, at_random, 20, (19,), VIEW))\n"
        "env.close()\n"
    )
    # Nothing on standard error either, neither robosuite's warnings nor the end of EGL.
    assert in_a_fresh_process(code) == (digest(task, env, 5, at_random, 20, (19,), VIEW) + "\n", "")


def test_looking_changes_nothing(scene: tuple[TaskSpec, RobosuiteEnv]) -> None:
    task, env = scene

    def states(look: bool) -> list[bytes]:
        env.reset(episode(task, 3))
        rng = np.random.default_rng(3)
        trace = []
        for step in range(15):
            if look and step in (4, 9):  # the first look makes the renderer, in the midst of the episode
                env.observe([HAND])
                env.render()
            trace.append(repr(env.step(at_random(env, rng))).encode() + env._sim.sim.get_state().flatten().tobytes())
        return trace

    assert states(look=True) == states(look=False)


def test_stepping_draws_nothing(scene: tuple[TaskSpec, RobosuiteEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    env.step(np.zeros(7))
    env.observe([])
    assert env._renderer is None
    assert env._sim.sim._render_context_offscreen is None
    picture = env.render()
    assert picture.shape == (48, 64, 3)
    assert np.array_equal(picture, env.observe([VIEW])[VIEW])


def test_a_lifted_cube_is_success_and_ends_the_episode(scene: tuple[TaskSpec, RobosuiteEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    assert env.step(np.zeros(7)) == (0.0, False, False, False)
    pose = env._sim.sim.data.get_joint_qpos("cube_joint0").copy()
    pose[2] += 0.2
    env._sim.sim.data.set_joint_qpos("cube_joint0", pose)
    assert env.step(np.zeros(7)) == (2.25 * 1.0 / 2.25, True, False, True)


def test_the_whole_state_can_be_asked_for() -> None:
    pytest.importorskip("robosuite")
    task, env = make("robosuite", task="Lift", state="proprio", obs_type="state")
    env.reset(episode(task, 0))
    seen = env.observe([])
    assert {key: np.asarray(seen[key]).shape for key in task.observations} == {
        "observation.state": (50,),
        "observation.environment_state": (10,),
    }
    env.close()
    env.close()  # safe to call twice


def test_a_camera_it_has_not_is_refused(scene: tuple[TaskSpec, RobosuiteEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    with pytest.raises(ContractError, match=r"no camera observation\.images\.wrist; it has: .*agentview"):
        env.observe(["observation.images.wrist"])
    task, other = make("robosuite", task="Lift", camera_names="agentvew")
    with pytest.raises(ConfigError, match=r"camera_names=agentvew: Lift has frontview.*did you mean agentview"):
        other.reset(episode(task, 0))
    other.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_as_declared(name: str) -> None:
    pytest.importorskip("robosuite")
    task, env = make("robosuite", task=name, **SMALL)
    env.reset(episode(task, 1))
    outcome = env.step(np.zeros(task.action.dim))
    assert outcome.success is False
    seen = env.observe(task.images)
    found = {key: (np.asarray(seen[key]).shape, str(np.asarray(seen[key]).dtype)) for key in task.observations}
    assert found == {key: (f.shape, f.dtype) for key, f in task.observations.items()}
    low, high = env._sim.action_spec  # type: ignore[attr-defined]
    assert (tuple(low), tuple(high)) == (task.action.low, task.action.high)
    env.close()


def test_outcomes_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    pytest.importorskip("robosuite")
    # Dense rewards, so that every step counts in what is compared.
    options = {"task": "Lift,Door", "episode_length": "20", "reward_shaping": "true"}
    assert_exact(EnvChoice("robosuite", options), tmp_path)
