"""Errors by kind: messages that differ in their numbers alone are one kind, shown by an example.

``step 17 of env 3: physics exploded`` and ``step 18 of env 1: physics exploded`` would else be two, and of a thousand
errors with one cause the list would show twenty lines of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from robotrials.results.record import EpisodeRecord

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?")
_HOLE = "#"


@dataclass(frozen=True)
class ErrorGroup:
    """Errors of one kind. ``example`` is the whole message of the first of them, ``episodes`` their ids, ``variants``
    how many first lines they have: 1 when all say the same, numbers included."""

    example: str
    episodes: tuple[int, ...]
    variants: int

    @property
    def first_line(self) -> str:
        return self.example.split("\n", 1)[0]

    @property
    def words(self) -> str:
        """``12 x RuntimeError: step 17 exploded (and 3 more that differ in numbers)``."""
        count = f"{len(self.episodes):,} x " if len(self.episodes) > 1 else ""
        more = f" (and {self.variants - 1:,} more that differ in numbers)" if self.variants > 1 else ""
        return f"{count}{self.first_line}{more}"


def error_groups(records: Iterable[EpisodeRecord]) -> list[ErrorGroup]:
    """The errors among ``records``, the most frequent kind first."""
    examples: dict[str, str] = {}
    episodes: dict[str, list[int]] = {}
    variants: dict[str, set[str]] = {}
    for record in records:
        if record.is_error:
            message = record.error or "no message"
            first_line = message.split("\n", 1)[0]
            kind = without_numbers(first_line)
            examples.setdefault(kind, message)
            episodes.setdefault(kind, []).append(record.episode)
            variants.setdefault(kind, set()).add(first_line)
    groups = [ErrorGroup(examples[kind], tuple(hit), len(variants[kind])) for kind, hit in episodes.items()]
    return sorted(groups, key=lambda group: -len(group.episodes))


def without_numbers(text: str) -> str:
    """``text`` with a mark in the place of every number, also a hexadecimal one such as an address.

    >>> without_numbers("step 17 of env 3: at 0x7f2a")
    'step # of env #: at #'
    """
    return _NUMBER.sub(_HOLE, text)
