"""What a comparison comes to, in words."""

from __future__ import annotations

from dataclasses import dataclass

from robotrials.stats.intervals import Interval
from robotrials.stats.sample_size import episodes_for_difference, pairs_for_difference

BETTER, WORSE, NO_DIFFERENCE, TOO_FEW = "better", "worse", "no difference shown", "too few episodes"
POWER = 0.8
"""With so many episodes as are named, a difference of the size named is shown in four of five evaluations."""


@dataclass(frozen=True)
class Line:
    """Baseline against the other run on one task, one group or all together.

    ``difference`` weighs tasks the same; ``wins`` and ``losses`` are episodes in which the other run alone, or the
    baseline alone, succeeded (None when unpaired); ``p`` is that of ``test``. None where nothing can be said.
    """

    name: str
    tasks: int
    baseline: tuple[int, int]
    other: tuple[int, int]
    rates: tuple[float | None, float | None]
    difference: float | None
    interval: Interval | None
    test: str
    p: float | None
    mid_p: float | None = None
    pairs: int | None = None
    wins: int | None = None
    losses: int | None = None


@dataclass(frozen=True)
class Verdict:
    """``kind``: better, worse (the other run than the baseline), no difference shown, too few episodes. ``needed``:
    how many pairs (or episodes of each run) would do, where there are too few."""

    kind: str
    words: str
    needed: int | None = None


def judge(
    line: Line, baseline: str, other: str, level: float, margin: float, p: float | None, comparisons: int = 1
) -> Verdict:
    """The verdict on ``other`` against ``baseline``; ``p`` is corrected already where it is one of several
    ``comparisons``.

    Significant at ``level``: better or worse. Otherwise: no difference shown, when the interval lies within plus or
    minus ``margin``, or when so many episodes would probably have shown a difference of that size; else too few
    episodes.
    """
    if line.difference is None or line.interval is None or p is None:
        return Verdict(TOO_FEW, "Too few episodes: nothing that both have finished.", None)
    points = f"{100 * line.difference:+.1f} points [{100 * line.interval[0]:+.1f}, {100 * line.interval[1]:+.1f}]"
    value = p_words(p) + (" after Holm" if comparisons > 1 else "")
    if p <= level and line.difference != 0:
        kind = BETTER if line.difference > 0 else WORSE
        return Verdict(kind, f"{other} is {kind} than {baseline}: {points}, {value}.")
    low, high = line.interval
    if -margin <= low and high <= margin:
        inside = f"the interval lies within ±{100 * margin:g} points"
        return Verdict(NO_DIFFERENCE, f"No difference shown between {other} and {baseline}: {points}; {inside}.")
    target = max(abs(line.difference), margin)
    needed, have, unit = _needed(line, target, level / comparisons)
    if needed <= have and abs(line.difference) <= margin:
        would = f"a difference of {100 * target:.1f} points would probably have shown"
        return Verdict(
            NO_DIFFERENCE, f"No difference shown between {other} and {baseline}: {points}, {value}; {would}."
        )
    if needed <= have:
        needed = 2 * have  # unlucky: so many should have shown it, if it is as large as it looks
    return Verdict(
        TOO_FEW,
        f"Too few episodes to tell {other} from {baseline}: {points}, {value}. To show a difference of "
        f"{100 * target:.1f} points, about {needed:,} {unit} would do (there are {have:,}).",
        needed,
    )


def p_words(p: float) -> str:
    """``p = 0.031``, ``p < 0.0001``."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.3f}" if p >= 0.01 else f"p = {p:.4f}"


def _needed(line: Line, target: float, level: float) -> tuple[int, int, str]:
    """(how many would do, how many there are, of what)."""
    if line.pairs is not None and line.wins is not None and line.losses is not None:
        discordant = (line.wins + line.losses + 1) / (line.pairs + 2)
        return pairs_for_difference(target, discordant, level, POWER), line.pairs, "pairs"
    assert line.rates[0] is not None
    assert line.rates[1] is not None
    middle = min(1.0 - target / 2, max(target / 2, (line.rates[0] + line.rates[1]) / 2))
    needed = episodes_for_difference(middle + target / 2, middle - target / 2, level, POWER)
    return needed, min(line.baseline[1], line.other[1]), "episodes of each run"
