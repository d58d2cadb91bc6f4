"""Lines and tables on stdout. Imports nothing of a run, so that the verbs that only look start at once."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from robotrials.cli import draw, output
from robotrials.cli.grid import Grid, Line, Section

STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red", "kept": "green", "BROKEN": "bold red"}
"""How the words that say how it stands are coloured; they differ as words, too."""


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], elastic: int) -> None:
    """A line for each row under a line of titles; column ``elastic`` is cut where the console is too narrow."""
    lines = [Line(row[0], [Text(cell, STYLES.get(cell, "")) for cell in row[1:]]) for row in rows]
    grid = Grid(titles, "l" * len(titles), [Section(lines)], words=elastic or None)
    show(grid.render(draw.make_console(sys.stdout)))


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
