"""What is wrong with what a benchmark shows, against what its task declares: the measure of check-env's ``shapes``."""

from __future__ import annotations

from typing import Any

import numpy as np

from robotrials.benchmarks.conformance.trace import VIDEO, Trace
from robotrials.plan.task import Feature, TaskSpec


def entry_problem(value: Any, feature: Feature) -> str | None:
    """What one observed entry is that ``feature`` does not declare, in words that follow its key; None: all is well."""
    if feature.dtype == "str":
        return None
    if not isinstance(value, np.ndarray):
        return f"is a {type(value).__name__}, declared as {feature}"
    if value.shape != feature.shape or value.dtype != feature.dtype:
        return f"is {value.dtype}{list(value.shape)}, declared as {feature}"
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        odd = ~np.isfinite(value)
        word = "NaN" if np.isnan(value[odd]).all() else "NaN or infinity" if np.isnan(value).any() else "infinity"
        return f"holds {word} in {int(odd.sum())} of {value.size} numbers"
    return None


def picture_problem(picture: Any) -> str | None:
    """The same of what ``render()`` gives."""
    if not isinstance(picture, np.ndarray):
        return f"gives a {type(picture).__name__}, not uint8[H, W, 3]"
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        return f"gives {picture.dtype}{list(picture.shape)}, not uint8[H, W, 3]"
    return None


def keys_problem(found: set[str], declared: set[str]) -> str | None:
    """Which keys are missing, and which are too many."""
    if found == declared:
        return None
    parts = [f"lacks {', '.join(sorted(declared - found))}"] if declared - found else []
    parts += [f"has {', '.join(sorted(found - declared))} besides"] if found - declared else []
    return " and ".join(parts)


def trace_problem(trace: Trace, task: TaskSpec) -> str | None:
    """The first step of a playing that shows what is not declared."""
    states = {key for key in task.observations if key not in task.images}
    for step, seen in enumerate(trace.seen):
        found = set(seen) - {"task", VIDEO}
        problem = keys_problem(found - set(task.images), states)
        if problem:
            return f"step {step}: observe() {problem}"
        for key in sorted(found & set(task.observations)):
            problem = entry_problem(seen[key], task.observations[key])
            if problem:
                return f"step {step}: {key} {problem}"
        problem = picture_problem(seen[VIDEO]) if VIDEO in seen else None
        if problem:
            return f"step {step}: {VIDEO} {problem}"
    return None
