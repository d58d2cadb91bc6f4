"""How many distinct ways of moving a set of aligned chunks holds.

The peaks of a mixture (``mixture.py``) are counted, and asked for again in resamples of the episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotrials.datasets.analysis.fitting import Fitters, FittingJob
from robotrials.datasets.analysis.mixture import Mixture

MIN_CHUNKS = 20
_AGREEMENT = 0.8
"""A mode counts when at least this share of the resamples has it too."""
_RESAMPLE_STARTS = 2


@dataclass(frozen=True)
class ModeCount:
    """The verdict on N chunks: ``modes`` that they and at least 80 % of the resamples have; ``resampled`` are the
    counts in each. ``fit`` None: fewer than 20 chunks, and nothing is said."""

    n: int
    fit: Mixture | None
    modes: int | None
    resampled: tuple[int, ...] = ()


def count_modes(
    features: np.ndarray, draws: int, seed: tuple[int, ...], fitters: Fitters, starts: int = 3
) -> ModeCount:
    """Count the modes of ``features`` (N, C, J), one chunk of each of N episodes.

    A resample keeps the distinct episodes of a draw with replacement: its copies would be modes to a mixture.
    """
    n = len(features)
    if n < MIN_CHUNKS:
        return ModeCount(n, None, None)
    (fit,) = fitters.fit([FittingJob(features, seed, starts)])
    rng = np.random.default_rng((*seed, 1))
    chosen = [np.unique(rng.integers(0, n, n)) for _ in range(draws if fit.modes > 1 else 0)]
    resampled = peaks([features[rows] for rows in chosen], (*seed, 2), fitters)
    modes = fit.modes
    while resampled and modes > 1 and np.mean(np.array(resampled) >= modes) < _AGREEMENT:
        modes -= 1
    return ModeCount(n, fit, modes, resampled)


def most_modes(found: Sequence[ModeCount]) -> ModeCount:
    """The count with the most modes, of several tasks; of the largest number of chunks where that is equal."""
    return max(found, key=lambda count: (count.modes or 0, count.n))


def peaks(samples: Sequence[np.ndarray], seed: tuple[int, ...], fitters: Fitters) -> tuple[int, ...]:
    """The peaks of each sample (N, C, J)."""
    jobs = [FittingJob(sample, (*seed, number), _RESAMPLE_STARTS) for number, sample in enumerate(samples)]
    return tuple(mixture.modes for mixture in fitters.fit(jobs))
