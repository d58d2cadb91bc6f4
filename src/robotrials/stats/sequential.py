"""Numbers that stay valid however often one looks: a paired test by betting, and a confidence sequence for a rate.

An interval or a p-value made for a fixed number of episodes is wrong too often when one looks after every episode and
stops when it pleases: with exact McNemar after each of 50 pairs of equal policies, 11.8 % of runs "show" a difference
at 5 %. Both methods here hold at all times together (Ville 1939; Robbins 1970, "Statistical methods related to the law
of the iterated logarithm", Annals of Mathematical Statistics 41(5)).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from robotrials.stats.intervals import Interval


def paired_e_value(b: int, c: int, a: float = 1.0) -> float:
    """Evidence that the policies differ, after ``b`` wins of one and ``c`` of the other: at least 20 decides at 5 %.

    The wealth of one who began with 1 and bets on each discordant pair against equal odds, with a Beta(a, a) mixture of
    stakes: E = 2^(b+c) B(b+a, c+a) / B(a, a). Under equal policies it exceeds 1/level at any time with probability at
    most ``level``. Infinite where it passes the range of a float.

    >>> paired_e_value(7, 0)
    16.0...
    """
    log_e = (b + c) * math.log(2.0) + _log_beta(b + a, c + a) - _log_beta(a, a)
    return math.exp(log_e) if log_e < 700.0 else math.inf


@dataclass
class PairedTest:
    """Fed pair by pair. ``anytime_p`` is 1 / the largest E so far: valid whenever one looks, and never rises."""

    level: float = 0.05
    b: int = 0
    c: int = 0
    largest: float = 1.0

    def add(self, first: bool, second: bool) -> None:
        self.b += first and not second
        self.c += second and not first
        self.largest = max(self.largest, self.e_value)

    @property
    def e_value(self) -> float:
        return paired_e_value(self.b, self.c)

    @property
    def anytime_p(self) -> float:
        return 1.0 / self.largest

    @property
    def decided(self) -> bool:
        """The policies differ, at ``level``; which is better, b and c say."""
        return self.largest * self.level >= 1.0


_STAKES = tuple(sign * 0.05 * 1.57**i for sign in (1.0, -1.0) for i in range(12))
"""Between 0.05, best for thousands of episodes near a rate of 1/2, and 7, best for rates near 0 and 1; both signs."""


def confidence_sequence(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """The interval of the mean rate of ``n`` episodes, for all n together: with probability ``confidence`` it never
    fails to cover, however often one looks. (0, 1) at n = 0.

    The episodes' own rates p_i may differ (tasks do) and may depend on what came before. Rates p are ruled out where
    the mean over stakes s of exp(s k - n log(1 - p + p e^s)) has reached 1 / (1 - confidence). That never exceeds the
    mean of the martingales prod exp(s x_i) / (1 - p_i + p_i e^s) at the mean rate p, since the logarithm is concave in
    p; Ville's inequality does the rest. (The method of mixtures: Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon
    2021, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of Statistics 49(2).)

    >>> confidence_sequence(50, 50)
    (0.883..., 1.0)

    Raises:
        ValueError: successes outside 0..n.
    """
    return unfinished_sequence(successes, n, 0, confidence)


def unfinished_sequence(successes: int, finished: int, running: int, confidence: float = 0.95) -> Interval:
    """``confidence_sequence`` while ``running`` more episodes have begun and not ended.

    Successes end early and failures at the step limit, so those that have ended are no fair sample of those that began:
    what runs counts as failure for the lower end, and as success for the upper one.

    Raises:
        ValueError: successes outside 0..finished, or a negative number.
    """
    if not 0 <= successes <= finished or running < 0:
        raise ValueError(
            f"successes must lie between 0 and n = {finished}, and none may run backwards; got {successes}, {running}"
        )
    n = finished + running
    if n == 0:
        return 0.0, 1.0
    level = 1.0 - confidence
    return _lower(successes, n, level), 1.0 - _lower(finished - successes, n, level)


@functools.lru_cache(maxsize=8192)
def _lower(k: int, n: int, level: float) -> float:
    """The smallest p that is not ruled out. The mixture is convex in p and at most 1 at k / n: bisection finds
    where."""
    bound = math.log(len(_STAKES) / level)

    def is_ruled_out(p: float) -> bool:
        logs = [s * k - n * math.log1p(p * math.expm1(s)) for s in _STAKES]
        top = max(logs)
        return top + math.log(math.fsum(math.exp(x - top) for x in logs)) >= bound

    low, high = 0.0, k / n
    if not is_ruled_out(low):
        return 0.0
    for _ in range(44):
        middle = (low + high) / 2.0
        if is_ruled_out(middle):
            low = middle
        else:
            high = middle
    return high


@functools.lru_cache(maxsize=8192)
def width_sequence(successes: int, n: int, width: float, confidence: float = 0.95) -> Interval:
    """A confidence sequence that is narrowest about where it becomes ``width`` wide: for a run that stops there.

    As ``confidence_sequence``, with two stakes for each rate p, those that tell it best from p plus and minus half of
    ``width``. Since they depend on p, it holds for a mean rate that stays the same: ask after whole rounds of tasks.
    About 1.4 times as wide as an interval made for one look, where the other is 1.7 times as wide.
    """
    if n == 0:
        return 0.0, 1.0
    rates = np.unique(np.append(np.linspace(0.0, 1.0, 4001)[1:-1], np.clip(successes / n, 1e-9, 1.0 - 1e-9)))
    half, odds = width / 2.0, np.log(rates) - np.log1p(-rates)
    above, below = np.clip(rates + half, None, 1.0 - 1e-6), np.clip(rates - half, 1e-6, None)
    logs = []
    for stake in (np.log(above) - np.log1p(-above) - odds, np.log(below) - np.log1p(-below) - odds):
        logs.append(stake * successes - n * np.log1p(rates * np.expm1(stake)))
    holds = rates[np.logaddexp(*logs) < math.log(2.0 / (1.0 - confidence))]
    step = 1.0 / 4000  # the end lies between the last rate that holds and the next one
    low, high = max(0.0, float(holds[0]) - step), min(1.0, float(holds[-1]) + step)
    return (0.0 if successes == 0 else low), (1.0 if successes == n else high)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
