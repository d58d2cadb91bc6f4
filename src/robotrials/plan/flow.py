"""Maps and lists as people type them: JSON, and YAML's flow style, which needs no quotes (``{a: b, c: [1, 2]}``).

Workers read the options of a benchmark too, and have no PyYAML: what is read here is what YAML 1.1 reads, without
anchors, tags, comments and dates.
"""

from __future__ import annotations

import json
import re
from typing import Any

_MAX_DEPTH = 50
_WORDS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
_INT = re.compile(r"[-+]?\d+")
_FLOAT = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?")


def read_flow(text: str) -> Any:
    """The value that ``text`` means.

    >>> read_flow("{agentview_image: camera1, sizes: [1, 2.5]}")
    {'agentview_image': 'camera1', 'sizes': [1, 2.5]}

    Raises:
        ValueError: it is neither JSON nor flow style; the message says what is wrong, and where.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    reader = _Reader(text)
    value = reader.value(0, ends="")
    reader.skip()
    if reader.at < len(text):
        raise reader.error(f"unexpected {text[reader.at]!r}")
    return value


class _Reader:
    """A position in a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def error(self, problem: str) -> ValueError:
        return ValueError(f"{problem} at character {self.at + 1}")

    def skip(self) -> None:
        while self._next.isspace():
            self.at += 1

    @property
    def _next(self) -> str:
        return self._text[self.at : self.at + 1]

    def value(self, depth: int, ends: str) -> Any:
        """What begins here; a plain word goes on to one of ``ends``."""
        self.skip()
        if depth > _MAX_DEPTH:
            raise self.error("it is nested too deeply")
        if self._next == "{":
            return self._map(depth)
        if self._next == "[":
            return self._list(depth)
        if self._next in ("'", '"') and self._next:
            return self._quoted()
        return _scalar(self._plain(ends))

    def _map(self, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        self.at += 1
        while not self._closes("}"):
            key = self._key()
            self._expect(":")
            if key in found:
                raise self.error(f"{key!r} is given twice, the second time")
            found[key] = self.value(depth + 1, ",}")
            self._separate("}")
        return found

    def _key(self) -> Any:
        self.skip()
        return self._quoted() if self._next in ("'", '"') and self._next else _scalar(self._plain(":,}"))

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        while not self._closes("]"):
            found.append(self.value(depth + 1, ",]"))
            self._separate("]")
        return found

    def _closes(self, bracket: str) -> bool:
        self.skip()
        if self._next != bracket:
            return False
        self.at += 1
        return True

    def _separate(self, bracket: str) -> None:
        self.skip()
        if self._next == ",":
            self.at += 1
        elif self._next != bracket:
            raise self.error(f"expected a comma or {bracket}")

    def _expect(self, sign: str) -> None:
        self.skip()
        if self._next != sign:
            raise self.error(f"expected {sign!r}")
        self.at += 1

    def _quoted(self) -> str:
        quote, begin = self._next, self.at
        if quote == '"':
            try:
                value, self.at = json.JSONDecoder().raw_decode(self._text, self.at)
            except json.JSONDecodeError as error:
                raise self.error(f"{error.msg}, in a text that begins") from None
            return str(value)
        end = re.compile(r"'((?:[^']|'')*)'").match(self._text, begin)
        if end is None:
            raise self.error("a quote that is not closed,")
        self.at = end.end()
        return end[1].replace("''", "'")

    def _plain(self, ends: str) -> str:
        """A word without quotes. A colon ends a key; within a value it needs a space behind it to be one."""
        begin = self.at
        while self._next and not (self._next in ends and (self._next != ":" or self._is_colon())):
            if self._next in "{}[]" or (self._next == ":" and ends and self._is_colon()):
                raise self.error(f"unexpected {self._next!r}")
            self.at += 1
        return self._text[begin : self.at].strip()

    def _is_colon(self) -> bool:
        following = self._text[self.at + 1 : self.at + 2]
        return following in ("", ",", "}", "]") or following.isspace()


def _scalar(word: str) -> Any:
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if _INT.fullmatch(word):
        return int(word)
    return float(word) if _FLOAT.fullmatch(word) else word
