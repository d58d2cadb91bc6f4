"""Facts under a table: ``Name      value``, one a line."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

_COLUMN = 11
_LEAST = 40
"""Cells that a value has at least: it is longer than the line on a console that is narrower."""


def fact_lines(facts: Iterable[tuple[str, str | Text]], console: Console | None = None) -> list[Text]:
    """Names aligned and dim. With ``console`` a value that is too long goes on in further lines, under itself; a single
    word, such as a path, is never broken."""
    lines = []
    for name, value in facts:
        text = value if isinstance(value, Text) else Text(value)
        parts = [text] if console is None else wrapped(text, max(_LEAST, console.width - _COLUMN))
        for i, part in enumerate(parts):
            lines.append(Text.assemble((f"{name if i == 0 else '':<{_COLUMN}}", "bright_black"), part))
    return lines


def wrapped(text: Text, width: int) -> list[Text]:
    """``text`` in lines of at most ``width`` cells, broken between words alone."""
    if text.no_wrap or text.cell_len <= width:
        return [text]
    breaks, begin = [], 0
    for word in re.finditer(r"\S+", text.plain):
        if cell_len(text.plain[begin : word.end()]) > width and word.start() > begin:
            begin = word.start()
            breaks.append(begin)
    lines = list(text.divide(breaks))
    for line in lines:
        line.rstrip()
    return lines


def place(path: Path, more: str = "") -> Text:
    """``path``, which a terminal that can opens on a click; ``more`` stands behind it."""
    text = Text(str(path), no_wrap=True)
    if sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "linux"):
        text.stylize(f"link file://{socket.gethostname()}{quote(str(path.absolute()))}")
    return text.append(more)
