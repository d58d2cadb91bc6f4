from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.base import Env
from robotrials.benchmarks.gym_env import GymEnv
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec
from tests.benchmarks.scenes import digest, episode, in_a_fresh_process, make
from tests.benchmarks.spread import assert_exact

pytest.importorskip("gymnasium")

TOYS = "tests.benchmarks.gym_toys"
POINT = {"id": "Point-v0", "imports": TOYS}
WRIST, IMAGE = "observation.images.wrist", "observation.image"


def at_random(env: Env, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1.0, 1.0, 2)


def task_of(**options: Any) -> TaskSpec:
    return make_benchmark(EnvChoice("gym", options)).tasks()[0]


@pytest.fixture
def point(request: pytest.FixtureRequest) -> Iterator[tuple[TaskSpec, GymEnv]]:
    task, env = make("gym", **POINT, **getattr(request, "param", {}))
    assert isinstance(env, GymEnv)
    yield task, env
    env.close()


def test_a_task_is_read_off_the_environment() -> None:
    task = task_of(**POINT, instruction="Go home.")
    assert (task.name, task.max_steps, task.control_hz, task.instruction) == ("Point-v0", 30, 20.0, "Go home.")
    assert {key: (f.shape, f.dtype) for key, f in task.observations.items()} == {
        WRIST: ((6, 8, 3), "uint8"),
        "observation.state": ((5,), "float32"),
    }
    assert (task.action.dim, task.action.low, task.action.high) == (2, (-1.0, -1.0), (1.0, 1.0))
    assert task.extra["success"] == "info:success"
    assert task.record_key is None


def test_it_is_built_by_another_process_and_only_once() -> None:
    out, _ = in_a_fresh_process(
        "import subprocess, sys\n"
        "from robotrials.benchmarks.registry import make_benchmark\n"
        "from robotrials.plan.config import EnvChoice\n"
        f"choice = EnvChoice('gym', {POINT!r})\n"
        "task = make_benchmark(choice).tasks()[0]\n"
        "subprocess.run = None\n"
        "assert make_benchmark(choice).tasks() == [task]\n"
        "print('gymnasium' in sys.modules, task.max_steps)\n"
    )
    assert out.split() == ["False", "30"]


def test_options_override_what_the_environment_says() -> None:
    task = task_of(**POINT, max_steps="7", fps="5", state="goal", environment_state="robot/at,robot/speed")
    assert (task.max_steps, task.control_hz) == (7, 5.0)
    assert task.observations["observation.state"].shape == (2,)
    assert task.observations["observation.environment_state"].shape == (3,)


def test_several_ids_are_several_tasks() -> None:
    tasks = make_benchmark(EnvChoice("gym", {"id": "Point-v0,Blind-v0", "imports": TOYS})).tasks()
    assert [task.name for task in tasks] == ["Point-v0", "Blind-v0"]
    assert tasks[1].record_key == WRIST  # it draws nothing: the video shows what is observed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "--env.id is needed"),
        ({"id": "Point-v0"}, r"--env\.id=Point-v0: .*--env\.imports=MODULE"),
        ({"id": "Pendulum-v99"}, r"--env\.id=Pendulum-v99: .*Pendulum"),
        ({"id": "Point-v0", "imports": "no_such_module"}, "importing no_such_module failed"),
        ({**POINT, "kwargs": json.dumps({"sys": "yes"})}, "unexpected keyword argument 'sys'"),
        ({**POINT, "kwargs": json.dumps({"says": "won"})}, "its info holds distance, won, and none of is_success"),
        ({"id": "Pendulum-v1"}, "its info holds nothing"),
        ({"id": "CartPole-v1", "success": "terminated"}, r"its actions are Discrete\(2\); right is a Box"),
        ({"id": "Endless-v0", "imports": TOYS}, "without a step limit: give --env.max_steps"),
        ({"id": "Blind-v0", "imports": TOYS, "image_from_render": "true"}, "Blind-v0 draws nothing"),
        ({**POINT, "success": "often"}, "write info:KEY, terminated or reward>=NUMBER"),
        ({**POINT, "max_steps": "-1"}, "max_steps must not be negative"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_runs(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_benchmark(EnvChoice("gym", options)).tasks()


def test_observations_actions_and_success_are_the_environments(point: tuple[TaskSpec, GymEnv]) -> None:
    task, env = point
    env.reset(episode(task, 4))
    start = env._sim.unwrapped.at.copy()
    seen = env.observe([])
    order = list(env._sim.observation_space["robot"].spaces)
    assert sorted(order) == ["at", "speed"]
    assert set(np.asarray(seen["observation.state"]).tolist()) == {0.0, *start.astype(np.float32).tolist()}
    outcome = env.step(np.array([0.5, -0.5]))
    assert env._sim.unwrapped.at.tolist() == (start + 0.1 * np.array([0.5, -0.5], np.float32)).tolist()
    assert outcome == (-float(np.linalg.norm(env._sim.unwrapped.at)), False, False, False)
    env._sim.unwrapped.at = np.zeros(2)
    assert env.step(np.zeros(2))[1:] == (False, False, True)  # a success does not end it, as the environment has it
    picture = np.asarray(env.observe([WRIST])[WRIST])
    assert (picture.shape, picture[0, 0].tolist()) == ((6, 8, 3), [255, 0, 0])


@pytest.mark.parametrize("point", [{"end_on_success": True}], indirect=True)
def test_a_success_ends_the_episode_where_that_is_asked_for(point: tuple[TaskSpec, GymEnv]) -> None:
    task, env = point
    env.reset(episode(task, 4))
    env._sim.unwrapped.at = np.zeros(2)
    assert env.step(np.zeros(2))[1:] == (True, False, True)


@pytest.mark.parametrize(
    ("success", "at_home", "far"),
    [("terminated", True, False), ("reward>=-0.3", True, False)],
)
def test_success_is_where_it_is_said_to_be(success: str, at_home: bool, far: bool) -> None:
    task, env = make("gym", **POINT, kwargs={"says": "nothing"}, success=success)
    env.reset(episode(task, 4))
    env._sim.unwrapped.at = np.ones(2)  # type: ignore[attr-defined]
    assert env.step(np.zeros(2)).success is far
    env._sim.unwrapped.at = np.zeros(2)  # type: ignore[attr-defined]
    assert env.step(np.zeros(2)).success is at_home
    env.close()


@pytest.mark.parametrize(
    ("says", "success", "words"),
    [
        ("success", "info:sucess", r"no such key \(did you mean success\?\), .*it holds .*distance, success"),
        ("nothing", "info:won", r"info:won: the info of Point-v0 has no such key, .*it holds nothing"),
        ("success", "info:distance", r"info:distance: it holds .*, which is no truth value"),
    ],
)
def test_a_key_that_info_does_not_have_is_refused_at_once(says: str, success: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        task_of(**POINT, kwargs={"says": says}, success=success)


def test_a_key_that_comes_with_the_last_step_is_none_that_is_missing() -> None:
    assert task_of(**POINT, kwargs={"late": 30}, success="info:success").extra["success"] == "info:success"


def test_the_step_limit_is_the_one_asked_for() -> None:
    task, env = make("gym", **POINT, max_steps=3)
    env.reset(episode(task, 0))
    assert [env.step(np.zeros(2)).truncated for _ in range(3)] == [False, False, True]
    task, env = make("gym", **POINT, max_steps=40)  # more than it is registered with
    env.reset(episode(task, 0))
    assert [env.step(np.zeros(2)).truncated for _ in range(31)] == [False] * 31


@pytest.mark.parametrize("point", [{"image_from_render": True}], indirect=True)
def test_a_drawn_image_is_drawn_when_it_is_looked_at(point: tuple[TaskSpec, GymEnv]) -> None:
    task, env = point
    assert (task.observations[IMAGE].shape, task.record_key) == ((4, 5, 3), IMAGE)
    env.reset(episode(task, 0))
    env.step(np.zeros(2))
    env.observe([WRIST])
    assert env._sim.unwrapped.drawn == 0
    assert np.array_equal(env.observe([IMAGE])[IMAGE], env.render())
    assert env._sim.unwrapped.drawn == 2


def test_an_environment_that_draws_nothing_shows_what_it_observes() -> None:
    task, env = make("gym", id="Blind-v0", imports=TOYS)
    env.reset(episode(task, 0))
    assert np.array_equal(env.render(), env.observe([WRIST])[WRIST])
    env.close()


def test_one_that_remembers_is_pure_when_it_is_made_anew() -> None:
    def twice(**options: Any) -> tuple[str, str]:
        task, env = make("gym", **POINT, kwargs={"remembers": True}, **options)
        first = digest(task, env, 7, at_random, 5, (), IMAGE)
        digest(task, env, 8, at_random, 5, (), IMAGE)
        again = digest(task, env, 7, at_random, 5, (), IMAGE)
        env.close()
        return first, again

    kept, rebuilt = twice(), twice(rebuild=True)
    assert kept[0] != kept[1]
    assert rebuilt[0] == rebuilt[1] == kept[0]


def test_a_camera_it_has_not_is_refused(point: tuple[TaskSpec, GymEnv]) -> None:
    task, env = point
    env.reset(episode(task, 0))
    with pytest.raises(ContractError, match=r"no camera observation\.image; it has: observation\.images\.wrist"):
        env.observe([IMAGE])


def test_outcomes_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    options = {"id": "Pendulum-v1", "success": "reward>=-0.05", "max_steps": "25"}
    assert_exact(EnvChoice("gym", options), tmp_path, n_episodes=5)


@pytest.mark.parametrize("point", [{"image_from_render": True}], indirect=True)
def test_a_package_that_drawing_lacks_is_named(point: tuple[TaskSpec, GymEnv], monkeypatch: pytest.MonkeyPatch) -> None:
    from gymnasium.error import DependencyNotInstalled

    def render() -> None:
        raise DependencyNotInstalled("pygame is not installed")

    task, env = point
    env.reset(episode(task, 0))
    monkeypatch.setattr(env._sim.unwrapped, "render", render)
    with pytest.raises(ConfigError, match=r"cannot be drawn: pygame is not installed; or do without: --eval\.record"):
        env.render()


def test_closing_twice_is_safe(point: tuple[TaskSpec, GymEnv]) -> None:
    point[1].close()
    point[1].close()


def test_whole_numbers_are_the_nearest() -> None:
    task, env = make("gym", id="Whole-v0", imports=TOYS)
    env.reset(episode(task, 0))
    env.step(np.array([0.9, -1.6, 2.4]))
    assert np.asarray(env.observe([])["observation.state"]).tolist() == [1.0, -2.0, 2.0]
    env.step(np.array([300.0, -1e30, 9.4]))  # its bounds are -9 and 9
    assert np.asarray(env.observe([])["observation.state"]).tolist() == [9.0, -9.0, 9.0]
    env.close()


def test_a_guess_of_gymnasium_ends_with_its_question_mark() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean: `Pendulum`\? If a module registers it"):
        task_of(id="Pendulumm-v1")
