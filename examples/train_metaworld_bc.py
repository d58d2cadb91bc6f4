"""Train the policy that robotrials ships as ``builtin:metaworld-bc``: one small network for the ten tasks of MT10.

    pip install "robotrials[metaworld,onnx] @ git+https://github.com/OWNER/robotrials" onnx
    python examples/train_metaworld_bc.py --out my.onnx
    robotrials eval --policy.path=my.onnx --env.type=metaworld --env.task=reach-v3,push-v3

Behaviour cloning of Meta-World's scripted experts. The first episodes are the expert's, pushed about by noise; then
come rounds in which the learner and the expert take turns at the controls (DAgger: Ross et al., AISTATS 2011). What is
learned is always the expert's own action for the state at hand. A few minutes on two cores; the same numbers every time
on one machine. Seeds start at 100000, far from those of an evaluation (``--seed``, 1000 by default).
"""

from __future__ import annotations

import os

from robotrials.machine.threads import thread_limits

if __name__ == "__main__":
    os.environ.update(thread_limits(1))  # before numpy: more threads would fight the simulators and reorder sums

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice, pairwise
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from robotrials.benchmarks.base import Benchmark, Env
from robotrials.benchmarks.registry import benchmark_class, make_benchmark, require_installed
from robotrials.machine.threads import available_cores
from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy
from robotrials.policies.registry import make_policy

MT10 = (
    "reach-v3,push-v3,pick-place-v3,door-open-v3,drawer-open-v3,drawer-close-v3,"
    "button-press-topdown-v3,peg-insert-side-v3,window-open-v3,window-close-v3"
)
STATE = "observation.environment_state"
STATE_DIM, ACTION_DIM = 39, 4
HAND, OBJECT, GOAL = 0, 4, 36  # where in the state the three positions begin
FIRST_SEED = 100_000
NOISE = 0.4  # of the demonstrations, in units of the action's range
TURN_STEPS = 25  # steps at the controls before learner and expert draw again whose turn it is

# --- collecting -------------------------------------------------------------------------------------------------------


class Job(NamedTuple):
    """One episode to collect; ``learner`` shares the controls with the expert, None leaves them to the expert."""

    task: str
    seed: int
    learner: Path | None


class Demonstration(NamedTuple):
    """States (T, 39) that were met and the expert's actions (T, 4) there, float32, and whether the task was done."""

    task: str
    states: np.ndarray
    actions: np.ndarray
    success: bool


def task_spec(name: str) -> TaskSpec:
    return metaworld(name).tasks()[0]


def metaworld(task: str) -> Benchmark:
    return make_benchmark(EnvChoice("metaworld", {"task": task, "obs_type": "state"}))


@cache
def simulator(task: str) -> Env:
    """The simulator of a task, kept in this process: building one takes as long as many episodes."""
    return metaworld(task).make(task_spec(task))


@lru_cache(maxsize=1)
def load(path: Path) -> Policy:
    return make_policy(PolicyChoice(path=str(path)))


def collect(job: Job) -> Demonstration:
    """Play one episode until success or the step limit."""
    task, env = task_spec(job.task), simulator(job.task)
    episode = EpisodeSpec(0, task.suite, task.name, 0, job.seed, None, task.max_steps)
    env.reset(episode)
    expert, rng = env.expert(), episode.rng("demonstration")
    policy = load(job.learner) if job.learner else None
    push, learners_turn, success = np.zeros(ACTION_DIM), False, False
    states, actions = [], []
    for step in range(task.max_steps):
        observation = env.observe(())
        action = expert.act()
        states.append(observation[STATE])
        actions.append(action.astype(np.float32))
        if step % TURN_STEPS == 0:
            learners_turn = policy is not None and rng.random() < 0.5
        if step % 10 == 0:  # half of the time a push that lasts: jitter alone averages out
            push = NOISE * rng.standard_normal(ACTION_DIM) * (rng.random() < 0.5)
        if policy is None:
            action = action + push + 0.1 * NOISE * rng.standard_normal(ACTION_DIM)
        elif learners_turn:
            action = policy.act([policy.new_session(episode, task)], [observation])[0, 0]
        outcome = env.step(np.clip(action, -1, 1))
        if outcome.success:
            success = True
            break
    return Demonstration(job.task, np.stack(states), np.stack(actions), success)


# --- the network ------------------------------------------------------------------------------------------------------


def differences() -> np.ndarray:
    """(39, 9): a state times this is object - hand, goal - object, goal - hand."""
    matrix = np.zeros((STATE_DIM, 9), np.float32)
    for column, (to, start) in enumerate(((OBJECT, HAND), (GOAL, OBJECT), (GOAL, HAND))):
        for axis in range(3):
            matrix[to + axis, 3 * column + axis] = 1
            matrix[start + axis, 3 * column + axis] = -1
    return matrix


def features(states: np.ndarray) -> np.ndarray:
    """(N, 57) float32: the state, the differences, and the differences with their last 5 cm magnified.

    Success is decided by centimetres (reaching: the fingers within 5 of the goal), which drown in the whole range.
    """
    apart = states @ differences()
    return np.concatenate([states, apart, np.clip(apart * np.float32(20), -1, 1)], axis=1)


@dataclass
class Network:
    """Normalisation of the features, then layers (weight, bias) with ReLU between; the last is clipped to [-1, 1]."""

    mean: np.ndarray
    scale: np.ndarray
    layers: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def new(cls, inputs: np.ndarray, n_tasks: int, width: int, rng: np.random.Generator) -> Network:
        sizes = [inputs.shape[1] + n_tasks, width, width, width, ACTION_DIM]
        layers = []
        for n_in, n_out in pairwise(sizes):
            weight = rng.standard_normal((n_in, n_out)) * np.sqrt(2 / n_in)
            layers.append((weight.astype(np.float32), np.zeros(n_out, np.float32)))
        layers[-1][0][:] *= 0.1  # begin within the range of the actions
        # Entries that never vary in the data keep a scale, so that they cannot explode where they do.
        return cls(inputs.mean(0), 1 / (inputs.std(0) + np.float32(0.01)), layers)

    def prepare(self, inputs: np.ndarray, task_ids: np.ndarray, n_tasks: int) -> np.ndarray:
        one_hot = np.eye(n_tasks, dtype=np.float32)[task_ids]
        return np.concatenate([(inputs - self.mean) * self.scale, one_hot], axis=1)

    @property
    def parameters(self) -> list[np.ndarray]:
        return [array for layer in self.layers for array in layer]

    def gradients(self, rows: np.ndarray, targets: np.ndarray, huber: float = 0.1) -> tuple[float, list[np.ndarray]]:
        """Mean squared error, and the gradients of the Huber loss in the order of ``parameters``."""
        activations = [rows]
        for weight, bias in self.layers[:-1]:
            activations.append(np.maximum(activations[-1] @ weight + bias, 0))
        weight, bias = self.layers[-1]
        output = activations[-1] @ weight + bias
        error = output - targets
        error[((targets >= 1) & (output > 1)) | ((targets <= -1) & (output < -1))] = 0  # the clip forgives these
        loss = float(np.mean(error**2))
        back = np.clip(error, -huber, huber) * np.float32(2 / len(rows))
        found: list[np.ndarray] = []
        for (weight, _), before in zip(reversed(self.layers), reversed(activations), strict=True):
            found[:0] = [before.T @ back, back.sum(0)]
            back = (back @ weight.T) * (before > 0)
        return loss, found


class Adam:
    """Kingma and Ba, ICLR 2015, in place on ``parameters``."""

    def __init__(self, parameters: list[np.ndarray]) -> None:
        self.parameters, self.step = parameters, 0
        self.first = [np.zeros_like(p) for p in parameters]
        self.second = [np.zeros_like(p) for p in parameters]

    def update(self, gradients: Sequence[np.ndarray], rate: float) -> None:
        self.step += 1
        rate *= np.sqrt(1 - 0.999**self.step) / (1 - 0.9**self.step)
        for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= np.float32(rate) * m / (np.sqrt(v) + np.float32(1e-8))


def train(
    network: Network | None,
    data: Sequence[Demonstration],
    tasks: Sequence[str],
    settings: argparse.Namespace,
    epochs: int,
) -> Network:
    """Fit ``network`` (None: a new one) to all of ``data``, every task weighing the same."""
    rng = np.random.default_rng(settings.seed)
    inputs = features(np.concatenate([d.states for d in data]))
    targets = np.concatenate([d.actions for d in data])
    task_ids = np.concatenate([np.full(len(d.states), tasks.index(d.task)) for d in data])
    network = network or Network.new(inputs, len(tasks), settings.width, rng)
    rows = network.prepare(inputs, task_ids, len(tasks))
    by_task, counts = np.argsort(task_ids, kind="stable"), np.bincount(task_ids)
    starts = np.cumsum(counts) - counts
    n_steps, loss = max(1, epochs * len(rows) // settings.batch), 0.0
    adam = Adam(network.parameters)
    for step in range(n_steps):
        drawn = rng.integers(len(tasks), size=settings.batch)
        batch = by_task[starts[drawn] + (rng.random(settings.batch) * counts[drawn]).astype(int)]
        now, gradients = network.gradients(rows[batch], targets[batch])
        loss += (now - loss) / min(step + 1, 100)
        cosine = 0.5 * (1 + np.cos(np.pi * step / n_steps))
        adam.update(gradients, settings.rate * cosine * min(1, (step + 1) / 100))
    print(f"  {len(rows)} steps of demonstrations, {n_steps} updates, squared error {loss:.4f}", flush=True)
    return network


# --- the file ---------------------------------------------------------------------------------------------------------


def export(network: Network, tasks: Sequence[str], out: Path) -> None:
    """Write the network as an ONNX graph from ``observation.environment_state`` and ``task`` to ``action``.

    The sentence becomes a one-hot vector inside the graph; a sentence that was not trained on becomes zeros.
    """
    sentences = [task_spec(name).instruction for name in tasks]
    constants = {"differences": differences(), "zoom": np.float32(20), "mean": network.mean, "scale": network.scale}
    nodes = [
        helper.make_node("MatMul", [STATE, "differences"], ["apart"]),
        helper.make_node("Mul", ["apart", "zoom"], ["zoomed"]),
        helper.make_node("Clip", ["zoomed", "low", "high"], ["near"]),
        helper.make_node("Concat", [STATE, "apart", "near"], ["features"], axis=1),
        helper.make_node("Sub", ["features", "mean"], ["centred"]),
        helper.make_node("Mul", ["centred", "scale"], ["normal"]),
        helper.make_node("OneHotEncoder", ["task"], ["one_hot"], domain="ai.onnx.ml", cats_strings=sentences, zeros=1),
        helper.make_node("Concat", ["normal", "one_hot"], ["hidden0"], axis=1),
    ]
    constants |= {"low": np.float32(-1), "high": np.float32(1)}
    for i, (weight, bias) in enumerate(network.layers):
        constants |= {f"weight{i}": weight, f"bias{i}": bias}
        nodes.append(helper.make_node("Gemm", [f"hidden{i}", f"weight{i}", f"bias{i}"], [f"linear{i}"]))
        if i + 1 < len(network.layers):
            nodes.append(helper.make_node("Relu", [f"linear{i}"], [f"hidden{i + 1}"]))
    nodes.append(helper.make_node("Clip", [f"linear{len(network.layers) - 1}", "low", "high"], ["action"]))
    graph = helper.make_graph(
        nodes,
        "metaworld_bc",
        [
            helper.make_tensor_value_info(STATE, TensorProto.FLOAT, ["B", STATE_DIM]),
            helper.make_tensor_value_info("task", TensorProto.STRING, ["B"]),
        ],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["B", ACTION_DIM])],
        [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants.items()],
    )
    # Old versions on purpose: onnxruntime 1.17 reads them.
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, producer_name="train_metaworld_bc.py", opset_imports=opsets, ir_version=8)
    helper.set_model_props(model, {"robotrials": json.dumps({"n_action_steps": 1}), "tasks": ",".join(tasks)})
    onnx.checker.check_model(model)
    onnx.save(model, str(out))


# --- the recipe -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    settings = read_arguments(arguments)
    tasks = settings.tasks.split(",")
    require_trainable(tasks)
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    seeds = iter(range(FIRST_SEED, FIRST_SEED + settings.episodes + settings.rounds * settings.round_episodes))
    began = time.monotonic()
    with get_context("spawn").Pool(settings.workers) as pool, TemporaryDirectory() as scratch:
        data = play(pool, tasks, list(islice(seeds, settings.episodes)), None)
        network: Network | None = None
        for i in range(settings.rounds):
            network = train(network, data, tasks, settings, max(1, settings.epochs // 4))
            learner = Path(scratch) / f"round{i}.onnx"
            export(network, tasks, learner)
            data += play(pool, tasks, list(islice(seeds, settings.round_episodes)), learner)
    # Afresh, not from the last round's network, so that early and late data are learned from alike.
    export(train(None, data, tasks, settings, settings.epochs), tasks, settings.out)
    print(f"wrote {settings.out} ({settings.out.stat().st_size / 1e6:.2f} MB) after {time.monotonic() - began:.0f} s")
    print(f"try it: robotrials eval --policy.path={settings.out} --env.type=metaworld --env.task={settings.tasks}")


def require_trainable(tasks: Sequence[str]) -> None:
    """Stop early where Meta-World is missing, or where two tasks share the sentence that is to tell them apart."""
    require_installed(benchmark_class("metaworld"))
    by_sentence: dict[str, str] = {}
    for task in tasks:
        sentence = task_spec(task).instruction
        if sentence in by_sentence:
            raise SystemExit(f"{by_sentence[sentence]} and {task} are both told {sentence!r}: leave one out of --tasks")
        by_sentence[sentence] = task


def play(pool: Pool, tasks: Sequence[str], seeds: Sequence[int], learner: Path | None) -> list[Demonstration]:
    """One episode of every task for every seed, in that order whoever played it."""
    jobs = [Job(task, seed, learner) for task in tasks for seed in seeds]
    played = pool.map(collect, jobs, chunksize=max(1, len(seeds) // 4))
    done = [f"{task} {sum(d.success for d in played if d.task == task)}" for task in tasks]
    print(
        f"{'shared controls' if learner else 'expert with noise'}, done of {len(seeds)}: {', '.join(done)}", flush=True
    )
    return played


def read_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the .onnx file to write")
    parser.add_argument("--tasks", default=MT10, help="comma-separated Meta-World tasks (MT10)")
    parser.add_argument("--episodes", type=int, default=30, help="noisy demonstrations of each task")
    parser.add_argument("--rounds", type=int, default=5, help="rounds in which the learner shares the controls")
    parser.add_argument("--round_episodes", type=int, default=20, help="episodes of each task in a round")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data at the end; a quarter each round")
    parser.add_argument("--width", type=int, default=256, help="units of each of the three hidden layers")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=1e-3, help="peak learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and batches; simulators have their own")
    parser.add_argument("--workers", type=int, default=available_cores(), help="processes that simulate")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
