from __future__ import annotations

import io

import pytest
from rich.console import Console

from robotrials.cli.table import Row, SuiteRows, results_table

REACH = Row("reach-v3", 20, 20, 0, rate=1.0, interval=(0.839, 1.0), steps=71.2)
PRESS = Row("button-press-topdown-wall-v3", 12, 20, 2, rate=0.6, interval=(0.387, 0.781), steps=340.0)
EASY = Row("easy", 32, 40, 2, rate=0.8, interval=(0.652, 0.895), steps=205.6)
PICK = Row("pick-place-v3", 0, 0, 20)
OVERALL = Row("Overall", 32, 40, 22, rate=0.8, interval=(0.652, 0.895), steps=205.6)


def table(width: int, suites: list[SuiteRows], overall: Row) -> list[str]:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=width)
    return [line.plain for line in results_table(suites, overall, console)]


def test_suites_stand_above_their_tasks_and_the_overall_line_below_all() -> None:
    assert table(80, [SuiteRows([REACH, PRESS], EASY), SuiteRows([PICK])], OVERALL) == [
        "Task                          Success      Rate   95 % interval   Errors   Steps",
        "─" * 80,
        "easy                            32/40    80.0 %     65.2 – 89.5        2     206",
        "  reach-v3                      20/20   100.0 %    83.9 – 100.0        0      71",
        "  button-press…down-wall-v3     12/20    60.0 %     38.7 – 78.1        2     340",
        "pick-place-v3                     0/0      none                       20",
        "─" * 80,
        "Overall                         32/40    80.0 %     65.2 – 89.5       22     206",
    ]


def test_one_suite_alone_needs_no_overall_line() -> None:
    assert [line.split()[0] for line in table(80, [SuiteRows([REACH])], REACH) if line.strip("─")] == [
        "Task",
        "reach-v3",
    ]
    assert table(80, [SuiteRows([REACH, PRESS], EASY)], EASY)[-1].strip().startswith("button-press")


def test_a_rate_without_outcomes_is_none_and_not_zero() -> None:
    line = table(80, [SuiteRows([PICK])], PICK)[2]
    assert "0.0 %" not in line
    assert line.split() == ["pick-place-v3", "0/0", "none", "20"]


def test_episodes_that_did_not_run_have_a_column_only_when_there_are_some() -> None:
    partial = Row("reach-v3", 3, 4, 0, missing=6, rate=0.75, interval=(0.3, 0.954), steps=60.0)
    assert "Not run" not in table(80, [SuiteRows([REACH])], REACH)[0]
    lines = table(80, [SuiteRows([partial])], partial)
    assert lines[0].split()[-3:] == ["Not", "run", "Steps"]
    assert lines[2].split()[-2:] == ["6", "60"]


@pytest.mark.parametrize("width", [40, 52, 58, 64, 80, 92, 100, 200])
def test_it_fits_every_width_and_errors_are_always_there(width: int) -> None:
    lines = table(width, [SuiteRows([REACH, PRESS], EASY), SuiteRows([PICK])], OVERALL)
    assert max(map(len, lines)) <= width
    assert "Errors" in lines[0]
    assert ("0 to 100 %" in lines[0]) == (width >= 100)
    assert ("Steps" in lines[0]) == (width >= 80)
    assert ("95 % interval" in lines[0]) == (width >= 64)


def test_groups_of_tasks_stand_between_the_suites_and_the_overall_line() -> None:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=80)
    groups = [Row("camera", 20, 20, 0, rate=1.0, interval=(0.839, 1.0)), Row("light", 12, 20, 2)]
    lines = [line.plain for line in results_table([SuiteRows([REACH, PRESS], EASY)], OVERALL, console, groups)]
    assert [line.split()[0] for line in lines if line.strip("─")] == [
        *("Task", "easy", "reach-v3", "button-press…down-wall-v3", "camera", "light", "Overall"),
    ]
    assert [i for i, line in enumerate(lines) if not line.strip("─")] == [1, 5, 8]
