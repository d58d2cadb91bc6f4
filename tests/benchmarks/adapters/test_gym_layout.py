from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.gym.layout import lay_out
from robotrials.errors import ConfigError

spaces = pytest.importorskip("gymnasium.spaces")


def vector(size: int, dtype: Any = np.float64) -> Any:
    return spaces.Box(-1.0, 1.0, (size,), dtype)


def image(*shape: int) -> Any:
    return spaces.Box(0, 255, shape, np.uint8)


def shapes(space: Any, **names: Any) -> dict[str, tuple[int, ...]]:
    return {key: feature.shape for key, feature in lay_out(space, **names).features.items()}


def test_a_bare_box_is_the_state_or_the_image() -> None:
    assert shapes(vector(3)) == {"observation.state": (3,)}
    assert shapes(spaces.Box(-1, 1, (2, 3))) == {"observation.state": (6,)}
    assert shapes(image(6, 8, 3)) == {"observation.image": (6, 8, 3)}


def test_lerobots_keys_mean_what_they_mean_there() -> None:
    one = spaces.Dict({"pixels": image(6, 8, 3), "agent_pos": vector(2), "environment_state": vector(5)})
    assert shapes(one) == {
        "observation.image": (6, 8, 3),
        "observation.state": (2,),
        "observation.environment_state": (5,),
    }
    two = spaces.Dict({"pixels": spaces.Dict({"top": image(6, 8, 3)}), "agent_pos": vector(2), "other": vector(9)})
    assert shapes(two) == {"observation.images.top": (6, 8, 3), "observation.state": (2,)}


def test_vectors_without_lerobots_names_are_joined_in_the_order_of_the_space() -> None:
    space = spaces.Dict({"b": vector(2), "a": vector(1), "index": spaces.Discrete(4), "camera": image(6, 8, 1)})
    layout = lay_out(space)
    assert {key: f.shape for key, f in layout.features.items()} == {
        "observation.images.camera": (6, 8, 3),
        "observation.state": (3,),
    }
    order = list(space.spaces)
    raw = {"a": np.array([1.0]), "b": np.array([2.0, 3.0]), "index": 1, "camera": np.zeros((6, 8, 1), np.uint8)}
    expected = np.concatenate([raw[name] for name in order if name in ("a", "b")])
    assert layout.read(raw, [])["observation.state"].tolist() == expected.tolist()  # type: ignore[union-attr]


def test_entries_can_be_named_also_those_within_others() -> None:
    space = spaces.Dict({"goal": vector(2), "robot": spaces.Dict({"at": vector(3), "speed": vector(1)})})
    layout = lay_out(space, state=("robot/speed", "robot/at"), environment_state=("goal",))
    raw = {"goal": np.array([7.0, 8.0]), "robot": {"at": np.array([1.0, 2.0, 3.0]), "speed": np.array([4.0])}}
    seen = layout.read(raw, [])
    assert np.array_equal(seen["observation.state"], np.array([4.0, 1.0, 2.0, 3.0], np.float32))
    assert np.array_equal(seen["observation.environment_state"], np.array([7.0, 8.0], np.float32))
    assert np.asarray(seen["observation.state"]).dtype == np.float32


def test_only_the_images_asked_for_are_read_with_channels_last_and_for_the_caller_to_keep() -> None:
    layout = lay_out(spaces.Dict({"left": image(3, 6, 8), "right": image(6, 8, 3)}))
    raw = {"left": np.arange(3 * 6 * 8, dtype=np.uint8).reshape(3, 6, 8), "right": np.ones((6, 8, 3), np.uint8)}
    seen = layout.read(raw, ["observation.images.left"])
    assert list(seen) == ["observation.images.left"]
    left = np.asarray(seen["observation.images.left"])
    assert np.array_equal(left[..., 1], raw["left"][1])
    assert left.flags.c_contiguous
    raw["left"][:] = 0
    assert left.any()
    assert layout.features["observation.images.left"].shape == (6, 8, 3)


def test_a_name_that_is_no_vector_is_refused_with_those_there_are() -> None:
    space = spaces.Dict({"position": vector(2), "index": spaces.Discrete(4)})
    with pytest.raises(
        ConfigError, match=r"--env\.state=positon: no such vector \(did you mean position\?\); position"
    ):
        lay_out(space, state=("positon",))
    with pytest.raises(ConfigError, match=r"--env\.environment_state=index: no such vector"):
        lay_out(space, environment_state=("index",))
    with pytest.raises(ConfigError, match="leave the flag out"):
        lay_out(vector(2), state=("position",))


def test_a_space_that_shows_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing can be observed"):
        lay_out(spaces.Discrete(3))


def test_two_entries_that_would_have_one_name_are_refused() -> None:
    pixels = spaces.Dict({"top": image(6, 8, 3)})
    with pytest.raises(ConfigError, match=r"pixels/top and top would both be observation\.images\.top"):
        lay_out(spaces.Dict({"pixels": pixels, "top": image(6, 8, 3)}))
    inner, outer = spaces.Dict({"b_c": image(6, 8, 3)}), spaces.Dict({"c": image(6, 8, 3)})
    with pytest.raises(ConfigError, match=r"a/b_c and a_b/c would both be observation\.images\.a_b_c"):
        lay_out(spaces.Dict({"a": inner, "a_b": outer}))
    with pytest.raises(ConfigError, match=r"two entries are called a/b"):
        lay_out(spaces.Dict({"a": spaces.Dict({"b": vector(1)}), "a/b": vector(2)}))
