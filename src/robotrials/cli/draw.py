"""Bars, numbers and colours shared by the live display and the tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.text import Text

from robotrials.engine.observer import Progress
from robotrials.stats.sequential import unfinished_sequence

PIPE_WIDTH = 10_000
"""Columns when there is no terminal to ask and COLUMNS is not set: nothing that a program reads is cut."""

PARTS = (
    ("simulate", "bright_blue"),
    ("render", "magenta"),
    ("film", "bright_red"),
    ("infer", "cyan"),
    ("wait", "yellow"),
    ("reset", "bright_black"),
)
"""Where the time of an episode goes, and its colour."""


@dataclass(frozen=True)
class Glyphs:
    """Characters a terminal can show. Kinds differ in shape, not in colour alone."""

    success: str
    failure: str
    error: str
    rest: str
    block: str
    range: str
    point: str
    scale: str
    interval: str
    dot: str
    cut: str
    rule: str


UNICODE = Glyphs("━", "╍", "×", "─", "■", "━", "●", "·", "–", "·", "…", "─")
ASCII = Glyphs("#", "-", "x", ".", "#", "=", "o", ".", "-", "|", "~", "-")


def make_console(stream: TextIO, like: Console | None = None) -> Console:
    """A console on ``stream`` that changes no word: no markup, no emoji, no highlighting of its own.

    ``like`` lends its width and colours to a stream that is no terminal itself.
    """
    width: int | None = PIPE_WIDTH
    if like is not None:
        width = like.width
    elif stream.isatty() or "COLUMNS" in os.environ:
        width = None
    terminal = like.is_terminal if like is not None else None
    return Console(file=stream, width=width, force_terminal=terminal, markup=False, emoji=False, highlight=False)


def glyphs(console: Console) -> Glyphs:
    return UNICODE if console.encoding.lower().startswith("utf") else ASCII


def stacked_bar(parts: Sequence[tuple[float, str, str]], width: int) -> Text:
    """One bar of ``width`` cells; each part is (amount, glyph, style). A part that is not zero shows, if all fit."""
    bar = Text()
    for cells, (_, glyph, style) in zip(share(width, [amount for amount, _, _ in parts]), parts, strict=True):
        bar.append(glyph * cells, style)
    return bar


def share(width: int, amounts: Sequence[float]) -> list[int]:
    """Split ``width`` cells by ``amounts``: sums to ``width``, at least one cell for what is not zero (if all fit).

    >>> share(10, [99, 1, 0])
    [9, 1, 0]
    """
    total = sum(amounts)
    if total <= 0:
        return [0] * len(amounts)
    exact = [width * amount / total for amount in amounts]
    cells = [int(x) for x in exact]
    if width >= sum(1 for amount in amounts if amount > 0):
        cells = [max(n, 1) if amount > 0 else 0 for n, amount in zip(cells, amounts, strict=True)]
    while sum(cells) != width:
        step = 1 if sum(cells) < width else -1
        candidates = [i for i, amount in enumerate(amounts) if amount > 0 and (step > 0 or cells[i] > 1)]
        chosen = max(candidates, key=lambda i: step * (exact[i] - cells[i]))
        cells[chosen] += step
    return cells


def outcome_bar(successes: int, failures: int, errors: int, planned: int, width: int, marks: Glyphs) -> Text:
    """Successes, failures, errors and what is left, in this order."""
    rest = planned - successes - failures - errors
    return stacked_bar(
        [
            (successes, marks.success, "green"),
            (failures, marks.failure, "yellow"),
            (errors, marks.error, "bold red"),
            (rest, marks.rest, "bright_black"),
        ],
        width,
    )


def interval_plot(rate: float, low: float, high: float, width: int, marks: Glyphs) -> Text:
    """A rate (0 to 1) with its interval on a line from 0 to 100 %: ``·····━━●━··``."""
    last = width - 1
    first, end, point = (round(x * last) for x in (low, high, rate))
    plot = Text()
    for cell in range(width):
        if cell == point:
            plot.append(marks.point, "bold")
        elif first <= cell <= end:
            plot.append(marks.range, "cyan")
        else:
            plot.append(marks.scale, "bright_black")
    return plot


def time_split(seconds: Mapping[str, float], marks: Glyphs, bar_width: int = 0) -> Text:
    """``■ simulate 62 %  ■ render 20 % ...``, after a bar of ``bar_width`` cells; empty while nothing was measured."""
    total = sum(seconds.values())
    if total <= 0:
        return Text()
    shown = [(seconds[name], name, style) for name, style in PARTS if seconds.get(name, 0.0) / total >= 0.005]
    text = stacked_bar([(amount, marks.block, style) for amount, _, style in shown], bar_width)
    for amount, name, style in shown:
        text.append("  " if text.plain else "")
        text.append(f"{name} ", style)
        text.append(f"{100 * amount / total:.0f} %")
    return text


def cut(cell: Text, room: int, marks: Glyphs) -> Text:
    """``cell`` in at most ``room`` cells: words are cut at the end."""
    if cell.cell_len <= room:
        return cell
    shorter = cell.copy()
    shorter.truncate(room - 1)
    return shorter.append(marks.cut)


def percent(rate: float) -> str:
    """``97.5 %``; a rate that is not 1 never shows as 100.0, nor one that is not 0 as 0.0.

    >>> percent(0.99999), percent(1.0)
    ('99.9 %', '100.0 %')
    """
    return f"{_number(rate)} %"


def interval(low: float, high: float, marks: Glyphs) -> str:
    """``86.8 – 99.9``, in per cent."""
    return f"{100 * low:.1f} {marks.interval} {100 * high:.1f}"


def _number(rate: float) -> str:
    value = 100 * rate
    if 0 < value < 0.1:
        value = 0.1
    elif 99.9 < value < 100:
        value = 99.9
    return f"{value:.1f}"


def duration(seconds: float) -> str:
    """``0:07``, ``12:30``, ``3:04:05``.

    >>> duration(59.6), duration(3600)
    ('1:00', '1:00:00')
    """
    whole = max(0, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def valid_interval(snapshot: Progress) -> tuple[float, float] | None:
    """Where the success rate of the episodes that have begun lies, however often one looks (``stats/sequential.py``);
    None before the first outcome.

    No single rate is shown while a run goes on: successes end early, so that the rate of what has ended is too high,
    and the final table's interval is made for one look.
    """
    finished = snapshot.successes + snapshot.failures
    return unfinished_sequence(snapshot.successes, finished, snapshot.running) if finished else None


def workers(n: int, runtime: str) -> str:
    """``8 workers``, or in words where their number is not the run's to say."""
    if n or runtime not in ("ray", "external"):
        return count(n, "worker")
    return "as many workers as Ray has room for" if runtime == "ray" else "the workers that join"


def count(n: int, noun: str, plural: str = "") -> str:
    """``1 episode``, ``2,000 episodes``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
