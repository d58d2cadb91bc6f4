"""The tasks of a LIBERO-plus checkout, read from its files: none of its code is imported.

A checkout has a catalogue (``benchmark/libero_suite_task_map.py``, one literal) and says of each task which of seven
dimensions it perturbs (``benchmark/task_classification.json``, of which two shapes are in use).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robotrials.benchmarks.adapters.libero.tasks import MAX_STEPS, LiberoTask
from robotrials.errors import ConfigError
from robotrials.plan.options import nearest

SUITES = ("libero_spatial", "libero_object", "libero_goal", "libero_10")

DIMENSIONS = {
    "Camera Viewpoints": "camera",
    "Robot Initial States": "robot",
    "Language Instructions": "language",
    "Light Conditions": "light",
    "Background Textures": "background",
    "Sensor Noise": "noise",
    "Objects Layout": "layout",
}
"""The names of the dimensions in the classification, and the short ones that results are grouped by."""

_OWN_STATES = ("_add_", "_level")  # layouts: stored apart, one state each


def library(root: Path) -> Path:
    """The folder ``libero/libero`` of the checkout at ``root``.

    Raises:
        ConfigError: it is no checkout of LIBERO-plus.
    """
    folder = root.expanduser().absolute() / "libero" / "libero"
    if not (folder / "benchmark" / "task_classification.json").is_file():
        raise ConfigError(
            f"--env.root={root} is no checkout of LIBERO-plus: there is no "
            "libero/libero/benchmark/task_classification.json; clone sylvestf/LIBERO-plus and give its folder"
        )
    return folder


def members(folder: Path, suite: str) -> tuple[LiberoTask, ...]:
    """All tasks of ``suite`` in the checkout's order, each with its dimension as ``group``.

    Raises:
        ConfigError: an unknown suite, or a task that the classification does not know.
    """
    if suite not in SUITES:
        raise ConfigError(f"libero_plus has no suite {suite}{nearest(suite, SUITES)}; it has {', '.join(SUITES)}")
    names = _catalogue(folder)[suite]
    classification = json.loads((folder / "benchmark" / "task_classification.json").read_text(encoding="utf-8"))
    groups = groups_of(classification[suite], len(names), suite)
    return tuple(
        LiberoTask(
            suite=suite,
            name=name,
            id=number,
            stem=name,
            instruction=_instruction(folder, suite, name),
            max_steps=MAX_STEPS[suite],
            n_init_states=1 if any(mark in name for mark in _OWN_STATES) else 50,
            group=groups[number],
        )
        for number, name in enumerate(names)
    )


def groups_of(entries: Any, count: int, suite: str) -> list[str]:
    """The short dimension of each of ``count`` tasks, from either shape of a suite's classification.

    One is a list of ``{"id": from 1, "category": ...}``, the other a map from the number, counted from 0 or from 1, to
    ``{"perturbation_type": ...}`` or ``{"category": ...}``.

    Raises:
        ConfigError: a task is missing, or its dimension is unknown.
    """
    if isinstance(entries, Mapping):
        first = 0 if "0" in entries else 1
        by_number = {int(key) - first: entry for key, entry in entries.items()}
    else:
        by_number = {int(entry["id"]) - 1: entry for entry in entries}
    groups = []
    for number in range(count):
        entry = by_number.get(number, {})
        dimension = str(entry.get("category") or entry.get("perturbation_type") or "")
        short = DIMENSIONS.get(dimension, dimension if dimension in DIMENSIONS.values() else "")
        if not short:
            raise ConfigError(
                f"task_classification.json says {dimension or 'nothing'!r} of task {number} of {suite}; "
                f"it should be one of {', '.join(DIMENSIONS)}"
            )
        groups.append(short)
    return groups


def states_file(folder: Path, suite: str, name: str) -> Path:
    """Where the initial states of a task are: of its own for a changed layout, else of the task it is a variant of.

    That is the longest stored name that its name continues, at an underscore.

    Raises:
        ConfigError: there is none.
    """
    own = folder / "init_files" / "libero_newobj" / suite / f"{name}.pruned_init"
    if own.is_file():
        return own
    states = folder / "init_files" / suite
    stem = name
    while stem:
        if (states / f"{stem}.pruned_init").is_file():
            return states / f"{stem}.pruned_init"
        stem = stem.rpartition("_")[0]
    raise ConfigError(f"no file in {states} holds initial states for {name}; run with --env.init_states=false")


def bddl_file(folder: Path, suite: str, name: str) -> Path:
    """The scene of a task. View, start of the arm and noise are not in a file: they are numbers in the task's name."""
    return folder / "bddl_files" / suite / f"{name.split('_view_')[0]}.bddl"


def _instruction(folder: Path, suite: str, name: str) -> str:
    """A rewritten sentence is in the BDDL file. Else it is the words of the name, without what tells the variant."""
    if "_language_" in name:
        text = bddl_file(folder, suite, name).read_text(encoding="utf-8")
        found = re.search(r"\(:language\s+([^)]*)\)", text)
        if not found:
            raise ConfigError(f"{bddl_file(folder, suite, name)} has no (:language ...)")
        return found.group(1).strip()
    stem = re.split(r"_(?:table|tb|light|add|view)_\d|_(?:moved_)?level\d", name)[0]
    return re.sub(r"^[A-Z_]+SCENE\d+_", "", stem).replace("_", " ")


def _catalogue(folder: Path) -> dict[str, list[str]]:
    source = (folder / "benchmark" / "libero_suite_task_map.py").read_text(encoding="utf-8")
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign):
            catalogue: dict[str, list[str]] = ast.literal_eval(statement.value)
            return catalogue
    raise ConfigError(f"{folder / 'benchmark' / 'libero_suite_task_map.py'} holds no list of tasks")
