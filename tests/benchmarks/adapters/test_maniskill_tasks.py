from __future__ import annotations

import pytest

from robotrials.benchmarks.adapters.maniskill.benchmark import ManiSkill
from robotrials.benchmarks.adapters.maniskill.tasks import CONTROL_MODES, GROUPS, TASKS, action_spec
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import TaskSpec

THE_TEN = "PickCube PushCube StackCube PegInsertionSide PlugCharger LiftPegUpright PullCube PokeCube RollBall PushT"


def tasks(**options: object) -> list[TaskSpec]:
    return make_benchmark(EnvChoice("maniskill", options)).tasks()


def test_the_ten_tasks_are_listed_without_the_simulator_each_with_a_sentence() -> None:
    found = tasks(task=THE_TEN.replace(" ", ","))
    assert [task.name for task in found] == [f"{name}-v1" for name in THE_TEN.split()]
    for task in found:
        assert task.instruction.endswith(".")
        assert "_" not in task.instruction
    assert len({task.instruction for task in tasks(task="all")}) == len(TASKS)


def test_a_task_is_what_the_simulator_makes_of_it() -> None:
    (task,) = tasks(task="StackCube")
    assert (task.suite, task.max_steps, task.control_hz) == ("StackCube-v1", 50, 20.0)
    assert {key: (f.shape, f.dtype) for key, f in task.observations.items()} == {
        "observation.images.base_camera": ((128, 128, 3), "uint8"),
        "observation.images.hand_camera": ((128, 128, 3), "uint8"),
        "observation.state": ((9,), "float32"),
        "observation.environment_state": ((48,), "float32"),
    }
    assert (task.action.dim, task.action.low) == (8, (-1.0,) * 8)


def test_groups_keep_their_order_and_name() -> None:
    found = tasks(task="experts,PushT")
    assert [(task.suite, task.name) for task in found[:2]] == [("experts", "PickCube-v1"), ("experts", "PushCube-v1")]
    assert (found[-1].suite, found[-1].id) == ("PushT-v1", 0)
    assert len(found) == len(GROUPS["experts"]) + 1


def test_options_shape_what_is_observed() -> None:
    (task,) = tasks(task="PickCube", obs_type="state", episode_length=200)
    assert list(task.observations) == ["observation.state", "observation.environment_state"]
    assert task.max_steps == 200
    (task,) = tasks(task="PickCube", obs_type="pixels", observation_width=64, observation_height=48)
    assert [f.shape for f in task.observations.values()] == [(48, 64, 3)]


@pytest.mark.parametrize(
    ("mode", "gripper", "dim"),
    [
        ("pd_joint_pos", True, 8),
        ("pd_ee_delta_pose", True, 7),
        ("pd_ee_delta_pos", False, 3),
        ("pd_joint_pos_vel", True, 15),
    ],
)
def test_an_action_has_the_length_of_its_control_mode(mode: str, gripper: bool, dim: int) -> None:
    spec = action_spec(mode, gripper)
    assert spec.dim == len(spec.low) == len(spec.high) == dim
    assert all(low < high for low, high in zip(spec.low, spec.high, strict=True))


def test_every_control_mode_has_a_spec() -> None:
    assert {mode: action_spec(mode, gripper=True).dim for mode in CONTROL_MODES}["pd_joint_vel"] == 8


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "--env.task is needed"),
        ({"task": "PickCub"}, r"did you mean PickCube-v1\?"),
        ({"task": "PickSingleYCB-v1"}, "download objects first"),
        ({"task": "PickCube", "control_mode": "joints"}, "must be one of pd_joint_delta_pos"),
        ({"task": "PickCube", "episode_length": -1}, "-1"),
        ({"task": "PlugCharger", "reward_mode": "dense"}, "PlugCharger-v1 has sparse and none only"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        tasks(**options)


def test_numpy_2_under_the_planner_is_refused_with_the_command_that_mends_it() -> None:
    assert "numpy<2" in (ManiSkill.conflict({"mplib": "0.1.1", "numpy": "2.4.6"}) or "")
    assert ManiSkill.conflict({"mplib": "0.1.1", "numpy": "1.26.4"}) is None
    assert ManiSkill.conflict({"mplib": "0.2.1", "numpy": "2.4.6"}) is None
