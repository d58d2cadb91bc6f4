"""What tasks a foreign benchmark has, and their shapes, asked of the interpreter that can build them.

``python -m robotrials.benchmarks.foreign_probe`` reads a benchmark's name and options from standard input, builds each
task, resets it, and answers on standard output with what it saw, as JSON.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robotrials.benchmarks import asking
from robotrials.benchmarks.loaded_code import own_code_digest
from robotrials.benchmarks.single_env import SingleEnv
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice
from robotrials.plan.task import ActionSpec, Feature

if TYPE_CHECKING:
    from robotrials.benchmarks.foreign import ForeignBenchmark

_TIMEOUT_S = 600


@dataclass(frozen=True)
class Scene:
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


def describe(benchmark: ForeignBenchmark) -> list[dict[str, Any]]:
    """What ``tasks`` needs to know, as JSON has it; builds everything."""
    found: list[dict[str, Any]] = []
    for suite, environments in benchmark.build().items():
        for number, environment in environments.items():
            name = suite if len(environments) == 1 else f"{suite}_{number}"
            found.append({"suite": suite, "id": number, "name": name, **_look(benchmark, SingleEnv(environment), name)})
    return found


def _look(benchmark: ForeignBenchmark, sim: SingleEnv, name: str) -> dict[str, Any]:
    space = sim.action_space
    if not all(hasattr(space, bound) for bound in ("low", "high")):
        raise ConfigError(f"{name}: its actions are {space}; right is a Box, a vector of numbers")
    low, high = (np.asarray(bound, dtype=float).reshape(-1).tolist() for bound in (space.low, space.high))
    seen = benchmark.reader(sim)(sim.reset(seed=0), sim.sentence(), None)
    spec = getattr(sim.innermost, "spec", None)
    steps = sim.attribute("_max_episode_steps") or getattr(spec, "max_episode_steps", None) or 0
    metadata = sim.attribute("metadata") or {}
    answer = {
        "instruction": sim.sentence(),
        "max_steps": int(steps),
        "fps": float(metadata.get("render_fps") or 0),
        "observations": {k: (v.shape, str(v.dtype)) for k, v in seen.items() if isinstance(v, np.ndarray)},
        "action": {"dim": len(low), "low": low, "high": high},
        "source": " ".join(filter(None, (benchmark.source(), own_code_digest()))),
    }
    sim.close()
    return answer


def ask(kind: str, options: Mapping[str, Any], python: str | None) -> tuple[Scene, ...]:
    """Build every task of the benchmark ``kind`` in ``python`` (None: this interpreter), in a process of its own.

    Asked again, it answers from memory.

    Raises:
        ConfigError: one cannot be built; the message is the environment's own.
    """
    return _ask(json.dumps({"type": kind, "options": dict(options)}, sort_keys=True, default=str), python)


@functools.lru_cache(maxsize=16)
def _ask(order: str, python: str | None) -> tuple[Scene, ...]:
    found = asking.ask(__name__, order, python, _flag(json.loads(order)), _TIMEOUT_S)
    return tuple(_scene(entry) for entry in found["scenes"])


def _flag(order: dict[str, Any]) -> str:
    return f"--env.type={order['type']}"


def _scene(entry: dict[str, Any]) -> Scene:
    action = entry.pop("action")
    features = {key: Feature(tuple(shape), dtype) for key, (shape, dtype) in entry.pop("observations").items()}
    spec = ActionSpec(action["dim"], tuple(action["low"]), tuple(action["high"]))
    return Scene(observations=features, action=spec, **entry)


def _describe(order: dict[str, Any]) -> dict[str, Any]:
    from robotrials.benchmarks.foreign import ForeignBenchmark
    from robotrials.benchmarks.registry import make_benchmark

    benchmark = make_benchmark(EnvChoice(order["type"], order["options"]))
    assert isinstance(benchmark, ForeignBenchmark)
    return {"scenes": describe(benchmark)}


if __name__ == "__main__":
    asking.answer(_describe, _flag)
