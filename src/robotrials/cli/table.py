"""The tables on stdout: the results of a run, and the plan of a dry run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from robotrials.cli import draw

PLOT = "0 to 100 %"
INTERVAL = "95 % interval"
OPTIONAL = (PLOT, "Steps", INTERVAL)
"""Columns that go, in this order, where the console is too narrow. Errors never go."""
_NAME_ROOM = 16
"""Cells a task's name should have before another column is worth its place."""


@dataclass(frozen=True)
class Row:
    """One line of results. ``rate`` and ``interval`` (0 to 1) are None while no episode has an outcome; ``steps`` is
    the mean length of episodes with an outcome; ``missing`` episodes are planned and not settled."""

    name: str
    successes: int
    finished: int
    errors: int
    missing: int = 0
    rate: float | None = None
    interval: tuple[float, float] | None = None
    steps: float | None = None


@dataclass(frozen=True)
class Suite:
    """A suite: its tasks, and its own line when it has more than one."""

    tasks: Sequence[Row]
    total: Row | None = None


def results_table(suites: Sequence[Suite], overall: Row, console: Console, groups: Sequence[Row] = ()) -> list[Text]:
    """Suites with their tasks under them, the tasks' own groups, and the overall line; as many columns as the console
    has room for."""
    marks = draw.glyphs(console)
    columns = ["Task", "Success", "Rate", INTERVAL, PLOT, "Errors", "Not run", "Steps"]
    if not overall.missing:
        columns.remove("Not run")
    grid = _grid(suites, groups, overall, columns, console.width, marks)
    for optional in OPTIONAL:
        if _least_width(grid) <= console.width:
            break
        columns.remove(optional)
        grid = _grid(suites, groups, overall, columns, console.width, marks)
    justify = "".join("l" if title in ("Task", PLOT) else "r" for title in columns)
    lines = draw.lay_out(grid, justify, console.width, marks)
    rule = Text(marks.rule * max(line.cell_len for line in lines), "bright_black", no_wrap=True)
    has_overall = _has_overall(suites, groups)
    if groups:
        lines.insert(len(lines) - len(groups) - has_overall, rule)
    lines.insert(1, rule)
    if has_overall:
        lines.insert(-1, rule)
    return lines


def _grid(
    suites: Sequence[Suite],
    groups: Sequence[Row],
    overall: Row,
    columns: Sequence[str],
    width: int,
    marks: draw.Glyphs,
) -> list[list[Text]]:
    plot_width = min(31, max(11, width - 86))

    def cells(row: Row, name: str, style: str = "") -> list[Text]:
        return _cells(row, Text(name, style), columns, plot_width, marks)

    grid = [[Text(title, "bold") for title in columns]]
    for suite in suites:
        if suite.total is not None:
            grid.append(cells(suite.total, suite.total.name, "bold"))
        indent = "  " if suite.total is not None else ""
        grid += [cells(row, indent + row.name) for row in suite.tasks]
    grid += [cells(row, row.name) for row in groups]
    if _has_overall(suites, groups):
        grid.append(cells(overall, overall.name, "bold"))
    return grid


def _has_overall(suites: Sequence[Suite], groups: Sequence[Row]) -> bool:
    """Whether an overall line says more than the only suite's own, or has to close the groups."""
    return len(suites) > 1 or len(groups) > 0


def _least_width(grid: Sequence[Sequence[Text]]) -> int:
    rooms: list[int] = [max(cell.cell_len for cell in column) for column in zip(*grid, strict=True)]
    return min(rooms[0], _NAME_ROOM) + sum(rooms[1:]) + 3 * (len(rooms) - 1)


def _cells(row: Row, name: Text, columns: Sequence[str], plot_width: int, marks: draw.Glyphs) -> list[Text]:
    cells = {
        "Task": name,
        "Success": Text(f"{row.successes}/{row.finished}"),
        "Rate": Text("none", "bright_black"),
        INTERVAL: Text(),
        PLOT: Text(),
        "Errors": Text(str(row.errors), "bold red" if row.errors else "bright_black"),
        "Not run": Text(str(row.missing), "yellow" if row.missing else "bright_black"),
        "Steps": Text() if row.steps is None else Text(f"{row.steps:.0f}"),
    }
    if row.rate is not None and row.interval is not None:
        cells["Rate"] = Text(draw.percent(row.rate), "bold")
        cells[INTERVAL] = Text(draw.interval(*row.interval, marks))
        cells[PLOT] = draw.interval_plot(row.rate, *row.interval, plot_width, marks)
    return [cells[title] for title in columns]
