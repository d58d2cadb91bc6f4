"""What tasks a foreign benchmark has, and their shapes, asked of the interpreter that can build them.

``python -m robotrials.benchmarks.adapters.foreign.probe`` is given a benchmark's name and options, builds each task,
resets it, and answers with what it saw, as JSON (``asking``).
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from robotrials.benchmarks import asking
from robotrials.benchmarks.adapters.foreign.readers import Reader
from robotrials.benchmarks.adapters.foreign.single_env import SingleEnv
from robotrials.benchmarks.adapters.gym.answers import Step
from robotrials.benchmarks.adapters.gym.success import SuccessRule, known_success, missing_key, no_success, says_success
from robotrials.benchmarks.loaded_code import own_code_digest
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import ActionSpec, Feature

_TIMEOUT_S = 600
_SEED = 0
_PLAY_S = 60.0  # for a key of info that may come with the last step


class Described(Protocol):
    """What is asked of a ``ForeignBenchmark`` here."""

    config: Any

    @property
    def success_rule(self) -> SuccessRule | None: ...

    def build(self) -> Mapping[str, Mapping[int, Any]]: ...

    def reader(self, sim: SingleEnv) -> Reader: ...

    def source(self) -> str: ...


@dataclass(frozen=True)
class ProbedTask:
    """One task as it was seen. ``fps`` and ``max_steps`` are 0 where the environment names none."""

    suite: str
    id: int
    name: str
    instruction: str
    max_steps: int
    fps: float
    observations: Mapping[str, Feature]
    action: ActionSpec
    source: str


def describe(benchmark: Described, closing: ExitStack) -> list[dict[str, Any]]:
    """What ``tasks`` needs to know, as JSON has it; builds everything, and leaves it to ``closing`` to close it."""
    found: list[dict[str, Any]] = []
    for suite, environments in benchmark.build().items():
        for number, environment in environments.items():
            closing.callback(environment.close)
            name = suite if len(environments) == 1 else f"{suite}_{number}"
            found.append({"suite": suite, "id": number, "name": name, **_look(benchmark, SingleEnv(environment), name)})
    return found


def _look(benchmark: Described, sim: SingleEnv, name: str) -> dict[str, Any]:
    space = sim.action_space
    if not all(hasattr(space, bound) for bound in ("low", "high")):
        raise ConfigError(f"{name}: its actions are {space}; right is a Box, a vector of numbers")
    low, high = (np.asarray(bound, dtype=float).reshape(-1).tolist() for bound in (space.low, space.high))
    steps = int(sim.attribute("_max_episode_steps") or getattr(sim.spec, "max_episode_steps", None) or 0)
    reader = benchmark.reader(sim)
    first = sim.reset(_SEED)
    reader.require(first)
    seen = reader(first, sim.sentence(), None)
    metadata = sim.attribute("metadata") or {}
    instruction = sim.sentence()
    _require_success(sim, reader, benchmark.success_rule, benchmark.config.max_steps or steps, name)
    return {
        "instruction": instruction,
        "max_steps": steps,
        "fps": float(metadata.get("render_fps") or 0),
        "observations": {k: (v.shape, str(v.dtype)) for k, v in seen.items() if isinstance(v, np.ndarray)},
        "action": {"dim": len(low), "low": low, "high": high},
        "source": " ".join(filter(None, (benchmark.source(), own_code_digest()))),
    }


def _require_success(sim: SingleEnv, reader: Reader, rule: SuccessRule | None, limit: int, name: str) -> None:
    """Play until the environment says whether it has succeeded: mostly one step; at most an episode.

    Raises:
        ConfigError: it does not, not with the last step, either.
        ContractError: what a step returns is not Gymnasium's API, or not what its spaces declare.
    """
    sim.action_space.seed(_SEED)
    until, played = time.monotonic() + _PLAY_S, 0
    while True:
        step = _step(sim)
        played += 1
        if played == 1:
            reader.require(step.observation)
        ended = step.terminated or step.truncated
        if rule is None:
            known_success(step.info, ended)
            said = says_success(step.info)
        else:
            said = rule.key is None or rule.key in step.info
        if said:
            return
        # A key that was named may come with an end that random actions do not reach.
        if ended or (rule is None and limit and played >= limit):
            break
        if time.monotonic() > until or (limit and played >= limit):
            return
    if rule is None:
        raise no_success(step.info, name)
    raise missing_key(str(rule.key), step.info, name)


def _step(sim: SingleEnv) -> Step:
    try:
        return sim.step(sim.action_space.sample())
    except (TypeError, ValueError):
        sim.require_gymnasium(_SEED)
        raise


def ask(kind: str, options: Mapping[str, Any], python: str | None) -> tuple[ProbedTask, ...]:
    """Build every task of the benchmark ``kind`` in ``python`` (None: this interpreter), in a process of its own.

    Asked again, it answers from memory.

    Raises:
        ConfigError: one cannot be built; the message is the environment's own.
    """
    return _ask(json.dumps({"type": kind, "options": dict(options)}, sort_keys=True, default=str), python)


@functools.lru_cache(maxsize=16)
def _ask(order: str, python: str | None) -> tuple[ProbedTask, ...]:
    found = asking.ask(__name__, order, python, _flag(json.loads(order)), _TIMEOUT_S)
    return tuple(_scene(entry) for entry in found["scenes"])


def _flag(order: dict[str, Any]) -> str:
    return f"--env.type={order['type']}"


def _scene(entry: dict[str, Any]) -> ProbedTask:
    action = entry.pop("action")
    features = {key: Feature(tuple(shape), dtype) for key, (shape, dtype) in entry.pop("observations").items()}
    spec = ActionSpec(action["dim"], tuple(action["low"]), tuple(action["high"]))
    return ProbedTask(observations=features, action=spec, **entry)


def _describe(order: dict[str, Any], closing: ExitStack) -> dict[str, Any]:
    benchmark: Any = make_benchmark(EnvChoice(order["type"], order["options"]))
    return {"scenes": describe(benchmark, closing)}


if __name__ == "__main__":
    asking.answer(_describe, _flag)
