"""Two policies on the same episodes: which one wins where they differ, and by how much.

Of n pairs, the first policy alone succeeds in ``b``, the second alone in ``c``; pairs in which both do the same say
nothing about which is better, only how large a difference can be. Nothing here needs SciPy; the tests compare with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True)
class PairCounts:
    """Pairs of one task: ``n`` in all, ``b`` won by the first policy, ``c`` by the second."""

    n: int
    b: int
    c: int

    def __post_init__(self) -> None:
        if min(self.b, self.c) < 0 or self.b + self.c > self.n:
            raise ValueError(f"b and c must be at least 0 and together at most n, got n={self.n} b={self.b} c={self.c}")

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(self.n + other.n, self.b + other.b, self.c + other.c)

    @property
    def difference(self) -> float:
        """Rate of the first minus rate of the second, over these pairs; n must not be 0."""
        return (self.b - self.c) / self.n


def mcnemar(b: int, c: int) -> tuple[float, float]:
    """(exact, mid-p): two-sided p-values of McNemar's test, by the binomial distribution of b given b + c.

    The exact one never errs more often than it says; mid-p (Fagerland, Lydersen and Laake 2013, BMC Medical Research
    Methodology 13:91) counts half of the observed outcome's own probability and is less conservative.

    >>> mcnemar(8, 2)
    (0.109375, 0.0654296875)

    Raises:
        ValueError: a negative count.
    """
    if min(b, c) < 0:
        raise ValueError(f"counts must not be negative, got {b} and {c}")
    n, least = b + c, min(b, c)
    term = tail = 1  # whole numbers: binomial coefficients, exact however many pairs
    for k in range(least):
        term = term * (n - k) // (k + 1)
        tail += term
    whole = 1 << n
    # With b == c the two tails share their middle term: their sum is more than everything.
    return min(1.0, 2 * tail / whole), min(1.0, (2 * tail - term) / whole)


def agresti_min(counts: PairCounts, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of the paired difference of rates: Wald's after adding half a pair to each of the four cells.

    Agresti and Min (2005), "Simple improved confidence intervals for comparing matched proportions", Statistics in
    Medicine 24(5).

    Raises:
        ValueError: no pair.
    """
    _, low, high = weighted_difference([counts], confidence)
    return low, high


def weighted_difference(tasks: Sequence[PairCounts], confidence: float = 0.95) -> tuple[float, float, float]:
    """The mean over tasks of the paired difference, every task weighing the same: (difference, low, high).

    Agresti and Min's interval, stratified: the two pairs it adds are shared out over the tasks by their number of pairs
    (for one task it is the original), and the variance is the sum of the tasks' own, each over n - 1. A task of one
    pair says nothing of its own variance: it takes that of all pairs together.

    Raises:
        ValueError: no task has a pair.
    """
    tasks = [task for task in tasks if task.n]
    if not tasks:
        raise ValueError("no task has a pair of finished episodes: there is no difference")
    total = sum(tasks, PairCounts(0, 0, 0))
    pooled = _variance(total.b + 0.5, total.c + 0.5, total.n + 2.0)
    weight = 1.0 / len(tasks)
    centre = variance = 0.0
    for task in tasks:
        cell = 0.5 * task.n / total.n
        b, c, n = task.b + cell, task.c + cell, task.n + 4.0 * cell
        centre += weight * (b - c) / n
        if len(tasks) == 1:
            own = _variance(b, c, n)
        else:
            own = _variance(b, c, n) * task.n / (task.n - 1) if task.n > 1 else pooled
        variance += weight * weight * own / n
    reach = NormalDist().inv_cdf((1.0 + confidence) / 2.0) * math.sqrt(variance)
    difference = math.fsum(weight * task.difference for task in tasks)
    return difference, max(-1.0, min(centre - reach, difference)), min(1.0, max(centre + reach, difference))


def _variance(b: float, c: float, n: float) -> float:
    """Of the difference within one pair, from (fractional) counts."""
    return (b + c) / n - ((b - c) / n) ** 2
