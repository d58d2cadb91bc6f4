"""Names as long as LIBERO's, which begin and end alike, in terminals of all widths and in a pipe."""

from __future__ import annotations

import io
import json
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from robotrials.cli import draw
from robotrials.cli.comparison_view import comparison_lines
from robotrials.cli.plan_table import plan_table
from robotrials.cli.short_names import shorten
from robotrials.cli.table import Row, SuiteRows, results_table
from robotrials.plan.plan import build_plan
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.results.compare.comparison import compare_runs
from robotrials.results.stored import read_run
from tests.results.stored_runs import write_run

SUITES = ("libero_spatial", "libero_object", "libero_goal", "libero_10", "libero_90")
_FILE = resources.files("robotrials.benchmarks.adapters.libero") / "tasks.json"
TASKS: dict[str, list[list[str]]] = {name: json.loads(_FILE.read_text())[name]["tasks"] for name in SUITES}
WIDTHS = (60, 80, 120, 200)


def console(width: int | None) -> Console:
    """A terminal of that width; None: a pipe."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    return draw.make_console(stream) if width is None else Console(file=stream, width=width)


def results(suite: str, width: int | None) -> list[str]:
    rows = [
        Row(name, 3, 10, 0, rate=0.3, interval=(0.108, 0.603), steps=123.4, id=number)
        for number, (name, _) in enumerate(TASKS[suite])
    ]
    total = Row(suite, 3 * len(rows), 10 * len(rows), 0, rate=0.3, interval=(0.2, 0.4), steps=123.4)
    return [line.plain for line in results_table([SuiteRows(rows, total)], total, console(width))]


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("width", WIDTHS)
def test_results_fit_tell_all_tasks_apart_and_give_each_its_number(suite: str, width: int) -> None:
    lines = results(suite, width)
    assert max(map(len, lines)) <= width
    n = len(TASKS[suite])
    tasks = [line.split() for line in lines[-n:]]
    # A few of LIBERO-90's differ in two places that do not both fit: their numbers tell them apart.
    assert len({words[0] for words in tasks}) >= (n if n <= 10 or width > 100 else 0.9 * n)
    assert [words[1] for words in tasks] == [str(number) for number in range(n)]


def test_what_names_share_stands_once_above_them() -> None:
    lines = results("libero_spatial", 80)
    assert lines[3] == "  pick_up_the_black_bowl_…_and_place_it_on_the_plate"
    assert [line.split()[0] for line in lines[4:8]] == [
        *("between_th…he_ramekin", "next_to_the_ramekin", "from_table_center", "on_the_cookie_box")
    ]


def test_the_drawing_of_the_interval_gives_way_before_a_name_does() -> None:
    assert "0 to 100 %" in results("libero_spatial", 200)[0]
    assert "between_the_plate_and_the_ramekin" in results("libero_spatial", 120)[4]
    assert "0 to 100 %" not in results("libero_goal", 80)[0]


@pytest.mark.parametrize("suite", SUITES)
def test_into_a_pipe_nothing_is_cut(suite: str) -> None:
    lines = results(suite, None)
    assert "0 to 100 %" in lines[0]
    assert [line.split()[0] for line in lines[3:]] == [name for name, _ in TASKS[suite]]


def plan(suite: str, width: int | None) -> list[str]:
    action = ActionSpec(7, (-1.0,) * 7, (1.0,) * 7)
    tasks = [TaskSpec(suite, name, i, words, 220, 20.0, {}, action) for i, (name, words) in enumerate(TASKS[suite])]
    return [line.plain for line in plan_table(build_plan(tasks, 50, 1000), console(width))]


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_plan_fits_and_tells_all_tasks_apart(suite: str, width: int) -> None:
    lines = plan(suite, width)
    assert max(map(len, lines)) <= width
    tasks = [line.split() for line in lines[-len(TASKS[suite]) :]]
    assert len({words[0] for words in tasks}) >= (len(tasks) if len(tasks) <= 10 or width > 100 else 0.9 * len(tasks))
    assert all(words[1:5] == [str(i), "50", "1000–1049", "220"] for i, words in enumerate(tasks))


def test_a_plan_in_a_pipe_has_full_names_and_the_suite_once() -> None:
    lines = plan("libero_10", None)
    assert lines[2] == "libero_10"
    assert [line.split()[0] for line in lines[3:]] == [name for name, _ in TASKS["libero_10"]]


@pytest.mark.parametrize("width", [*WIDTHS, None])
def test_a_comparison_names_the_suite_once_and_tells_all_tasks_apart(tmp_path: Path, width: int | None) -> None:
    names = [name for name, _ in TASKS["libero_spatial"]]
    tasks = [f"libero_spatial/{name}" for name in names]
    runs = [
        read_run(write_run(tmp_path / "base", lambda s: s.index < 3, tasks=tasks, n=4)),
        read_run(write_run(tmp_path / "new", lambda s: s.index < 2, tasks=tasks, n=4)),
    ]
    lines = [line.plain for line in comparison_lines(compare_runs(runs), console(width), 0)]
    (at,) = [i for i, line in enumerate(lines) if line == "libero_spatial"]
    table = lines[at + 1 : at + 12 if width in (60, 80, 120) else at + 11]
    if width is not None:
        assert max(map(len, lines[:at] + table)) <= width
    own = [words for words in map(str.split, table) if len(words) > 1]
    assert len({words[0] for words in own}) == 10
    assert [words[1] for words in own] == [str(i) for i in range(10)]
    if width is None:
        assert [words[0] for words in own] == names


@given(st.lists(st.text("ab_", min_size=1, max_size=30), min_size=1, max_size=6, unique=True), st.integers(3, 32))
def test_short_names_have_room_and_full_ones_are_left_alone(names: list[str], room: int) -> None:
    short = shorten(names, room, "…")
    assert all(len(name) <= room for name in short.names)
    if max(map(len, names)) <= room:
        assert short.names == tuple(names)
        assert short.pattern == ""
    head, mark, tail = short.pattern.partition("…")
    if mark:
        assert all(name.startswith(head) and name.endswith(tail) and len(name) > len(head + tail) for name in names)
