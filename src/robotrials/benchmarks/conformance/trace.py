"""Plays an episode and keeps all that it shows, to be compared with another playing: the measure of check-env.

``python -m robotrials.benchmarks.conformance.trace JSON`` does it in a fresh process and leaves the traces in a file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from robotrials.benchmarks.base import Benchmark, Env
from robotrials.benchmarks.conformance.failing_env import FailingEnv
from robotrials.benchmarks.registry import make_benchmark
from robotrials.benchmarks.scoring import scoring_of
from robotrials.errors import ConfigError, NoPictureError
from robotrials.plan.config import EnvChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.global_random import seed_global_generators
from robotrials.plan.plan import Plan, build_plan
from robotrials.plan.task import ActionSpec, TaskSpec

Looks = Literal["some", "always", "never"]
VIDEO = "render()"
"""How the picture for the video is called among the images."""

_HELD_STEPS = 4
_SEED = 1000


@dataclass
class Trace:
    """What one playing showed. ``seen[t]`` are the entries observed after ``t`` steps, by key, images among them on
    some steps; ``outcomes[t]`` is what step ``t + 1`` returned: reward, terminated, truncated, success."""

    seen: list[dict[str, np.ndarray]] = field(default_factory=list)
    outcomes: list[tuple[float, bool, bool, bool | None]] = field(default_factory=list)
    odd: dict[int, str] = field(default_factory=dict)
    """Step to a success that was neither a bool nor None, as it was written."""

    @property
    def steps(self) -> int:
        return len(self.outcomes)


def first_difference(a: Trace, b: Trace) -> str | None:
    """Where two playings of one episode part, and by how much; None where they are bit-identical in all that both
    have looked at."""
    for step in range(max(len(a.seen), len(b.seen))):
        if step < min(len(a.seen), len(b.seen)):
            for key in sorted(a.seen[step].keys() & b.seen[step].keys()):
                words = _array_difference(a.seen[step][key], b.seen[step][key])
                if words:
                    return f"step {step}: {key} {words}"
        if step >= min(a.steps, b.steps):
            break
        words = _outcome_difference(a.outcomes[step], b.outcomes[step])
        if words:
            return f"step {step + 1}: {words}"
    if a.steps != b.steps:
        return f"one playing ends after {a.steps} steps, the other after {b.steps}"
    return None


def _array_difference(a: np.ndarray, b: np.ndarray) -> str | None:
    if a.dtype.kind == "U" or b.dtype.kind == "U":
        return None if str(a) == str(b) else f"is {str(a)!r}, and {str(b)!r}"
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"is {a.dtype}{list(a.shape)}, and {b.dtype}{list(b.shape)}"
    same = (a == b) | ((a != a) & (b != b))
    if np.all(same):
        return None
    amount = float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64))[~same]))
    return f"differs by up to {amount:.3g} in {int(np.sum(~same))} of {same.size} numbers"


def _outcome_difference(a: tuple[Any, ...], b: tuple[Any, ...]) -> str | None:
    if a[0] != b[0] and not (np.isnan(a[0]) and np.isnan(b[0])):
        return f"the reward is {a[0]!r}, and {b[0]!r}"
    for name, left, right in zip(("terminated", "truncated", "success"), a[1:], b[1:], strict=True):
        if left != right:
            return f"{name} is {left}, and {right}"
    return None


def plan_of(benchmark: Benchmark, episodes: int) -> Plan:
    """The episodes that are played: those that ``robotrials eval`` would play with its own seed."""
    return build_plan(benchmark.tasks(), episodes, _SEED)


def draw_actions(space: ActionSpec, episode: EpisodeSpec) -> Iterator[np.ndarray]:
    """Endless actions (D,) float64 within the bounds, each held for some steps: a motion goes further."""
    rng = episode.rng("check-env")
    low = np.clip(np.asarray(space.low, float), -1e3, 1e3)
    high = np.clip(np.asarray(space.high, float), -1e3, 1e3)
    while True:
        action = rng.uniform(low, high)
        for _ in range(_HELD_STEPS):
            yield action.copy()


def play(
    env: Env, task: TaskSpec, episode: EpisodeSpec, steps: int, looks: Looks = "some", expert: bool = False
) -> Trace:
    """Reset ``env`` to ``episode`` and play up to ``steps`` steps.

    ``some`` looks at the state after every step and at all pictures now and then; ``always`` at everything, and at the
    state twice; ``never`` looks once, at the end. The actions are the scripted expert's where there is one and
    ``expert`` is set.
    """
    seed_global_generators(episode)
    env.reset(episode)
    trace = Trace()
    script = _expert_of(env) if expert else None
    actions = draw_actions(task.action, episode)
    pictures = {0, 1, steps // 2, steps}
    for step in range(steps):
        trace.seen.append(_look(env, task, looks, step in pictures))
        action = script.act() if script else next(actions)
        outcome = env.step(np.asarray(action))
        flags = (bool(outcome.terminated), bool(outcome.truncated))
        success = None if outcome.success is None else bool(outcome.success)
        if not isinstance(outcome.success, (bool, np.bool_)) and outcome.success is not None:
            trace.odd[step + 1] = repr(outcome.success)
        trace.outcomes.append((float(outcome.reward), *flags, success))
        if any(flags):
            break
    trace.seen.append(_look(env, task, "some", True))
    return trace


def _expert_of(env: Env) -> Any:
    try:
        return env.expert()
    except ConfigError:
        return None


def _look(env: Env, task: TaskSpec, looks: Looks, pictures: bool) -> dict[str, np.ndarray]:
    if looks == "never":
        return {}
    if looks == "always":
        env.observe(())
        if not pictures:
            env.observe(task.images)
            picture_of(env)
    seen = env.observe(task.images if pictures else ())
    kept = {key: np.array(value) for key, value in seen.items()}
    if pictures and task.record_key is None:  # else it equals that camera's picture, which has a check of its own
        picture = picture_of(env)
        if picture is not None:
            kept[VIDEO] = np.array(picture)
    return kept


def picture_of(env: Env) -> Any:
    """What ``render`` gives; None where it says that there is nothing, which the promise ``picture`` is about."""
    try:
        return env.render()
    except NoPictureError:
        return None


def save(traces: Sequence[Trace], path: Path) -> None:
    """Arrays and text alone, nothing that needs pickle."""
    arrays: dict[str, np.ndarray] = {}
    for number, trace in enumerate(traces):
        success = [-1 if outcome[3] is None else int(outcome[3]) for outcome in trace.outcomes]
        arrays[f"{number}|outcomes"] = np.array(
            [(*outcome[:3], flag) for outcome, flag in zip(trace.outcomes, success, strict=True)], np.float64
        ).reshape(-1, 4)
        for step, seen in enumerate(trace.seen):
            for key, value in seen.items():
                arrays[f"{number}|{step}|{key}"] = value
    with open(path, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def load(path: Path, count: int) -> list[Trace]:
    """What ``save`` has written."""
    traces = [Trace() for _ in range(count)]
    with np.load(path, allow_pickle=False) as arrays:
        for number, trace in enumerate(traces):
            for reward, terminated, truncated, success in arrays[f"{number}|outcomes"]:
                flag = None if success < 0 else bool(success)
                trace.outcomes.append((float(reward), bool(terminated), bool(truncated), flag))
            trace.seen = [{} for _ in range(trace.steps + 1)]
        for name in arrays.files:
            number_word, _, rest = name.partition("|")
            step, _, key = rest.partition("|")
            if key:
                traces[int(number_word)].seen[int(step)][key] = arrays[name]
    return traces


def main() -> None:
    """Build the first task, play episodes in the order asked for, keep their traces, close: what a worker does, and as
    it ends, without tearing down the interpreter."""
    order = json.loads(sys.argv[1])
    benchmark = make_benchmark(EnvChoice(order["type"], order["options"]))
    plan = plan_of(benchmark, order["episodes"])
    task = plan.tasks[order["task"]]
    own = [episode for episode in plan if plan.task_of(episode) is task]
    env = FailingEnv(lambda: benchmark.make(task), scoring_of(benchmark))
    traces = [
        play(env, task, own[number], order["steps"], expert=order["expert"] and number % 2 == 0)
        for number in order["numbers"]
    ]
    env.close()
    save(traces, Path(order["path"]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
