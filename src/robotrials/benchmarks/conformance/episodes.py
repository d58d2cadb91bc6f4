"""What is wrong with how episodes begin and end: the measure of check-env's ``start``, ``success`` and ``ending``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robotrials.benchmarks.conformance.trace import Trace


def start_problem(traces: Sequence[Trace]) -> str | None:
    """All episodes are over, or solved, with their first step; None: not all are."""
    first = [trace.outcomes[0] for trace in traces]
    if any(1 in trace.odd for trace in traces):  # the promise of success is about these
        return None
    if all(success for *_, success in first):
        return f"{_all(traces)} solved at the first step: a scene must be unsolved after its reset"
    if all(terminated and not success for _, terminated, _, success in first):
        return f"{_all(traces)} ended by the first step, unsolved: a scene must begin in a valid state"
    return None


def lost(traces: Sequence[Trace]) -> int:
    """Episodes that were solved at some step, and not at the last that was played."""
    return sum(any(o[3] for o in trace.outcomes) and not trace.outcomes[-1][3] for trace in traces)


def ending_problem(seen: Sequence[Mapping[str, np.ndarray]]) -> str | None:
    """``seen`` are the first observation of an episode, the last but one, and the one after it had ended. One that has
    gone back to the first in all that had changed by then is that of another reset."""
    first, before, last = seen
    changed = {key: first[key] != before[key] for key in first if first[key].shape == before[key].shape}
    if not any(where.any() for where in changed.values()):
        return None
    back = all(np.array_equal(last[key][where], first[key][where]) for key, where in changed.items())
    if not back:
        return None
    keys = ", ".join(key for key, where in changed.items() if where.any())
    return (
        f"after the last step {keys} is again what it was after the reset: the environment resets itself in its last "
        "step and shows the next episode; its own last observation and info belong in info, as final_obs and final_info"
    )


def _all(traces: Sequence[Trace]) -> str:
    return f"all {len(traces)} episodes are"
