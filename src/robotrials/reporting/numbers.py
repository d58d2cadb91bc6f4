"""Numbers as people read them in a report."""

from __future__ import annotations

import math


def percent(rate: float | None, digits: int = 1) -> str:
    """``78.3 %``; a dash where there is no rate."""
    return "–" if rate is None else f"{100.0 * rate:.{digits}f}\u00a0%"


def interval(bounds: tuple[float, float] | None) -> str:
    """``66.4 – 86.9 %``."""
    if bounds is None:
        return "–"
    return f"{100.0 * bounds[0]:.1f}\u2009–\u2009{100.0 * bounds[1]:.1f}\u00a0%"


def seconds(value: float | None) -> str:
    """``0.42 s``, ``12 s``, ``3 min 20 s``, ``2 h 05 min``."""
    if value is None or not math.isfinite(value):
        return "–"
    if value < 10:
        return f"{value:.2g}\u00a0s"
    whole = round(value)
    if whole < 60:
        return f"{whole}\u00a0s"
    if whole < 3600:
        return f"{whole // 60}\u00a0min {whole % 60:02}\u00a0s"
    return f"{whole // 3600}\u00a0h {whole % 3600 // 60:02}\u00a0min"


def number(value: float | None) -> str:
    """Three significant digits at least, thousands apart: ``1,234``, ``56.7``, ``0.123``."""
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) >= 100 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.3g}"


def count(n: int, noun: str) -> str:
    """``1 episode``, ``1,200 episodes``."""
    return f"{n:,}\u00a0{noun}{'' if n == 1 else 's'}"
