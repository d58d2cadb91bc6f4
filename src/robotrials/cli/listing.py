"""Lines and tables on stdout. Imports nothing of a run, so that the verbs that only look start at once."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from robotrials.cli import draw, output

STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red", "kept": "green", "BROKEN": "bold red"}
"""How the words that say how it stands are coloured; they differ as words, too."""


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], elastic: int) -> None:
    """A line for each row under a line of titles; column ``elastic`` is cut where the console is too narrow."""
    console = draw.make_console(sys.stdout)
    marks = draw.glyphs(console)
    grid = [[Text(title, "bold") for title in titles]]
    grid += [[Text(cell, STYLES.get(cell, "")) for cell in row] for row in rows]
    lines = draw.lay_out(grid, "l" * len(titles), console.width, marks, elastic=elastic)
    rule = Text(marks.rule * max(line.cell_len for line in lines), "bright_black", no_wrap=True)
    show([lines[0], rule, *lines[1:]])


def print_json(value: Any) -> None:
    """``value`` as strict JSON, for programs."""
    output.text(json.dumps(value, indent=2, allow_nan=False) + "\n")


def show(lines: Sequence[Text]) -> None:
    """Print to stdout, each line as it is: paths are never broken, so that they can be copied."""
    stdout = draw.make_console(sys.stdout)
    # Rendered to memory first: a stdout that cannot be written is dealt with in one place, ``output``.
    memory = io.StringIO()
    terminal = draw.make_console(memory, like=stdout)
    for line in lines:
        terminal.print(line, soft_wrap=True)
    output.text(memory.getvalue())
