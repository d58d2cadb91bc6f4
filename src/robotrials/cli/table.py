"""The table of results, of a run and of what is left of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from robotrials.cli import draw
from robotrials.cli.grid import GAP, Grid, Line, Section

PLOT = "0 to 100 %"
INTERVAL = "95 % interval"
_PLOT_WIDTH = (11, 31)
"""Cells that the drawing of an interval has at least and at most."""
_NAME_ROOM = 16
"""Cells a task's name should have before another column is worth its place."""


@dataclass(frozen=True)
class Row:
    """One line of results. ``rate`` and ``interval`` (0 to 1) are None while no episode has an outcome; ``steps`` is
    the mean length of episodes with an outcome; ``missing`` episodes are planned and not settled; ``id`` is the task's
    number within its suite."""

    name: str
    successes: int
    finished: int
    errors: int
    missing: int = 0
    rate: float | None = None
    interval: tuple[float, float] | None = None
    steps: float | None = None
    id: int | None = None


@dataclass(frozen=True)
class SuiteRows:
    """A suite: its tasks, and its own line when it has more than one."""

    tasks: Sequence[Row]
    total: Row | None = None


def results_table(
    suites: Sequence[SuiteRows], overall: Row, console: Console, groups: Sequence[Row] = ()
) -> list[Text]:
    """Suites with their tasks under them, the tasks' own groups, and the overall line; as many columns as the console
    has room for."""
    return _fitted(suites, overall, groups, console).render(console)


def _fitted(suites: Sequence[SuiteRows], overall: Row, groups: Sequence[Row], console: Console) -> Grid:
    """The grid whose columns fit. What gives way first is the drawing of the intervals, narrower and then gone; then
    what names have in common, their middles, the steps and the intervals. Errors never go."""
    marks, width = draw.glyphs(console), console.width

    def grid(columns: Sequence[str], plot_width: int = 0) -> Grid:
        return _grid(suites, overall, groups, columns, plot_width, marks)

    columns = ["Success", "Rate", INTERVAL, "Errors", "Not run", "Steps"]
    if not overall.missing:
        columns.remove("Not run")
    plain = grid(columns)
    least, most = _PLOT_WIDTH
    plot_width = min(most, max(least, plain.room_for_names(width) - plain.longest_name(full=True) - GAP))
    if plain.room_for_names(width) >= plain.longest_name(full=False) + GAP + plot_width:
        columns.insert(columns.index("Errors"), PLOT)
        return grid(columns, plot_width)
    for optional in ("Steps", INTERVAL):
        if plain.room_for_names(width) >= min(plain.longest_name(full=False), _NAME_ROOM):
            break
        columns.remove(optional)
        plain = grid(columns)
    return plain


def _grid(
    suites: Sequence[SuiteRows],
    overall: Row,
    groups: Sequence[Row],
    columns: Sequence[str],
    plot_width: int,
    marks: draw.Glyphs,
) -> Grid:
    def line(row: Row, style: str = "") -> Line:
        return Line(row.name, _cells(row, columns, plot_width, marks), row.id, style)

    sections: list[Section] = []
    alone: list[Line] = []
    for suite in suites:
        if suite.total is None:  # suites of one task each are lines of one section
            alone += [line(row) for row in suite.tasks]
            continue
        sections += [Section(alone)] if alone else []
        alone = []
        sections.append(Section([line(row) for row in suite.tasks], line(suite.total, "bold")))
    sections += [Section(alone)] if alone else []
    if groups:
        sections.append(Section([line(row) for row in groups], ruled=True))
    if len(suites) > 1 or groups:  # else it would say what the only suite's line says
        sections.append(Section([line(overall, "bold")], ruled=True))
    justify = "l" + "".join("l" if title == PLOT else "r" for title in columns)
    return Grid(["Task", *columns], justify, sections)


def _cells(row: Row, columns: Sequence[str], plot_width: int, marks: draw.Glyphs) -> list[Text]:
    cells = {
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
