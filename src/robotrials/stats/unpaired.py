"""Two policies on different episodes: Barnard's exact test, Newcombe's interval, and a test over several tasks.

Everything takes (successes, n) of the first policy, then of the second. NumPy alone; the tests compare with SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from robotrials.stats.intervals import Interval, wilson

Counts = tuple[int, int]
"""(successes, n)."""

_GRID = 400
"""Values of the unknown common rate at which the p-value is computed before the largest is refined."""
_CHUNK = 64


def barnard(first: Counts, second: Counts) -> float:
    """Two-sided p-value of Barnard's unconditional exact test with the pooled score (Wald) statistic.

    The rate that both have if nothing differs is unknown: the p-value is the largest over all its values (Barnard 1947;
    the statistic as in Suissa and Shuster 1985), found on a grid and refined around the best points. It is exact at any
    size: for each number of successes of the first, those of the second that are as extreme form two tails.

    >>> round(barnard((40, 50), (28, 50)), 6)
    0.012036

    Raises:
        ValueError: a sample without an episode, or successes outside 0..n.
    """
    (k1, n1), (k2, n2) = first, second
    for k, n in (first, second):
        if n < 1 or not 0 <= k <= n:
            raise ValueError(f"successes must lie between 0 and n >= 1, got {k} of {n}")
    observed = abs(float(_score(np.array(k1), np.array(k2), n1, n2)))
    if observed == 0.0:
        return 1.0
    low, high = _tails(observed, n1, n2)
    first_log, second_log = _log_choose(n1), _log_choose(n2)

    def p_values(rates: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [_p_values(rates[i : i + _CHUNK], low, high, first_log, second_log) for i in range(0, len(rates), _CHUNK)]
        )

    # Denser near 0 and 1, where the p-value of small samples changes fastest.
    rates = (1.0 - np.cos(np.linspace(0.0, math.pi, _GRID + 1)[1:-1])) / 2.0
    values = p_values(rates)
    best = float(values.max())
    for peak in np.argsort(values)[-3:]:
        left, right = rates[max(peak - 1, 0)], rates[min(peak + 1, len(rates) - 1)]
        for _ in range(4):
            finer = np.linspace(left, right, 33)
            found = p_values(finer)
            at = int(found.argmax())
            best = max(best, float(found[at]))
            left, right = finer[max(at - 1, 0)], finer[min(at + 1, 32)]
    return min(1.0, best)


def newcombe(first: Counts, second: Counts, confidence: float = 0.95) -> Interval:
    """Newcombe's hybrid score interval for the difference of rates, first minus second.

    Newcombe (1998), "Interval estimation for the difference between independent proportions", Statistics in Medicine
    17(8), method 10.
    """
    return square_and_add(
        (first[0] / first[1], *wilson(*first, confidence)), (second[0] / second[1], *wilson(*second, confidence))
    )


def square_and_add(first: tuple[float, float, float], second: tuple[float, float, float]) -> Interval:
    """The interval of a difference from two independent (estimate, low, high): Newcombe's way, for any estimates."""
    (p1, l1, u1), (p2, l2, u2) = first, second
    return (
        max(-1.0, p1 - p2 - math.hypot(p1 - l1, u2 - p2)),
        min(1.0, p1 - p2 + math.hypot(u1 - p1, p2 - l2)),
    )


def mantel_haenszel(tasks: Sequence[tuple[Counts, Counts]]) -> float:
    """Two-sided p-value that no task has a difference, against one in the same direction over the tasks.

    Mantel and Haenszel (1959) without continuity correction: each task is compared within itself, so that unequal
    numbers of episodes a task do not pass for a difference between the policies. 1 where no task can tell.
    """
    excess = variance = 0.0
    for (k1, n1), (k2, n2) in tasks:
        n, k = n1 + n2, k1 + k2
        if n1 == 0 or n2 == 0 or n < 2:
            continue
        excess += k1 - n1 * k / n
        variance += n1 * n2 * k * (n - k) / (n * n * (n - 1))
    if variance == 0.0:
        return 1.0
    return 2.0 * NormalDist().cdf(-abs(excess) / math.sqrt(variance))


def _score(k1: np.ndarray, k2: np.ndarray, n1: int, n2: int) -> np.ndarray:
    """Difference of rates over its standard error under one common rate; 0 where that is 0."""
    pooled = (k1 + k2) / (n1 + n2)
    spread = np.sqrt(pooled * (1.0 - pooled) * (1.0 / n1 + 1.0 / n2))
    difference = k1 / n1 - k2 / n2
    with np.errstate(divide="ignore", invalid="ignore"):
        score: np.ndarray = np.where(spread > 0, difference / np.where(spread > 0, spread, 1.0), 0.0)
    return score


def _tails(observed: float, n1: int, n2: int) -> tuple[np.ndarray, np.ndarray]:
    """For each k1 in 0..n1: k2 <= low[k1] and k2 >= high[k1] are as extreme as observed.

    The statistic falls as k2 grows, so each bound is found by bisection, for all k1 at once.
    """
    level = observed * (1.0 - 1e-12)  # equal statistics, computed along another way, must count as equal
    k1 = np.arange(n1 + 1)

    def first_where(condition: object) -> np.ndarray:
        low, high = np.zeros(n1 + 1, int), np.full(n1 + 1, n2 + 1)
        while (low < high).any():
            middle = (low + high) // 2
            holds = condition(_score(k1, np.minimum(middle, n2), n1, n2)) | (middle > n2)  # type: ignore[operator]
            high = np.where((low < high) & holds, middle, high)
            low = np.where((low < high) & ~holds, middle + 1, low)
        return low

    return first_where(lambda t: t < level) - 1, first_where(lambda t: t <= -level)


def _log_choose(n: int) -> np.ndarray:
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    choose: np.ndarray = logs[n] - logs - logs[::-1]
    return choose


def _p_values(
    rates: np.ndarray, low: np.ndarray, high: np.ndarray, first_log: np.ndarray, second_log: np.ndarray
) -> np.ndarray:
    """The probability of an outcome as extreme, for each common rate."""
    log_p, log_q = np.log(rates)[:, None], np.log1p(-rates)[:, None]

    def mass(log_choose: np.ndarray) -> np.ndarray:
        k = np.arange(len(log_choose))
        masses: np.ndarray = np.exp(log_choose + k * log_p + k[::-1] * log_q)
        return masses

    first, second = mass(first_log), mass(second_log)
    below = np.concatenate([np.zeros((len(rates), 1)), np.cumsum(second, axis=1)], axis=1)
    above = np.concatenate([np.cumsum(second[:, ::-1], axis=1)[:, ::-1], np.zeros((len(rates), 1))], axis=1)
    total: np.ndarray = np.sum(first * (below[:, low + 1] + above[:, high]), axis=1)
    return total


def fewer(first: Counts, second: Counts) -> float:
    """One-sided p-value of Fisher's exact test that the first has the lower rate: the probability of at most its
    successes, all successes being dealt out at random."""
    (k1, n1), (k2, n2) = first, second
    n, k = n1 + n2, k1 + k2

    def log_choose(a: int, b: int) -> float:
        return math.lgamma(a + 1) - math.lgamma(b + 1) - math.lgamma(a - b + 1)

    whole = log_choose(n, k)
    terms = (math.exp(log_choose(n1, i) + log_choose(n2, k - i) - whole) for i in range(max(0, k - n2), k1 + 1))
    return min(1.0, math.fsum(terms))
