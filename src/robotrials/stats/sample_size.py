"""How many episodes it takes: for an interval of a given width, and to show a difference of a given size."""

from __future__ import annotations

import math
from statistics import NormalDist


def episodes_for_interval(half_width: float, rate: float = 0.5, confidence: float = 0.95) -> int:
    """Episodes after which a rate near ``rate`` is known to plus or minus ``half_width`` (normal approximation).

    >>> episodes_for_interval(0.03), episodes_for_interval(0.05, 0.95)
    (1068, 73)
    """
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    return max(1, math.ceil(z * z * rate * (1.0 - rate) / half_width**2))


def pairs_for_difference(difference: float, discordant: float, level: float = 0.05, power: float = 0.8) -> int:
    """Pairs after which McNemar's test shows ``difference`` with probability ``power``, when the policies differ in a
    fraction ``discordant`` of the episodes (Connor 1987, Biometrics 43(1); Miettinen 1968)."""
    discordant = min(1.0, max(discordant, abs(difference)))
    z = NormalDist().inv_cdf(1.0 - level / 2.0)
    reach = z * math.sqrt(discordant) + NormalDist().inv_cdf(power) * math.sqrt(discordant - difference**2)
    # A difference in every discordant pair leaves no spread: the exact test still needs six of them.
    return max(math.ceil(6 / discordant), math.ceil((reach / difference) ** 2))


def episodes_for_difference(first: float, second: float, level: float = 0.05, power: float = 0.8) -> int:
    """Episodes of each of two unpaired runs after which rates ``first`` and ``second`` are told apart (normal
    approximation; Fleiss, Levin and Paik 2003, chapter 4)."""
    z, beyond = NormalDist().inv_cdf(1.0 - level / 2.0), NormalDist().inv_cdf(power)
    mean = (first + second) / 2.0
    spread = z * math.sqrt(2.0 * mean * (1.0 - mean))
    own = beyond * math.sqrt(first * (1.0 - first) + second * (1.0 - second))
    return max(1, math.ceil(((spread + own) / (first - second)) ** 2))
