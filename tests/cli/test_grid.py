from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from robotrials.cli.grid import Grid, Line, Section


def drawn(grid: Grid, width: int, encoding: str = "utf-8") -> list[str]:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding=encoding), width=width)
    return [line.plain for line in grid.render(console)]


def cells(*words: str) -> list[Text]:
    return [Text(word) for word in words]


NAMES = Grid(
    ["Task", "k/n"],
    "lr",
    [Section([Line("reach-v3", cells("9/10")), Line("button-press-topdown-v3", cells("10/10"))])],
)


def test_columns_align_and_names_alone_are_cut() -> None:
    lines = drawn(NAMES, 24)
    assert lines == ["Task                 k/n", "─" * 24, "reach-v3            9/10", "button-p…down-v3   10/10"]
    assert drawn(NAMES, 80, "ascii")[3] == "button-press-topdown-v3   10/10"


def test_a_column_of_words_gives_way_before_figures_do() -> None:
    lines = [Line("1", cells("turn the faucet to the left", "x"))]
    grid = Grid(["N", "What", "Y"], "lll", [Section(lines)], words=1)
    assert drawn(grid, 23, "ascii")[2] == "1   turn the fauce~   x"


def test_a_title_without_figures_may_be_as_long_as_the_table_and_names_share_a_line() -> None:
    lines = [
        Line(f"push_the_cup_{where}_the_table", cells("10/10"), number) for number, where in enumerate(("to", "off"))
    ]
    grid = Grid(["Task", "k/n"], "lr", [Section(lines, Line("a_suite_of_a_long_name"))])
    assert drawn(grid, 28) == [
        "Task      k/n",
        "─" * 26,
        "a_suite_of_a_long_name",
        "  push_the_cup_…_the_table",
        "  to    10/10",
        "  off   10/10",
    ]
