from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from robotrials.plan.config import PolicyChoice
from robotrials.policies.registry import make_policy

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

SCRIPT = Path(__file__).parents[2] / "examples" / "train_metaworld_bc.py"
STATE = "observation.environment_state"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_metaworld_bc", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_small_run_writes_a_policy_that_is_the_same_every_time(tmp_path: Path) -> None:
    pytest.importorskip("metaworld")
    made = []
    for workers in ("1", "2"):
        out = tmp_path / workers / "tiny.onnx"
        command = [sys.executable, str(SCRIPT), "--out", str(out), "--tasks", "reach-v3", "--workers", workers]
        command += ["--episodes", "3", "--rounds", "1", "--round_episodes", "2", "--epochs", "4", "--width", "32"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert f"wrote {out}" in done.stdout
        made.append(out)
    assert made[0].read_bytes() == made[1].read_bytes()
    spec = make_policy(PolicyChoice(path=str(made[0]))).spec()
    assert set(spec.observations) == {STATE, "task"}
    assert spec.action_dim == 4


def test_the_graph_computes_what_was_trained(script: ModuleType, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    tasks = ["reach-v3", "push-v3"]
    states = rng.uniform(-0.5, 1, (20, 39)).astype(np.float32)
    inputs = script.features(states)
    network = script.Network.new(inputs, len(tasks), 16, rng)
    task_ids = np.arange(20) % 2
    hidden = network.prepare(inputs, task_ids, len(tasks))
    for weight, bias in network.layers[:-1]:
        hidden = np.maximum(hidden @ weight + bias, 0)
    weight, bias = network.layers[-1]
    weight *= 20  # so that the clip is met
    expected = np.clip(hidden @ weight + bias, -1, 1)
    assert (abs(expected) == 1).any()
    script.export(network, tasks, tmp_path / "m.onnx")

    policy = make_policy(PolicyChoice(path=str(tmp_path / "m.onnx")))
    sentences = [script.task_spec(task).instruction for task in tasks]
    seen = [{STATE: state, "task": sentences[i]} for state, i in zip(states, task_ids, strict=True)]
    np.testing.assert_allclose(policy.act([None] * 20, seen)[:, 0], expected, atol=1e-5)  # type: ignore[list-item]


def test_the_gradients_are_those_of_the_loss(script: ModuleType) -> None:
    rng = np.random.default_rng(4)
    inputs = rng.standard_normal((8, 5)).astype(np.float32)
    network = script.Network.new(inputs, 1, 7, rng)
    network.layers = [(w.astype(float), b.astype(float)) for w, b in network.layers]
    rows, targets = network.prepare(inputs, np.zeros(8, int), 1).astype(float), rng.uniform(-0.9, 0.9, (8, 4))
    # Within the Huber width the loss is the squared error over the rows, summed over the action.
    loss, gradients = network.gradients(rows, targets, huber=1e9)
    step = 1e-6
    for parameter, gradient in zip(network.parameters, gradients, strict=True):
        parameter.flat[0] += step
        slope = (network.gradients(rows, targets, huber=1e9)[0] - loss) / step
        parameter.flat[0] -= step
        np.testing.assert_allclose(gradient.flat[0], slope * targets.shape[1], rtol=1e-3, atol=1e-6)


def test_two_tasks_of_one_sentence_are_refused(script: ModuleType) -> None:
    pytest.importorskip("metaworld")
    with pytest.raises(SystemExit, match="push-v3 and push-back-v3 are both told 'Push the puck to a goal'"):
        script.require_trainable(["push-v3", "push-back-v3"])
