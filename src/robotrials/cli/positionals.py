"""The command line of a verb that takes plain words (directories, files) and a few flags."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.options import coerce, nearest

_COLUMN = 26


@dataclass(frozen=True)
class Words:
    """What was typed: words that are no flag, in order, and flags by name, with underscores."""

    plain: tuple[str, ...]
    flags: Mapping[str, str] = field(default_factory=dict)

    def refuse_plain(self) -> None:
        """
        Raises:
            ConfigError: there is a word that is no flag.
        """
        if self.plain:
            raise ConfigError(f"unexpected {self.plain[0]!r}: flags are written --name=value")

    def number(self, name: str, default: float) -> float:
        """The flag as a finite number that is not negative.

        Raises:
            ConfigError: it is none.
        """
        value: float = coerce(self.flags.get(name, default), float, f"--{name}")
        if not 0 <= value < math.inf:
            raise ConfigError(f"--{name} must not be negative, got {self.flags[name]}")
        return value

    def truth(self, name: str, default: bool = False) -> bool:
        """The flag as true or false.

        Raises:
            ConfigError: it is neither.
        """
        value: bool = coerce(self.flags.get(name, default), bool, f"--{name}")
        return value


def split_words(
    argv: Sequence[str], verb: str, known: Collection[str] | None, bare: Mapping[str, str] | None = None
) -> Words:
    """Read ``argv``: ``--name=value``, ``--name value``, or bare where ``bare`` says what it means (a value then needs
    the equals sign). Dashes in a name are underscores. ``known`` None: any name, which the caller checks.

    Raises:
        ConfigError: an unknown flag, one given twice, or one without its value.
    """
    bare = bare or {}
    plain: list[str] = []
    flags: dict[str, str] = {}
    words = list(argv)
    while words:
        word = words.pop(0)
        if re.fullmatch(r"-[A-Za-z].*", word):  # a path that begins so is written ./-x
            raise ConfigError(f"unexpected {word!r}: flags are written --name=value; see robotrials {verb} --help")
        if not word.startswith("--"):
            plain.append(word)
            continue
        written, equals, value = word[2:].partition("=")
        name = written.replace("-", "_")
        if known is not None and name not in known:
            hint = nearest(f"--{name}", [f"--{flag}" for flag in known])
            raise ConfigError(f"robotrials {verb} knows no --{written}{hint}; see robotrials {verb} --help")
        if name in flags:
            raise ConfigError(f"--{name} is given twice")
        if not equals and name in bare:
            value = bare[name]
        elif not equals and words and not words[0].startswith("--"):
            value = words.pop(0)
        if value == "":
            raise ConfigError(f"--{name} needs a value: --{name}=VALUE")
        flags[name] = value
    return Words(tuple(plain), flags)


def flag_lines(settings: Any, metavars: Mapping[str, str]) -> str:
    """The fields of a dataclass as lines of a help page, with their help and default; at most 80 columns."""
    import textwrap

    lines = []
    for entry in dataclasses.fields(settings):
        choices = entry.metadata.get("choices")
        value = "|".join(choices) if choices else metavars.get(entry.name, "N")
        default = "" if entry.default in (None, "", dataclasses.MISSING) else f" [{entry.default}]"
        head = f"  --{entry.name}={value}".ljust(_COLUMN)
        text = textwrap.wrap(entry.metadata["help"] + default, 80 - _COLUMN, break_on_hyphens=False)
        if len(head) > _COLUMN:
            lines.append(head)
            head = " " * _COLUMN
        lines.append(head + text[0])
        lines += [" " * _COLUMN + rest for rest in text[1:]]
    return "\n".join(lines) + "\n"
