"""What a benchmark says of its tasks, before anything runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from robotrials.errors import ConfigError
from robotrials.plan.plan import MAX_EPISODES, build_plan, check_extent
from robotrials.plan.task import ActionSpec, Feature, TaskSpec
from robotrials.plan.task_check import checked

TASK = TaskSpec(
    suite="toys",
    name="reach",
    id=0,
    instruction="Reach.",
    max_steps=10,
    control_hz=20,
    observations={"observation.image": Feature((32, 32, 3), "uint8"), "observation.state": Feature((2,))},
    action=ActionSpec(2, (-1, -1.0), (1, float("inf"))),
)


def test_a_task_of_plain_numbers_stays_as_it_is_to_the_letter() -> None:
    (task,) = checked([TASK])
    assert build_plan([task], 2, 0).hash() == build_plan([TASK], 2, 0).hash()
    assert type(task.control_hz) is int


def test_numbers_of_numpy_become_pythons() -> None:
    odd = replace(
        TASK,
        id=np.int64(3),
        max_steps=np.int32(7),
        control_hz=np.float32(12.5),
        n_init_states=np.int64(4),
        observations={"observation.state": Feature((np.int64(2),))},  # type: ignore[arg-type]
        action=ActionSpec(np.int64(2), np.array([-1.0, 0.0]), np.ones(2)),  # type: ignore[arg-type]
    )
    (task,) = checked([odd])
    assert (task.id, task.max_steps, task.control_hz, task.n_init_states) == (3, 7, 12.5, 4)
    assert task.action == ActionSpec(2, (-1.0, 0.0), (1.0, 1.0))
    assert build_plan([task], 2, 0).hash()
    json.dumps([task.id, task.max_steps, task.control_hz, task.observations["observation.state"].shape])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_steps": 0}, "reach: max_steps is 0, but must be a whole number between 1 and"),
        ({"max_steps": -5}, "max_steps is -5"),
        ({"max_steps": 2.5}, "max_steps is 2.5"),
        ({"max_steps": float("nan")}, "max_steps is nan, but must be a finite number"),
        ({"max_steps": None}, "max_steps is None"),
        ({"control_hz": float("nan")}, "control_hz is nan, but must be a finite number"),
        ({"control_hz": 0.0}, "control_hz is 0.0, but must be between 0.01 and 100,000"),
        ({"control_hz": "20"}, "control_hz is '20'"),
        ({"n_init_states": 0}, "n_init_states is 0"),
        ({"action": ActionSpec(2, (0.0,), (1.0, 1.0))}, "action.dim is 2, with 1 lower and 2 upper bounds"),
        ({"action": ActionSpec(1, (2.0,), (1.0,))}, "the bounds of entry 0 of the action are 2.0 and 1.0"),
        ({"action": ActionSpec(1, (float("nan"),), (1.0,))}, "the bounds of entry 0 of the action are nan and 1.0"),
        ({"observations": {"observation.image": Feature((32, 32, 3))}}, r"observation.image as float32\[32, 32, 3\]"),
        ({"observations": {"observation.images.top": Feature((32, 32), "uint8")}}, r"as uint8\[32, 32\]; a camera is"),
        ({"observations": {"observation.images.top": Feature((3, 32, 48), "uint8")}}, r"as uint8\[3, 32, 48\]"),
    ],
)
def test_a_task_that_cannot_be_run_is_refused_by_its_name_and_field(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        checked([replace(TASK, **change)])


def test_more_episodes_than_a_plan_holds_are_refused_before_any_is_made() -> None:
    check_extent(4, MAX_EPISODES // 4, 0)
    with pytest.raises(ConfigError, match=r"is 1,000,000,000,000 episodes; a run has at most 2,000,000"):
        check_extent(1, 10**12, 1000)


def test_seeds_lie_in_what_numpy_takes_the_last_too() -> None:
    check_extent(3, 10, 2**32 - 10)
    with pytest.raises(ConfigError, match=r"the last seed is 4,294,967,296; seeds lie between 0 and 4,294,967,295"):
        check_extent(3, 11, 2**32 - 10)
