from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.gym.env import GymEnv
from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, ContractError, NoPictureError
from robotrials.plan.config import EnvChoice, EvalSettings, PolicyChoice, RunConfig
from robotrials.plan.task import TaskSpec
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare
from tests.benchmarks.scenes import digest, episode, in_a_fresh_process, make
from tests.benchmarks.spread import assert_exact
from tests.engine.toy_runs import Listener

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


ODD = {"id": "Odd-v0", "imports": TOYS}


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        ("reset without info", r"Odd-v0: reset\(\) returns a dict, as Gym before 0\.26 did; .*shimmy"),
        ("four values", r"Odd-v0: step\(\) returns 4 values, as Gym before 0\.26 did; right are five"),
        ("no reward", r"Odd-v0: step\(\) returns None as reward; right is one number"),
        ("list of info", r"Odd-v0: step\(\) returns a list as info; right is a dict"),
        ("missing entry", "Odd-v0: its observation lacks goal, which its observation space declares; it has robot,"),
        ("entry of none", "Odd-v0: its observation goal is None; its observation space declares Box"),
    ],
)
def test_what_is_off_is_refused_in_a_sentence_before_the_run(odd: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        task_of(**ODD, kwargs={"odd": odd})


def test_a_reset_that_takes_no_seed_is_named() -> None:
    with pytest.raises(ConfigError, match=r"Seedless-v0: reset\(\) takes no seed, as Gym before 0\.26"):
        task_of(id="Seedless-v0", imports=TOYS)


def test_numbers_in_arrays_of_one_are_numbers() -> None:
    task, env = make("gym", **ODD, kwargs={"odd": "arrays of one"})
    env.reset(episode(task, 0))
    outcome = env.step(np.zeros(2))
    assert (type(outcome.reward), outcome.terminated, outcome.truncated) == (float, False, False)


@pytest.mark.parametrize(("odd", "shape"), [("float", (4, 5, 3)), ("two", (4, 10, 3)), ("grey", (4, 5, 3))])
def test_what_is_drawn_is_a_picture_by_a_rule(odd: str, shape: tuple[int, ...]) -> None:
    task, env = make("gym", **ODD, kwargs={"odd": odd})
    env.reset(episode(task, 0))
    picture = env.render()
    assert (picture.shape, picture.dtype, picture[0, 0].tolist()) == (shape, np.uint8, [10, 10, 10])


@pytest.mark.parametrize("given", [{"odd": "none"}, {"render_mode": "human"}])
def test_one_that_draws_nothing_shows_what_it_observes(given: Any) -> None:
    task, env = make("gym", **ODD, kwargs=given)
    env.reset(episode(task, 0))
    assert np.array_equal(env.render(), env.observe([WRIST])[WRIST])


def test_nothing_drawn_and_nothing_seen_is_no_black_picture() -> None:
    task, env = make("gym", id="Whole-v0", imports=TOYS)
    env.reset(episode(task, 0))
    with pytest.raises(NoPictureError, match=r"Whole-v0 draws nothing \(render_mode is None\)") as refusal:
        env.render()
    assert refusal.value.by_design


@pytest.mark.parametrize("odd", ["left behind", "close raises", "close ends the process"])
def test_looking_at_an_environment_needs_no_good_end_of_it(odd: str, caplog: pytest.LogCaptureFixture) -> None:
    began = time.monotonic()
    with caplog.at_level("INFO"):
        assert task_of(**ODD, kwargs={"odd": odd}).max_steps == 30
    assert time.monotonic() - began < 60  # what is left behind lives for 90 s
    said = "closing what was built to look at it failed: OSError: EGL is gone"
    assert (said in caplog.text) == (odd == "close raises")


BESIDE = "gym_toys"


@pytest.fixture
def toys_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toys as a module of their own: a library may have installed a package ``tests`` (draccus does), and workers,
    which look in the current folder last, would find that one."""
    folder = str(Path(str(importlib.import_module(TOYS).__file__)).parent)
    monkeypatch.setenv("PYTHONPATH", folder)
    monkeypatch.setattr(sys, "path", [*sys.path, folder])


def played(
    folder: Path, odd: str, listener: Listener | None = None, dataset: Path | None = None, **options: str
) -> list[EpisodeRecord]:
    config = RunConfig(
        PolicyChoice("random"),
        EnvChoice("gym", {**ODD, "imports": BESIDE, "kwargs": {"odd": odd}, "max_steps": 5, **options}),
        EvalSettings(n_episodes=6, batch_size=1, record="first:3", max_attempts=1, dataset=dataset),
        1000,
        folder,
    )
    execute(prepare(config), listener or Listener())
    with Ledger.open(folder / "ledger.sqlite") as ledger:
        return list(ledger.accepted())


@pytest.mark.usefixtures("toys_for_workers")
def test_a_named_exception_is_a_failure_and_not_an_error(tmp_path: Path) -> None:
    def outcome(record: EpisodeRecord) -> tuple[str, bool | None, int]:
        return record.end.value, record.success, record.steps

    erred = [outcome(record) for record in played(tmp_path / "plain", "unreachable")]
    meant = played(tmp_path / "meant", "unreachable", failure_exceptions=f"{BESIDE}.OutOfReach")
    assert {end for end, _, _ in erred} == {"error", "time_limit"}
    assert [outcome(record) for record in meant] == [
        ("exception", False, 1) if end == "error" else (end, success, steps) for end, success, steps in erred
    ]
    assert {record.error for record in meant} == {None, "OutOfReach: no path to the target"}


@pytest.mark.usefixtures("toys_for_workers")
def test_a_film_that_cannot_be_drawn_ends_no_episode(tmp_path: Path) -> None:
    listener = Listener()
    records = played(tmp_path / "run", "broken", listener)
    assert [(record.end.value, record.video) for record in records] == [("time_limit", None)] * 6
    # Of the three that were to be filmed, the first is named: what holds for one mostly holds for many.
    assert [text for text in listener.messages if "video" in text] == [
        "Odd-v0/Odd-v0/0: it has no video: OSError: EGL is gone"
    ]


@pytest.mark.usefixtures("toys_for_workers")
def test_one_whose_reset_raises_a_failure_is_in_no_film_and_no_dataset(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    listener = Listener()
    records = played(
        tmp_path / "run",
        "unreachable at reset",
        listener,
        tmp_path / "dataset",
        failure_exceptions=f"{BESIDE}.OutOfReach",
    )
    over = [record for record in records if record.end.value == "exception"]
    assert 0 < len(over) < 6
    assert {(r.success, r.steps, r.reward_sum, r.reward_max, r.video) for r in over} == {(False, 0, 0.0, 0.0, None)}
    assert not any("it has no video" in text for text in listener.messages)
    info = json.loads((tmp_path / "dataset" / "meta" / "info.json").read_text())
    assert info["total_episodes"] == 6 - len(over)
