"""Run directories written by hand: every outcome is said, so every figure is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import build_plan
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.results.ledger import Ledger
from robotrials.results.record import EndReason, EpisodeRecord
from robotrials.results.rundir import RunDirectory

Outcome = Callable[[EpisodeSpec], "bool | str | None"]
"""True, False, "error", or None for an episode that has not been run."""


def write_run(
    path: Path,
    outcome: Outcome,
    tasks: Sequence[str] = ("easy/push", "easy/reach"),
    n: int = 10,
    seed: int = 1000,
    groups: Sequence[str] = (),
    init_states: int | None = None,
    env: str = "toy",
    **more: Any,
) -> Path:
    """A run directory whose episode results are what ``outcome`` says; ``more`` goes into run.json."""
    specs = []
    for number, name in enumerate(tasks):
        suite, _, task = name.partition("/")
        group = groups[number] if groups else ""
        specs.append(
            TaskSpec(suite, task, number, f"do {task}", 200, 20.0, {}, ActionSpec(1, (-1.0,), (1.0,)), group=group)
        )
    plan = build_plan(specs, n, seed)
    described = {
        "format": 1,
        "identity": {"robotrials": "0.1.0", "plan": plan.hash(), "benchmark": {"name": "toy", "options": {}}},
        "config": {
            "policy": {"type": path.name, "path": None, "options": {}},
            "env": {"type": env, "options": {"task": "x"}},
            "eval": {"n_episodes": n},
            "seed": seed,
        },
        "plan": {
            "hash": plan.hash(),
            "n_episodes": len(plan),
            "tasks": [
                {
                    "suite": t.suite,
                    "task": t.name,
                    "id": t.id,
                    "group": t.group,
                    "instruction": t.instruction,
                    "max_steps": t.max_steps,
                    "control_hz": t.control_hz,
                    "n_init_states": init_states,
                }
                for t in specs
            ],
        },
        "mixed": [],
        "sessions": [],
        **more,
    }
    with RunDirectory(path) as run:
        run.write_run_json(described)
        with Ledger.create(run.ledger_path, {}) as ledger:
            records = [_record(spec, outcome(spec)) for spec in plan]
            ledger.record([(record, True) for record in records if record is not None])
    return path


def _record(spec: EpisodeSpec, outcome: bool | str | None) -> EpisodeRecord | None:
    if outcome is None:
        return None
    if outcome == "error":
        return EpisodeRecord(spec.id, 1, "w0", EndReason.ERROR, None, 3, None, None, error="RuntimeError: boom")
    end = EndReason.SUCCESS if outcome else EndReason.TIME_LIMIT
    steps = 50 + spec.index if outcome else spec.max_steps
    video = f"videos/{spec.suite}/{spec.task}/{spec.index}.mp4" if spec.index < 2 else None
    return EpisodeRecord(spec.id, 1, "w0", end, bool(outcome), steps, 1.5, 1.0, video=video)


def first(k: int) -> Outcome:
    """The first ``k`` episodes of every task succeed."""
    return lambda spec: spec.index < k
