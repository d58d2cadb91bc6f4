from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from robotrials.cli import draw


@given(st.integers(1, 200), st.lists(st.integers(0, 10_000), min_size=1, max_size=6))
def test_a_bar_is_shared_out_whole_and_hides_nothing(width: int, amounts: list[int]) -> None:
    cells = draw.share(width, amounts)
    assert sum(cells) == (width if sum(amounts) else 0)
    positive = sum(amount > 0 for amount in amounts)
    for n, amount in zip(cells, amounts, strict=True):
        assert n >= 0
        assert (n == 0) if amount == 0 else (n >= 1 or width < positive)


@pytest.mark.parametrize(
    ("width", "amounts", "cells"),
    [(10, [99, 1, 0], [9, 1, 0]), (4, [1, 1, 1, 1], [1, 1, 1, 1]), (10, [5, 5], [5, 5]), (3, [0, 0], [0, 0])],
)
def test_cells_go_by_amount(width: int, amounts: list[int], cells: list[int]) -> None:
    assert draw.share(width, amounts) == cells


def test_outcomes_differ_in_shape_and_not_in_colour_alone() -> None:
    bar = draw.outcome_bar(4, 2, 1, 10, 10, draw.UNICODE)
    assert bar.plain == "━━━━╍╍×───"


@pytest.mark.parametrize(
    ("rate", "low", "high", "plain"),
    [
        (0.5, 0.25, 0.75, "..==o==.."),
        (1.0, 0.75, 1.0, "......==o"),
        (0.0, 0.0, 0.25, "o==......"),
    ],
)
def test_an_interval_is_drawn_to_scale(rate: float, low: float, high: float, plain: str) -> None:
    assert draw.interval_plot(rate, low, high, 9, draw.ASCII).plain == plain


def test_the_time_split_is_in_per_cent_of_the_whole_and_leaves_out_what_is_nothing() -> None:
    seconds = {"reset": 1.0, "simulate": 6.0, "render": 3.0, "infer": 0.0, "wait": 0.01}
    assert draw.time_split(seconds, draw.ASCII).plain == "simulate 60 %  render 30 %  reset 10 %"
    assert draw.time_split(dict.fromkeys(seconds, 0.0), draw.ASCII).plain == ""


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.0, "0.0 %"), (1.0, "100.0 %"), (0.975, "97.5 %"), (0.99999, "99.9 %"), (0.00001, "0.1 %"), (0.9995, "99.9 %")],
)
def test_a_rate_is_never_rounded_to_all_or_nothing(rate: float, text: str) -> None:
    assert draw.percent(rate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (7.4, "0:07"), (59.6, "1:00"), (750, "12:30"), (3600, "1:00:00"), (90061, "25:01:01"), (-1, "0:00")],
)
def test_durations_read_like_a_clock(seconds: float, text: str) -> None:
    assert draw.duration(seconds) == text


def test_counts_agree_with_their_nouns() -> None:
    assert draw.count(1, "episode") == "1 episode"
    assert draw.count(2000, "episode") == "2,000 episodes"
    assert draw.count(2, "process", "processes") == "2 processes"


def console(encoding: str, tty: bool = False) -> Console:
    class Stream(io.TextIOWrapper):
        def isatty(self) -> bool:
            return tty

    return draw.make_console(Stream(io.BytesIO(), encoding=encoding))


def test_a_stream_that_cannot_show_unicode_gets_ascii() -> None:
    assert draw.glyphs(console("ascii")) is draw.ASCII
    assert draw.glyphs(console("latin-1")) is draw.ASCII
    assert draw.glyphs(console("utf-8")) is draw.UNICODE


def test_a_pipe_is_wider_than_any_line_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console("utf-8").width == draw.PIPE_WIDTH >= 1000
    monkeypatch.setenv("COLUMNS", "70")
    assert console("utf-8").width == 70
