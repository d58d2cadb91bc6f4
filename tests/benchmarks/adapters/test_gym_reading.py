from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
spaces = gymnasium.spaces

from robotrials.benchmarks.adapters.gym.reading import ObservationReader  # noqa: E402
from robotrials.errors import ContractError  # noqa: E402

CAMERA = spaces.Box(0, 255, (4, 6, 3), np.uint8)
VECTOR = spaces.Box(-9, 9, (2,), np.float32)
SPACE = spaces.Dict(
    {"robot": spaces.Dict({"at": VECTOR}), "goal": VECTOR, "pixels": CAMERA, "mode": spaces.Discrete(3)}
)
PICTURE, TWO = np.ones((4, 6, 3), np.uint8), np.array([1.0, 2.0], np.float32)


def seen(**changes: Any) -> dict[str, Any]:
    return {"robot": {"at": TWO}, "goal": TWO, "pixels": PICTURE, "mode": None, **changes}


@pytest.mark.parametrize(
    "raw", [seen(), seen(robot={"at": TWO[None]}, pixels=PICTURE[None]), seen(goal=[1.0, 2.0], extra=5)]
)
def test_a_leading_axis_of_one_is_taken_off(raw: Any) -> None:
    reader = ObservationReader(SPACE, "Toy")
    reader.require(raw)
    read = reader.read(raw, ["observation.image"])
    assert np.asarray(read["observation.image"]).shape == (4, 6, 3)
    assert np.asarray(read["observation.state"]).tolist() == [1.0, 2.0, 1.0, 2.0]


def test_pictures_that_are_declared_in_batches_of_one_are_pictures() -> None:
    space = spaces.Dict({"pixels": spaces.Box(0, 255, (1, 4, 6, 3), np.uint8), "at": spaces.Box(-9, 9, (1, 2))})
    reader = ObservationReader(space, "Toy")
    assert {key: f.shape for key, f in reader.layout.features.items()} == {
        "observation.image": (4, 6, 3),
        "observation.state": (2,),
    }
    reader.require({"pixels": PICTURE[None], "at": TWO[None]})


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (None, "its observation is None"),
        (seen(goal=None), "its observation goal is None"),
        (seen(robot={}), "its observation lacks robot/at, which its observation space declares; it has nothing"),
        (seen(robot=TWO), "its observation robot is a ndarray, but its observation space declares a dict"),
        (TWO, "its observation is a ndarray, but its observation space declares a dict"),
        (seen(goal=np.zeros(3)), r"observation.state as float32[5], but its observation space declares float32[4]"),
    ],
)
def test_an_observation_that_is_not_as_declared_is_refused_by_the_entry(raw: Any, says: str) -> None:
    with pytest.raises(ContractError) as refusal:
        ObservationReader(SPACE, "Toy").require(raw)
    assert f"Toy: {says}" in str(refusal.value).replace("its observation holds ", "")


def test_a_camera_of_another_size_than_declared_is_named() -> None:
    said = re.escape("pixels: the observation space declares uint8[4, 6, 3], but the environment gave uint8[2, 6, 3]")
    with pytest.raises(ContractError, match=said):
        ObservationReader(SPACE, "Toy").require(seen(pixels=PICTURE[:2]))
