from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.gym.layout import lay_out
from robotrials.errors import ConfigError, ContractError

spaces = pytest.importorskip("gymnasium.spaces")

CAMERA = "observation.images.cam"


def with_joints(camera: Any, joints: str = "joints") -> Any:
    return spaces.Dict({"cam": camera, joints: spaces.Box(-9.0, 9.0, (2,))})


def seen(camera: Any, value: Any, joints: str = "joints") -> np.ndarray:
    """What is read of ``value``, beside a state that must stay what it is."""
    layout = lay_out(with_joints(camera, joints))
    assert layout.features["observation.state"].shape == (2,)
    read = layout.read({"cam": value, joints: np.zeros(2)}, [CAMERA])[CAMERA]
    assert isinstance(read, np.ndarray)
    assert (read.dtype, read.shape) == (np.uint8, layout.features[CAMERA].shape)
    return read


@pytest.mark.parametrize("joints", ["joints", "agent_pos"])
@pytest.mark.parametrize("shape", [(20, 30), (20, 30, 1), (1, 20, 30), (1, 20, 30, 1)])
def test_a_grey_camera_has_three_equal_channels(shape: tuple[int, ...], joints: str) -> None:
    grey = np.arange(600).reshape(shape).astype(np.uint8)
    read = seen(spaces.Box(0, 255, shape, np.uint8), grey, joints)
    assert read.shape == (20, 30, 3)
    for channel in range(3):
        assert np.array_equal(read[..., channel], grey.reshape(20, 30))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_floats_up_to_1_are_multiplied_by_255_and_rounded(dtype: Any) -> None:
    picture = np.zeros((20, 30, 3), dtype)
    picture[0, 0] = [1.0, 0.5, 0.2]
    assert seen(spaces.Box(0.0, 1.0, (20, 30, 3), dtype), picture)[0, 0].tolist() == [255, 128, 51]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint16])
def test_numbers_up_to_255_are_rounded(dtype: Any) -> None:
    picture = np.zeros((3, 20, 30), dtype)
    picture[:, 0, 0] = np.array([255, 0.6, 7], dtype)
    read = seen(spaces.Box(0, 255, (3, 20, 30), dtype), picture)
    assert read.shape == (20, 30, 3)
    assert read[0, 0].tolist() == [255, 1 if dtype == np.float32 else 0, 7]


@pytest.mark.parametrize(
    ("box", "shown"),
    [
        (spaces.Box(0, 65535, (20, 30), np.uint16), "cam, uint16[20, 30] between 0 and 65535"),
        (spaces.Box(0, 65535, (20, 30, 1), np.uint16), "cam, uint16[20, 30, 1]"),
        (spaces.Box(0.0, np.inf, (20, 30), np.float32), "cam, float32[20, 30] between 0 and inf"),
        (spaces.Box(-1.0, 1.0, (20, 30, 3), np.float32), "cam, float32[20, 30, 3] between -1 and 1"),
        (spaces.Box(0, 40, (20, 30), np.int32), "cam, int32[20, 30] between 0 and 40"),
        (spaces.Box(0, 1, (20, 30), bool), "cam, bool[20, 30]"),
        (spaces.Box(0, 255, (5, 20, 30), np.uint8), "neither 5 nor 30 is a number of channels"),
        (spaces.Box(0, 255, (5, 20, 30, 3), np.uint8), "4 axes, a stack of pictures"),
    ],
)
@pytest.mark.parametrize("joints", ["joints", "agent_pos"])
def test_what_no_rule_converts_is_refused_by_name_shape_and_dtype(box: Any, shown: str, joints: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(shown)) as refused:
        lay_out(with_joints(box, joints))
    assert "--env.ignore=cam" in str(refused.value)
    assert set(lay_out(with_joints(box, joints), ignore=["cam"]).features) == {"observation.state"}


def test_numbers_asked_for_by_name_are_numbers() -> None:
    layout = lay_out(with_joints(spaces.Box(-1.0, 1.0, (20, 30))), state=("joints", "cam"))
    assert {key: feature.shape for key, feature in layout.features.items()} == {"observation.state": (602,)}


def test_matrices_of_a_state_are_no_cameras() -> None:
    space = spaces.Dict({"pose": spaces.Box(-1.0, 1.0, (4, 4)), "past": spaces.Box(-1.0, 1.0, (10, 14))})
    assert lay_out(space).features["observation.state"].shape == (156,)


def test_an_entry_to_leave_out_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--env\.ignore=kam: no such entry \(did you mean cam\?\)"):
        lay_out(with_joints(spaces.Box(0, 255, (20, 30), np.uint8)), ignore=["kam"])


def test_a_picture_alone_is_refused_too() -> None:
    with pytest.raises(ConfigError, match=r"the observation, uint16\[20, 30\].* Convert it in a wrapper"):
        lay_out(spaces.Box(0, 65535, (20, 30), np.uint16))


@pytest.mark.parametrize(
    ("camera", "value", "problem"),
    [
        (spaces.Box(0, 255, (20, 30, 3), np.uint8), np.zeros((20, 30, 3), np.float32), r"gave float32\[20, 30, 3\]"),
        (spaces.Box(0, 255, (20, 30, 3), np.uint8), np.zeros((20, 31, 3), np.uint8), r"gave uint8\[20, 31, 3\]"),
        (spaces.Box(0.0, 1.0, (20, 30, 3)), np.full((20, 30, 3), 200.0), "between 200 and 200"),
        (spaces.Box(0.0, 1.0, (20, 30, 3)), np.full((20, 30, 3), np.nan), "between nan and nan"),
        (spaces.Box(0.0, 1.0, (20, 30, 3)), None, "gave object"),
    ],
)
def test_a_picture_that_is_not_as_declared_is_an_error(camera: Any, value: Any, problem: str) -> None:
    layout = lay_out(with_joints(camera))
    with pytest.raises(ContractError, match=problem):
        layout.read({"cam": value, "joints": np.zeros(2)}, [CAMERA])


def test_entries_of_a_tuple_are_called_by_their_position() -> None:
    space = spaces.Tuple((spaces.Box(0, 255, (20, 30, 3), np.uint8), spaces.Box(-1.0, 1.0, (2,))))
    layout = lay_out(space)
    picture = np.full((20, 30, 3), 9, np.uint8)
    read = layout.read((picture, np.ones(2)), ["observation.images.0"])
    assert np.array_equal(read["observation.images.0"], picture)
    assert np.array_equal(read["observation.state"], np.ones(2))


def test_a_single_number_is_joined_to_the_state() -> None:
    layout = lay_out(spaces.Dict({"grip": spaces.Box(-1.0, 1.0, ()), "joints": spaces.Box(-1.0, 1.0, (2,))}))
    assert layout.read({"grip": np.float32(7), "joints": np.zeros(2)}, [])["observation.state"].tolist() == [7, 0, 0]  # type: ignore[union-attr]


@pytest.mark.parametrize("raw", [{"joints": np.zeros(2)}, {}, None])
def test_a_missing_entry_is_an_error_that_names_it(raw: Any) -> None:
    layout = lay_out(spaces.Dict({"cam": spaces.Box(-1.0, 1.0, (1,)), "joints": spaces.Box(-1.0, 1.0, (2,))}))
    with pytest.raises(ContractError, match="lacks cam, which its space declares"):
        layout.read(raw, [])


def test_none_is_no_state() -> None:
    with pytest.raises(ContractError, match="the environment's observation is None, not numbers"):
        lay_out(spaces.Box(-1.0, 1.0, (2,))).read(None, [])
