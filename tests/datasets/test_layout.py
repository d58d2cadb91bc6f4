from __future__ import annotations

from dataclasses import replace

import pytest

from robotrials.datasets.layout import DatasetLayout
from robotrials.errors import ConfigError
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

TASK = TaskSpec(
    suite="s",
    name="lift",
    id=0,
    instruction="Lift it",
    max_steps=10,
    control_hz=20.0,
    observations={
        "observation.images.top": Feature((24, 32, 3), "uint8"),
        "observation.images.wrist": Feature((16, 16, 3), "uint8"),
        "observation.state": Feature((3,)),
        "task": Feature((), "str"),
    },
    action=ActionSpec(2, (-1.0,) * 2, (1.0,) * 2),
)


@pytest.mark.parametrize(
    ("asked", "cameras"),
    [
        ("all", ("observation.images.top", "observation.images.wrist")),
        ("none", ()),
        ("wrist", ("observation.images.wrist",)),
        ("wrist, observation.images.top", ("observation.images.top", "observation.images.wrist")),
    ],
)
def test_cameras_are_chosen_by_key_or_by_name_and_stay_in_the_tasks_order(asked: str, cameras: tuple[str, ...]) -> None:
    assert DatasetLayout.of_tasks([TASK], asked).cameras == cameras


def test_an_unknown_camera_is_refused_with_the_nearest_and_all_that_exist() -> None:
    with pytest.raises(ConfigError, match=r"no camera 'wrst' \(did you mean wrist\?\); it has: observation.images.top"):
        DatasetLayout.of_tasks([TASK], "top,wrst")


def test_a_single_camera_without_a_name_is_called_image() -> None:
    task = replace(TASK, observations={"observation.image": Feature((8, 8, 3), "uint8")})
    assert DatasetLayout.of_tasks([task], "image").cameras == ("observation.image",)


def test_features_are_the_observation_the_action_and_what_the_step_brought() -> None:
    features = DatasetLayout.of_tasks([TASK], "top").features()
    assert {key: (kind["dtype"], kind["shape"]) for key, kind in features.items()} == {
        "observation.images.top": ("video", [24, 32, 3]),
        "observation.state": ("float32", [3]),
        "action": ("float32", [2]),
        "next.reward": ("float32", [1]),
        "next.success": ("bool", [1]),
        "next.done": ("bool", [1]),
        "seed": ("int64", [1]),
    }
    assert features["observation.images.top"]["names"] == ["height", "width", "channels"]


@pytest.mark.parametrize(
    "change",
    [
        {"control_hz": 10.0},
        {"action": ActionSpec(3, (-1.0,) * 3, (1.0,) * 3)},
        {"observations": {**TASK.observations, "observation.state": Feature((4,))}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_tasks_that_do_not_fit_into_one_dataset_are_refused_by_name(change: dict) -> None:
    with pytest.raises(ConfigError, match="lift and drop do not fit into one dataset"):
        DatasetLayout.of_tasks([TASK, replace(TASK, name="drop", **change)], "all")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"observation.touch": Feature((4, 4))}, "holds images and vectors"),
        ({"observation.a/b": Feature((4,))}, "hold no '/'"),
        ({"observation.images.depth": Feature((4, 4, 1), "uint8")}, "holds RGB images"),
    ],
)
def test_what_a_dataset_cannot_hold_is_refused(entry: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        DatasetLayout.of_tasks([replace(TASK, observations=entry)], "all")
