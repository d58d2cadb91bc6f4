"""LIBERO's tasks are known without LIBERO."""

from __future__ import annotations

from typing import Any

import pytest

from robotrials.benchmarks.adapters.libero.tasks import SUITES, members
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice
from robotrials.plan.plan import build_plan
from robotrials.plan.task import TaskSpec


def tasks(**options: Any) -> list[TaskSpec]:
    return make_benchmark(EnvChoice("libero", options)).tasks()


@pytest.mark.parametrize(
    ("suite", "count", "steps"),
    [
        ("libero_spatial", 10, 280),
        ("libero_object", 10, 280),
        ("libero_goal", 10, 300),
        ("libero_10", 10, 520),
        ("libero_90", 90, 400),
    ],
)
def test_suites_have_lerobots_numbers_of_tasks_and_steps(suite: str, count: int, steps: int) -> None:
    found = tasks(task=suite)
    assert [task.id for task in found] == list(range(count))
    assert {(task.suite, task.max_steps, task.n_init_states, task.control_hz) for task in found} == {
        (suite, steps, 50, 20.0)
    }


def test_a_task_is_told_as_a_sentence() -> None:
    assert tasks(task="libero_spatial")[4].instruction == (
        "pick up the black bowl in the top drawer of the wooden cabinet and place it on the plate"
    )
    assert tasks(task="libero_10")[8].instruction == "put both moka pots on the stove"
    assert tasks(task="libero_90")[0].instruction == "close the top drawer of the cabinet"
    for suite in SUITES:
        for task in members(suite):
            assert "_" not in task.instruction
            assert task.instruction.replace(" ", "_") == task.stem[-len(task.instruction) :]


def test_keys_and_shapes_are_those_of_lerobots_checkpoints() -> None:
    task = tasks()[0]
    assert task.suite == "libero_10"
    assert {key: (f.shape, f.dtype) for key, f in task.observations.items()} == {
        "observation.images.image": ((360, 360, 3), "uint8"),
        "observation.images.image2": ((360, 360, 3), "uint8"),
        "observation.state": ((8,), "float32"),
    }
    assert (task.action.dim, task.action.low, task.action.high) == (7, (-1.0,) * 7, (1.0,) * 7)
    assert task.record_key == "observation.images.image"


def test_cameras_can_be_chosen_and_named() -> None:
    (task, *_) = tasks(
        camera_name="robot0_eye_in_hand_image, agentview_image, frontview_image",
        camera_name_mapping='{"robot0_eye_in_hand_image": "wrist"}',
        observation_height="128",
        obs_type="pixels",
    )
    assert {key: f.shape for key, f in task.observations.items()} == {
        "observation.images.wrist": (128, 360, 3),
        "observation.images.image": (128, 360, 3),
        "observation.images.frontview": (128, 360, 3),
    }
    assert task.record_key == "observation.images.wrist"


def test_task_ids_choose_from_every_suite() -> None:
    found = tasks(task="libero_goal, libero_object", task_ids="[7, 0]")
    assert [(task.suite, task.id) for task in found] == [
        ("libero_goal", 0),
        ("libero_goal", 7),
        ("libero_object", 0),
        ("libero_object", 7),
    ]


def test_libero_pro_is_perturbed_by_group_and_has_names_of_its_own() -> None:
    found = tasks(task="libero_goal,libero_goal_swap,libero_goal_lan,libero_goal_task,libero_goal_object")
    assert {task.suite: task.group for task in found} == {
        "libero_goal": "",
        "libero_goal_swap": "position",
        "libero_goal_lan": "language",
        "libero_goal_task": "task",
        "libero_goal_object": "object",
    }
    assert {task.max_steps for task in found} == {300}
    assert len(build_plan(found, 1, 0)) == 50  # which refuses two tasks of one name


def test_libero_pro_tells_the_perturbed_sentence_where_the_sentence_is_perturbed() -> None:
    assert tasks(task="libero_goal_swap")[7].instruction == "turn on the stove"
    assert tasks(task="libero_goal_lan")[7].instruction == "switch on the stove"
    assert tasks(task="libero_goal_task")[7].instruction == "Turn off the stove"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"task": "libero_goals"}, r"no suite libero_goals \(did you mean libero_goal\?\); it has libero_spatial"),
        ({"task": " ,"}, "--env.task is needed"),
        ({"task_ids": "3,10"}, "--env.task_ids: libero_10 has tasks 0 to 9, got 10"),
        ({"task_ids": "three"}, "--env.task_ids must be numbers such as 0,3,7; got three"),
        ({"camera_name": ""}, "--env.camera_name"),
        ({"camera_name_mapping": '{"agentview_image": "image2"}'}, "a name of its own"),
        (
            {"camera_name_mapping": '{"agentview": "front"}'},
            r"--env.camera_name_mapping: agentview is no camera \(did you mean agentview_image\?\); --env.camera_name",
        ),
        (
            {"camera_name": "agentview", "camera_name_mapping": '{"agentview_image": "front"}'},
            r"agentview_image is no camera \(did you mean agentview\?\)",
        ),
        (
            {"camera_name_mapping": '{"frontveiw_image": "f"}'},
            r"frontveiw_image is no .*\(did you mean frontview_image",
        ),
        ({"camera_name": "agentveiw_image"}, r"LIBERO has no camera agentveiw \(did you mean agentview\?\); known are"),
        ({"observation_width": "0"}, "--env.observation_width"),
        ({"control_mode": "velocity"}, "--env.control_mode must be one of relative, absolute"),
        ({"episode_length": "0"}, "--env.episode_length must be at least 1"),
        ({"fps": "0"}, "--env.fps must be at least 1"),
        ({"settling_steps": "-1"}, "--env.settling_steps must not be negative"),
        ({"hard_reset": "false"}, "--env.hard_reset=false: leave it out"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        tasks(**options)


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ({"robosuite": "1.4.0", "mujoco": "4.0.0"}, "cannot build LIBERO's scenes on mujoco 4.0.0"),
        ({"robosuite": "1.5.2", "mujoco": "3.3.0"}, "needs robosuite 1.4, but 1.5.2"),
    ],
)
def test_versions_that_cannot_work_are_named(versions: dict[str, str], words: str) -> None:
    conflict = type(make_benchmark(EnvChoice("libero", {}))).conflict
    assert words in (conflict(versions) or "")
    assert conflict({"robosuite": "1.4.0", "mujoco": "3.17.0"}) is None
