"""The one table of the terminal: names at the left, figures beside them, aligned by rich, as wide as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from robotrials.cli import draw
from robotrials.cli.short_names import common_ends, cut_middle, shorten

GAP = 3
LONG_NAME = 30
"""Letters from which on a task's name is easily taken for another's: its number then stands beside it."""
_LEAST_NAME = 8
_LEAST_WORDS = 12


@dataclass(frozen=True)
class Line:
    """One line: a name, the figures beside it, and the number of the task where it is one."""

    name: str
    cells: Sequence[Text] = ()
    id: int | None = None
    style: str = ""


@dataclass(frozen=True)
class Section:
    """Lines whose names may have much in common. ``title`` stands above them and indents them; one without cells may be
    as long as the table. ``ruled``: a rule stands above the section."""

    lines: Sequence[Line]
    title: Line | None = None
    ruled: bool = False

    @property
    def indent(self) -> str:
        return "  " if self.title is not None else ""

    @property
    def names(self) -> list[str]:
        return [line.name for line in self.lines]


_Piece = list[Text] | Text | None
"""What a drawn line is made of: aligned cells, a text across all columns, or (None) a rule."""


@dataclass(frozen=True)
class Grid:
    """A table before it is drawn. ``titles`` begin with that of the names; ``justify`` has a letter (l, r) for each.
    ``words`` is the number of a column that is cut where names and figures leave no room for it."""

    titles: Sequence[str]
    justify: str
    sections: Sequence[Section]
    words: int | None = None

    def room_for_names(self, width: int) -> int:
        """Characters left for names and their indent in ``width``, beside figures that are never cut."""
        rooms = self._figure_rooms()
        if self.words is not None:
            rooms[self.words - 1] = min(rooms[self.words - 1], _LEAST_WORDS)
        ids = [2] if self._has_ids else []
        return width - sum(rooms + ids) - GAP * len(rooms + ids)

    def longest_name(self, full: bool) -> int:
        """Characters of the longest name with its indent; ``full``: as it is, else without what names share."""
        lengths = [len(self.titles[0])]
        for section in self.sections:
            head, tail = ("", "") if full else common_ends(section.names)
            lengths += [len(section.indent + name) - len(head + tail) for name in section.names]
            if section.title is not None and section.title.cells:
                lengths.append(len(section.title.name))
        return max(lengths)

    def render(self, console: Console) -> list[Text]:
        """The lines of the table; only words, and names that are too long even so, are cut."""
        marks = draw.glyphs(console)
        room = max(_LEAST_NAME, self.room_for_names(console.width))
        pieces = self._pieces(room, marks, console.width)
        if self.words is not None:
            pieces = self._with_words_cut(pieces, console.width, marks)
        rows = iter(_aligned([p for p in pieces if isinstance(p, list)], self._sides(), console))
        lines = [next(rows) if isinstance(piece, list) else piece for piece in pieces]
        rule = Text(marks.rule * max(line.cell_len for line in lines if line is not None), "bright_black", no_wrap=True)
        return [rule if line is None else line for line in lines]

    def _pieces(self, room: int, marks: draw.Glyphs, width: int) -> list[_Piece]:
        heads = [Text(title, "bold") for title in self.titles]
        pieces: list[_Piece] = [self._cells(heads[0], Text("Id", "bold"), heads[1:]), None]
        for section in self.sections:
            short = shorten(section.names, room - len(section.indent), marks.cut)
            if section.ruled and len(pieces) > 2:
                pieces.append(None)
            if section.title is not None and section.title.cells:
                pieces.append(self._row(section.title.name, section.title))
            elif section.title is not None:
                pieces.append(Text(cut_middle(section.title.name, width, marks.cut), section.title.style, no_wrap=True))
            if short.pattern:
                pattern = section.indent + cut_middle(short.pattern, width - len(section.indent), marks.cut)
                pieces.append(Text(pattern, "bright_black", no_wrap=True))
            for line, name in zip(section.lines, short.names, strict=True):
                pieces.append(self._row(section.indent + name, line))
        return pieces

    def _row(self, name: str, line: Line) -> list[Text]:
        number = Text("" if line.id is None else str(line.id), "bright_black")
        return self._cells(Text(name, line.style), number, line.cells)

    def _cells(self, name: Text, number: Text, figures: Sequence[Text]) -> list[Text]:
        return [name, number, *figures] if self._has_ids else [name, *figures]

    def _with_words_cut(self, pieces: Sequence[_Piece], width: int, marks: draw.Glyphs) -> list[_Piece]:
        assert self.words is not None
        at = self.words + self._has_ids
        rows = [piece for piece in pieces if isinstance(piece, list)]
        rooms = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
        room = max(_LEAST_WORDS, width - sum(rooms) + rooms[at] - GAP * (len(rooms) - 1))
        return [
            [*piece[:at], draw.cut(piece[at], room, marks), *piece[at + 1 :]] if isinstance(piece, list) else piece
            for piece in pieces
        ]

    @property
    def _has_ids(self) -> bool:
        lines = [line for section in self.sections for line in section.lines]
        return any(line.id is not None for line in lines) and any(len(line.name) >= LONG_NAME for line in lines)

    def _sides(self) -> str:
        return self.justify[0] + ("r" if self._has_ids else "") + self.justify[1:]

    def _figure_rooms(self) -> list[int]:
        """The width of every column but that of the names."""
        rows: list[Sequence[Text]] = [[Text(title) for title in self.titles[1:]]]
        for section in self.sections:
            rows += [line.cells for line in (*section.lines, section.title) if line is not None and line.cells]
        return [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]


def _aligned(rows: Sequence[Sequence[Text]], sides: str, console: Console) -> list[Text]:
    """Rows of cells as lines, without the spaces after the last one."""
    table = Table.grid(padding=(0, GAP, 0, 0))
    for side in sides:
        table.add_column(no_wrap=True, justify="right" if side == "r" else "left")
    for row in rows:
        table.add_row(*row)
    width = sum(max(cell.cell_len for cell in column) + GAP for column in zip(*rows, strict=True))
    lines = []
    for segments in console.render_lines(table, console.options.update(width=width), pad=False):
        line = Text(no_wrap=True)
        for text, style, _ in segments:
            line.append(text, style)
        line.rstrip()
        lines.append(line)
    return lines
