from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError, ContractError, NotInstalledError
from robotrials.plan.config import PolicyChoice
from robotrials.plan.task import Feature
from robotrials.policies.onnx import OnnxPolicy
from robotrials.policies.registry import make_policy, revision, validate
from tests.policies.scenes import a_task, an_episode

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

STATE, IMAGE = "observation.state", "observation.image"
TYPES = {"float": 1, "uint8": 2, "int64": 7, "string": 8, "bool": 9, "float16": 10, "double": 11, "bfloat16": 16}

Axes = list[Any]


def graph(
    file: Path,
    inputs: dict[str, tuple[str, Axes]],
    output: Axes,
    nodes: list[Any],
    constants: dict[str, np.ndarray] | None = None,
    metadata: str | None = None,
    gives: str = "float",
) -> str:
    """Write a model; every node's helper arguments are ``(op, inputs, outputs, attributes)``."""
    make = onnx.helper
    made = make.make_graph(
        [make.make_node(op, ins, outs, **attributes) for op, ins, outs, attributes in nodes],
        "test",
        [make.make_tensor_value_info(name, TYPES[kind], axes) for name, (kind, axes) in inputs.items()],
        [make.make_tensor_value_info("action", TYPES[gives], output)],
        [onnx.numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    opsets = [make.make_opsetid("", 17), make.make_opsetid("ai.onnx.ml", 3)]
    model = make.make_model(made, opset_imports=opsets, ir_version=8)
    if metadata is not None:
        make.set_model_props(model, {"robotrials": metadata})
    onnx.save(model, str(file))
    return str(file)


def linear(file: Path, weight: np.ndarray, axes: Axes | None = None, metadata: str | None = None) -> str:
    """action = state @ weight."""
    return graph(
        file,
        {STATE: ("float", axes or ["B", len(weight)])},
        ["B", weight.shape[1]],
        [("MatMul", [STATE, "weight"], ["action"], {})],
        {"weight": weight.astype(np.float32)},
        metadata,
    )


def chunked(file: Path, metadata: str | None = None) -> str:
    """Chunks (B, 3, 2): the six entries of the state, in order."""
    shape = {"shape": np.array([-1, 3, 2])}
    reshape = ("Reshape", [STATE, "shape"], ["action"], {})
    return graph(file, {STATE: ("float", ["B", 6])}, ["B", 3, 2], [reshape], shape, metadata)


def act(policy: OnnxPolicy, *observations: Observation) -> np.ndarray:
    sessions = [policy.new_session(an_episode(i), a_task()) for i in range(len(observations))]
    return policy.act(sessions, observations)


def test_a_graph_from_state_to_action_is_a_policy(tmp_path: Path) -> None:
    policy = OnnxPolicy(linear(tmp_path / "m.onnx", np.array([[1, 0], [0, 1], [1, 1]])))
    spec = policy.spec()
    assert spec.observations == {STATE: Feature((3,))}
    assert (spec.action_dim, spec.n_action_steps, spec.n_obs_steps, spec.needs_env) == (2, 1, 1, False)
    actions = act(policy, {STATE: np.array([1, 2, 3], np.float32)}, {STATE: np.array([0, 0, 1], np.float32)})
    assert actions.dtype == np.float32
    np.testing.assert_array_equal(actions, [[[4, 5]], [[1, 1]]])


def test_a_chunk_is_played_whole_by_default_and_keeps_its_order(tmp_path: Path) -> None:
    policy = OnnxPolicy(chunked(tmp_path / "m.onnx"))
    assert policy.spec().n_action_steps == 3
    rows = np.arange(12, dtype=np.float32).reshape(2, 6)
    np.testing.assert_array_equal(act(policy, {STATE: rows[0]}, {STATE: rows[1]}), rows.reshape(2, 3, 2))


def test_the_metadata_says_how_much_of_a_chunk_is_played_and_the_flag_overrides_it(tmp_path: Path) -> None:
    file = chunked(tmp_path / "m.onnx", json.dumps({"n_action_steps": 2}))
    assert OnnxPolicy(file).spec().n_action_steps == 2
    choice = PolicyChoice(path=file, options={"n_action_steps": "1"})
    assert make_policy(choice).spec().n_action_steps == 1


def test_more_action_steps_than_the_graph_gives_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gives 3 actions at a time: n_action_steps=4"):
        OnnxPolicy(chunked(tmp_path / "m.onnx"), n_action_steps=4)
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        OnnxPolicy(chunked(tmp_path / "m.onnx"), n_action_steps=0)


def test_a_chunk_of_open_length_that_is_too_short_is_refused_when_it_comes(tmp_path: Path) -> None:
    shape = {"shape": np.array([1, -1, 2])}
    reshape = ("Reshape", [STATE, "shape"], ["action"], {})
    file = graph(tmp_path / "m.onnx", {STATE: ("float", ["B", "D"])}, ["B", "T", 2], [reshape], shape)
    policy = OnnxPolicy(file, n_action_steps=4)
    np.testing.assert_array_equal(act(policy, {STATE: np.arange(8, dtype=np.float32)})[0, 3], [6, 7])
    with pytest.raises(ContractError, match="gave 3 actions, fewer than n_action_steps=4"):
        act(policy, {STATE: np.zeros(6, np.float32)})


def image_means(file: Path, kind: str, axes: Axes) -> str:
    """The mean over height and width of each channel, as an action of three numbers."""
    over = [1, 2] if kind == "uint8" else [2, 3]
    cast = [("Cast", [IMAGE], ["pixels"], {"to": TYPES["float"]})]
    means = [("ReduceMean", ["pixels"], ["action"], {"axes": over, "keepdims": 0})]
    return graph(file, {IMAGE: (kind, axes)}, ["B", 3], cast + means)


def test_images_come_as_bytes_or_as_channels_first_floats_as_the_input_says(tmp_path: Path) -> None:
    image = np.zeros((4, 5, 3), np.uint8)
    image[..., 0], image[0, :, 2] = 255, 100
    as_bytes = OnnxPolicy(image_means(tmp_path / "u.onnx", "uint8", ["B", 4, 5, 3]))
    as_floats = OnnxPolicy(image_means(tmp_path / "f.onnx", "float", ["B", 3, 4, 5]))
    for policy in (as_bytes, as_floats):
        assert policy.spec().observations == {IMAGE: Feature((4, 5, 3), "uint8")}
    np.testing.assert_allclose(act(as_bytes, {IMAGE: image}), [[[255, 0, 25]]], rtol=1e-6)
    np.testing.assert_allclose(act(as_floats, {IMAGE: image}), [[[1, 0, 25 / 255]]], rtol=1e-6)


def test_open_axes_take_any_shape(tmp_path: Path) -> None:
    policy = OnnxPolicy(image_means(tmp_path / "u.onnx", "uint8", ["B", "H", "W", 3]))
    assert policy.spec().observations == {IMAGE: None}
    assert act(policy, {IMAGE: np.full((7, 2, 3), 9, np.uint8)}).tolist() == [[[9, 9, 9]]]


def test_the_instruction_reaches_the_graph_as_text(tmp_path: Path) -> None:
    file = graph(
        tmp_path / "m.onnx",
        {"task": ("string", ["B"])},
        ["B", 2],
        [
            (
                "OneHotEncoder",
                ["task"],
                ["action"],
                {"domain": "ai.onnx.ml", "cats_strings": ["Spin", "Stop"], "zeros": 1},
            )
        ],
    )
    policy = OnnxPolicy(file)
    assert policy.spec().observations == {"task": Feature((), "str")}
    assert act(policy, {"task": "Stop"}, {"task": "Spin"}, {"task": "Fly"})[:, 0].tolist() == [[0, 1], [1, 0], [0, 0]]


def test_a_history_of_observations_keeps_its_time_axis(tmp_path: Path) -> None:
    file = graph(
        tmp_path / "m.onnx",
        {STATE: ("float", ["B", 2, 3])},
        ["B", 6],
        [("Flatten", [STATE], ["action"], {})],
        metadata=json.dumps({"n_obs_steps": 2}),
    )
    policy = OnnxPolicy(file)
    assert policy.spec().n_obs_steps == 2
    assert policy.spec().observations == {STATE: Feature((3,))}
    assert act(policy, {STATE: np.arange(6, dtype=np.float32).reshape(2, 3)}).tolist() == [[[0, 1, 2, 3, 4, 5]]]


@pytest.mark.parametrize(
    ("inputs", "metadata", "message"),
    [
        ({"state": ("float", ["B", 3])}, None, r"input state tensor\(float\)\[B, 3\] is named like no observation"),
        ({STATE: ("float", ["B", 3, 2])}, None, "must be"),
        ({STATE: ("int64", ["B", 3])}, None, "must be"),
        ({IMAGE: ("uint8", ["B", 3])}, None, "must be"),
        ({STATE: ("float", [])}, None, "must be"),
        ({"task": ("string", ["B", 1])}, None, r"must be tensor\(string\)\[B\]"),
        ({STATE: ("float", [4, 3])}, None, "fixed batch of 4"),
        ({STATE: ("float", ["B", 3])}, '{"n_obs_steps": 2}', "with B, 2 in front"),
        ({STATE: ("float", ["B", 4, 3])}, '{"n_obs_steps": 2}', "does not match n_obs_steps=2"),
        ({STATE: ("float", ["B", 3])}, '{"n_obs_steps": 0}', "n_obs_steps must be at least 1"),
        ({STATE: ("float", ["B", 3])}, '{"n_action_step": 2}', r"n_action_step \(did you mean n_action_steps\?\)"),
        ({STATE: ("float", ["B", 3])}, "steps=2", "is no JSON"),
        ({STATE: ("float", ["B", 3])}, "[2]", "must be a JSON object"),
    ],
)
def test_a_graph_that_follows_no_rule_is_refused_with_what_would_be_right(
    tmp_path: Path, inputs: dict[str, tuple[str, Axes]], metadata: str | None, message: str
) -> None:
    constant = {"value": onnx.numpy_helper.from_array(np.zeros((1, 2), np.float32))}
    file = graph(tmp_path / "m.onnx", inputs, ["B", 2], [("Constant", [], ["action"], constant)], metadata=metadata)
    with pytest.raises(ConfigError, match=message):
        OnnxPolicy(file)


def test_an_output_of_another_rank_is_refused(tmp_path: Path) -> None:
    flat = ("ReduceSum", [STATE], ["action"], {"keepdims": 0})
    file = graph(tmp_path / "m.onnx", {STATE: ("float", ["B", 3])}, [], [flat])
    with pytest.raises(ConfigError, match=r"must be \(B, A\) or \(B, T, A\)"):
        OnnxPolicy(file)


def test_an_observation_of_another_shape_names_both_sides(tmp_path: Path) -> None:
    policy = OnnxPolicy(linear(tmp_path / "m.onnx", np.eye(3)))
    with pytest.raises(ContractError, match=r"does not take observation.state float32\[1, 5\]"):
        act(policy, {STATE: np.zeros(5, np.float32)})


def test_a_file_that_is_missing_or_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        OnnxPolicy(str(tmp_path / "gone.onnx"))
    (tmp_path / "text.onnx").write_text("not a model")
    with pytest.raises(ConfigError, match=r"is no model that onnxruntime \d"):
        OnnxPolicy(str(tmp_path / "text.onnx"))


def test_a_missing_onnxruntime_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = linear(tmp_path / "m.onnx", np.eye(2))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(NotInstalledError, match=r"pip install .*\[onnx\]"):
        OnnxPolicy(file)


def test_validate_does_not_load_the_model(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("not a model")
    validate(PolicyChoice(path=str(tmp_path / "text.onnx")))
    with pytest.raises(ConfigError, match="no such file"):
        validate(PolicyChoice(path=str(tmp_path / "gone.onnx")))


def test_the_revision_follows_weights_that_lie_beside_the_graph(tmp_path: Path) -> None:
    choice = PolicyChoice(path=linear(tmp_path / "m.onnx", np.eye(2)))
    alone = revision(choice)
    (tmp_path / "m.onnx.data").write_bytes(b"1")
    first = revision(choice)
    (tmp_path / "m.onnx.data").write_bytes(b"2")
    assert len({alone, first, revision(choice)}) == 3


def perceptron(file: Path) -> str:
    """Wide enough that another order of sums would show in the last bits."""
    rng = np.random.default_rng(0)
    sizes = [(39, 512), (512, 512), (512, 4)]
    weights = {f"w{i}": rng.standard_normal(size).astype(np.float32) for i, size in enumerate(sizes)}
    nodes = [("MatMul", [STATE, "w0"], ["a"], {}), ("Tanh", ["a"], ["b"], {})]
    nodes += [("MatMul", ["b", "w1"], ["c"], {}), ("Tanh", ["c"], ["d"], {}), ("MatMul", ["d", "w2"], ["action"], {})]
    return graph(file, {STATE: ("float", ["B", 39])}, ["B", 4], nodes, weights)


def test_an_action_does_not_depend_on_the_batch(tmp_path: Path) -> None:
    policy = OnnxPolicy(perceptron(tmp_path / "m.onnx"))
    rows = [{STATE: row} for row in np.random.default_rng(1).standard_normal((16, 39)).astype(np.float32)]
    together = act(policy, *rows)
    for i in (0, 7, 15):
        np.testing.assert_array_equal(act(policy, rows[i])[0], together[i])
    np.testing.assert_array_equal(act(policy, *rows[::-1])[::-1], together)


def test_actions_are_bit_identical_in_every_process(tmp_path: Path) -> None:
    program = """
        import sys, hashlib
        import numpy as np
        from robotrials.policies.onnx import OnnxPolicy
        rows = np.random.default_rng(1).standard_normal((200, 39)).astype(np.float32)
        policy = OnnxPolicy(sys.argv[1])
        actions = policy.act([None] * 200, [{"observation.state": row} for row in rows])
        print(hashlib.sha256(actions.tobytes()).hexdigest())
    """
    file = perceptron(tmp_path / "m.onnx")
    digests = set()
    for threads in ("1", "2", "8"):  # what the environment asks for must not matter: the session has one thread
        env = {**os.environ, "OMP_NUM_THREADS": threads}
        command = [sys.executable, "-c", textwrap.dedent(program), file]
        digests.add(subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout.strip())
    rows = np.random.default_rng(1).standard_normal((200, 39)).astype(np.float32)
    here = act(OnnxPolicy(file), *[{STATE: row} for row in rows])
    assert digests == {hashlib.sha256(here.tobytes()).hexdigest()}


@pytest.mark.parametrize("gives", ["float16", "double", "int64"])
def test_actions_are_the_numbers_that_the_graph_gives_in_each_type(tmp_path: Path, gives: str) -> None:
    nodes = [("Cast", [STATE], ["action"], {"to": TYPES[gives]})]
    policy = OnnxPolicy(graph(tmp_path / "m.onnx", {STATE: ("float", ["B", 3])}, ["B", 3], nodes, gives=gives))
    actions = act(policy, {STATE: np.array([1.0, -3.0, 256.0], np.float32)})
    assert actions.dtype.kind in "fi"
    np.testing.assert_array_equal(actions, [[[1, -3, 256]]])


@pytest.mark.parametrize("gives", ["bool", "string", "bfloat16"])
def test_outputs_that_are_no_numbers_are_refused_at_once(tmp_path: Path, gives: str) -> None:
    nodes = [("Cast", [STATE], ["action"], {"to": TYPES[gives]})]
    file = graph(tmp_path / "m.onnx", {STATE: ("float", ["B", 3])}, ["B", 3], nodes, gives=gives)
    with pytest.raises(ConfigError, match=rf"output action tensor\({gives}\)\[B, 3\] must be one of tensor"):
        OnnxPolicy(file)
