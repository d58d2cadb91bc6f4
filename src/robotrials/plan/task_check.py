"""Whether the tasks that a benchmark lists can be run: numbers that make sense, and cameras that are pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

CAMERAS = ("observation.image", "observation.images.")
"""A key is a camera's if it is the first, or begins with the second."""
_MAX_STEPS = 10**9
_LEAST_HZ, _MOST_HZ = 0.01, 100_000.0


def checked(tasks: Sequence[TaskSpec]) -> list[TaskSpec]:
    """``tasks`` with plain Python numbers where a benchmark took them from NumPy.

    Raises:
        ConfigError: a task that cannot be run; the message names it, the field, and what would be right.
    """
    return [_checked(task) for task in tasks]


def _checked(task: TaskSpec) -> TaskSpec:
    steps = _whole(task, "max_steps", task.max_steps, 1, _MAX_STEPS)
    hz = _number(task, "control_hz", task.control_hz)
    if not _LEAST_HZ <= hz <= _MOST_HZ:
        _refuse(task, "control_hz", hz, f"between {_LEAST_HZ:g} and {_MOST_HZ:,.0f}")
    stored = task.n_init_states
    if stored is not None:
        stored = _whole(task, "n_init_states", stored, 1, _MAX_STEPS)
    for key, feature in task.observations.items():
        _check_camera(task, key, feature)
    return replace(
        task,
        id=_whole(task, "id", task.id, 0, _MAX_STEPS),
        max_steps=steps,
        control_hz=hz,
        n_init_states=stored,
        observations={
            key: replace(feature, shape=tuple(_whole(task, f"shape of {key}", n, 0, _MAX_STEPS) for n in feature.shape))
            for key, feature in task.observations.items()
        },
        action=_action(task),
    )


def _action(task: TaskSpec) -> ActionSpec:
    action = task.action
    dim = _whole(task, "action.dim", action.dim, 1, _MAX_STEPS)
    low, high = (tuple(map(_python, bounds)) for bounds in (action.low, action.high))
    if not len(low) == len(high) == dim:
        raise ConfigError(
            f"{task.name}: action.dim is {dim}, with {len(low)} lower and {len(high)} upper bounds; each entry has one "
            "of each, which may be infinite"
        )
    for place, (least, most) in enumerate(zip(low, high, strict=True)):
        if not least <= most:
            raise ConfigError(f"{task.name}: the bounds of entry {place} of the action are {least} and {most}")
    return ActionSpec(dim, low, high)


def _check_camera(task: TaskSpec, key: str, feature: Feature) -> None:
    is_camera = key == CAMERAS[0] or key.startswith(CAMERAS[1])
    if is_camera and not (feature.is_image and feature.shape[2] in (1, 3, 4)):
        raise ConfigError(
            f"{task.name} declares the camera {key} as {feature}; a camera is uint8 [H, W, C] with 1, 3 or 4 channels. "
            "Convert it in the benchmark, or give other numbers (depth) another key, such as observation.depth"
        )


def _whole(task: TaskSpec, field: str, value: Any, least: int, most: int) -> int:
    number = _number(task, field, value)
    if number != int(number) or not least <= number <= most:
        _refuse(task, field, value, f"a whole number between {least} and {most:,}")
    return int(number)


def _number(task: TaskSpec, field: str, value: Any) -> float:
    number = _python(value)
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        _refuse(task, field, value, "a finite number")
    found: float = number
    return found


def _python(value: Any) -> Any:
    """NumPy's number as Python's; anything else, whole numbers too, as it is: plans are compared by how they are
    written."""
    return value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value


def _refuse(task: TaskSpec, field: str, value: Any, right: str) -> None:
    raise ConfigError(f"{task.name}: {field} is {value!r:.80}, but must be {right}")
