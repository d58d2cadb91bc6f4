"""Whether memory grows from episode to episode: the measure of check-env's ``memory``."""

from __future__ import annotations

import os
from collections.abc import Sequence

LEAST_EPISODES = 20
"""Fewer say nothing of a leak."""

_WARM_UP = 10
_ALLOWED_GROWTH_MB = 10.0


def resident_mb() -> float:
    """Memory of this process that is really there, in MB."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def growth_problem(sizes: Sequence[float]) -> str | None:
    """``sizes`` in MB, after each episode. A cache that fills grows at first; a leak grows in both halves."""
    begin, middle, end = sizes[_WARM_UP - 1], sizes[(_WARM_UP + len(sizes)) // 2], sizes[-1]
    grown, episodes = end - begin, len(sizes) - _WARM_UP
    if grown > max(_ALLOWED_GROWTH_MB, 0.02 * begin) and end - middle > 0.25 * grown:
        return f"{grown:.0f} MB more after {episodes} episodes, {grown / episodes:.1f} MB each; now {end:.0f} MB"
    return None


def growth(sizes: Sequence[float]) -> str:
    """What was measured, in words."""
    return f"{sizes[-1] - sizes[_WARM_UP - 1]:+.1f} MB over {len(sizes) - _WARM_UP} episodes, {sizes[-1]:.0f} MB in all"
