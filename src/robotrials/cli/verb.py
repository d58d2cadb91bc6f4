"""A verb of the command line as a table: its parser, its help page and its completion are made from it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from robotrials.cli.positionals import Words, split_words

WIDTH = 80
_WIDEST_HEAD = 24
"""Characters of a flag and its value beside which its help begins; longer ones have it on the next line."""


@dataclass(frozen=True)
class Flag:
    """``--name``, with underscores. ``value`` is what its value is called, empty for a switch; ``bare`` what the flag
    means without a value (of a switch: true), None: it needs one. ``choices`` are all values there are."""

    name: str
    help: str
    value: str = ""
    default: str = ""
    bare: str | None = None
    choices: tuple[str, ...] = ()

    @property
    def without_value(self) -> str | None:
        return "true" if self.bare is None and not (self.value or self.choices) else self.bare

    @property
    def head(self) -> str:
        """As the help page writes it: ``--junit=tasks|episodes``, ``--parquet[=FILE]``, ``--json``."""
        value = "|".join(self.choices) or self.value
        if not value or (self.bare == "true" and self.value != "BOOL"):
            return f"--{self.name}"
        is_optional = self.bare is not None and value != "BOOL"
        return f"--{self.name}[={value}]" if is_optional else f"--{self.name}={value}"


@dataclass(frozen=True)
class Verb:
    """``usage`` are the lines after "usage: robotrials"; ``about`` is a paragraph or several; ``ending`` stands last
    (examples, exit status). ``is_open``: flags that are not in the table pass, and are checked by whom they concern."""

    name: str
    usage: tuple[str, ...]
    about: str
    flags: tuple[Flag, ...] = ()
    ending: str = ""
    is_open: bool = False

    def parse(self, argv: Sequence[str]) -> Words:
        """
        Raises:
            ConfigError: an unknown flag, one given twice, or one without its value.
        """
        bare = {flag.name: flag.without_value for flag in self.flags if flag.without_value is not None}
        return split_words(argv, self.name, None if self.is_open else [flag.name for flag in self.flags], bare)

    @property
    def page(self) -> str:
        """The page of ``--help``: at most 80 columns, ends with a newline."""
        usage = [("usage: " if i == 0 else "       ") + f"robotrials {line}" for i, line in enumerate(self.usage)]
        parts = ["\n".join(usage), *(_filled(paragraph) for paragraph in self.about.strip().split("\n\n"))]
        if self.flags:
            column = min(_WIDEST_HEAD, max(len(flag.head) for flag in self.flags)) + 4
            parts.append("\n".join(_flag_lines(flag, column) for flag in self.flags))
        if self.ending:
            parts.append(self.ending.strip("\n"))
        return "\n\n".join(parts) + "\n"


def flags_of(settings: type, **values: str) -> tuple[Flag, ...]:
    """The fields of a dataclass, by their help; ``values`` are what values are called, by field. A boolean may stand
    bare; its default is shown where that is true."""
    found = []
    for field in fields(settings):
        is_bool = str(field.type) == "bool"
        shown: Any = "" if field.default in (None, "", False) else field.default
        found.append(
            Flag(
                name=field.name,
                help=field.metadata["help"],
                value="BOOL" if is_bool and field.default else values.get(field.name, "" if is_bool else "N"),
                default=str(shown).lower() if is_bool else str(shown) if isinstance(shown, (str, int, float)) else "",
                bare="true" if is_bool else None,
                choices=tuple(field.metadata.get("choices") or ()),
            )
        )
    return tuple(found)


INTERVAL = Flag(
    name="stats.interval",
    help="method of the intervals; default: as the run is configured",
    choices=("wilson", "exact", "jeffreys"),
)
"""Of the verbs that show a run."""


def _filled(paragraph: str) -> str:
    return textwrap.fill(" ".join(paragraph.split()), WIDTH, break_on_hyphens=False, break_long_words=False)


def _flag_lines(flag: Flag, column: int) -> str:
    words = flag.help + (f" [{flag.default}]" if flag.default else "")
    lines = textwrap.wrap(words, WIDTH - column, break_on_hyphens=False, break_long_words=False)
    head = f"  {flag.head}"
    indent = " " * column
    if len(head) + 2 > column:
        return "\n".join([head, *(indent + line for line in lines)])
    return "\n".join([head.ljust(column) + lines[0], *(indent + line for line in lines[1:])])
