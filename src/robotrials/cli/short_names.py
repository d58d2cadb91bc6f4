"""Long names in little room: what a table's names have in common stands once, and the rest is cut in the middle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SEPARATORS = "_/ .-"
_WORDS = re.compile(rf"[^{_SEPARATORS}]*[{_SEPARATORS}]|[^{_SEPARATORS}]+")
_WORTH = 4
"""Characters that names must have in common before they are moved to a line of their own."""


@dataclass(frozen=True)
class ShortNames:
    """``names`` as they are shown, in the order given; ``pattern`` is what they have in common, with a mark where each
    differs, empty where nothing was taken out."""

    names: tuple[str, ...]
    pattern: str = ""


def shorten(names: Sequence[str], room: int, mark: str) -> ShortNames:
    """``names`` in at most ``room`` characters each (at least 3), different ones shown differently where possible.

    >>> shorten(["pick_the_cup_on_the_stove", "pick_the_cup_on_the_plate"], 12, "~")
    ShortNames(names=('stove', 'plate'), pattern='pick_the_cup_on_the_~')
    """
    if all(len(name) <= room for name in names):
        return ShortNames(tuple(names))
    head, tail = common_ends(names)
    pattern = f"{head}{mark}{tail}" if head or tail else ""
    middles = [name[len(head) : len(name) - len(tail)] for name in names]
    return ShortNames(cut_apart(middles, room, mark), pattern)


def common_ends(names: Sequence[str]) -> tuple[str, str]:
    """The whole words that all ``names`` begin and end with; empty where that is little, or leaves nothing of one."""
    if len(set(names)) < 2:
        return "", ""
    head = _whole_words(_shared_start(names))
    rests = [name[len(head) :] for name in names]
    tail = _whole_words(_shared_start([rest[::-1] for rest in rests]))[::-1]
    if any(len(rest) <= len(tail) for rest in rests):
        tail = ""
    if len(head) + len(tail) < _WORTH or any(len(name) == len(head) for name in names):
        return "", ""
    return head, tail


def _shared_start(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    n = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:n]


def _whole_words(text: str) -> str:
    return text[: max((text.rfind(separator) for separator in _SEPARATORS), default=-1) + 1]


def cut_apart(names: Sequence[str], room: int, mark: str) -> tuple[str, ...]:
    """Each name in ``room`` characters, ``mark`` in the place of what is missing."""
    shown = [cut_middle(name, room, mark) for name in names]
    for cut in (_around_difference, _by_words):
        for places in _alike(names, shown):
            for i, other in zip(places, cut([names[i] for i in places], room, mark), strict=True):
                shown[i] = other
    return tuple(shown)


def _alike(names: Sequence[str], shown: Sequence[str]) -> list[list[int]]:
    """Places of different names that are shown the same."""
    places: dict[str, list[int]] = {}
    for i, text in enumerate(shown):
        places.setdefault(text, []).append(i)
    return [same for same in places.values() if len({names[i] for i in same}) > 1]


def cut_middle(name: str, room: int, mark: str) -> str:
    """``abcdefghij`` in 6 characters: ``abc~ij``."""
    if len(name) <= room:
        return name
    tail = (room - len(mark)) // 2
    return name[: room - len(mark) - tail] + mark + name[len(name) - tail :]


def _by_words(names: Sequence[str], room: int, mark: str) -> list[str]:
    """Names that differ in several places: of each the words that not all have, and from its beginning what fits."""
    split = [_WORDS.findall(name) for name in names]
    common = set.intersection(*map(set, split))
    shown = []
    for words in split:
        kept = {i for i, word in enumerate(words) if word not in common}
        for i in range(len(words)):
            if len(_joined(words, kept | {i}, mark)) <= room:
                kept.add(i)
        short = _joined(words, kept, mark)
        shown.append(short if len(short) <= room else cut_middle("".join(words), room, mark))
    return shown


def _joined(words: Sequence[str], kept: set[int], mark: str) -> str:
    """The words in ``kept``, and a mark for each run of others."""
    parts: list[str] = []
    for i, word in enumerate(words):
        if i in kept:
            parts.append(word)
        elif parts[-1:] != [mark]:
            parts.append(mark)
    return "".join(parts)


def _around_difference(names: Sequence[str], room: int, mark: str) -> list[str]:
    """Names whose ends are alike: the part of each in which they differ."""
    begin = len(_shared_start(names))
    end = len(_shared_start([name[begin:][::-1] for name in names]))
    shown = []
    for name in names:
        core = name[begin : len(name) - end] or name[begin:]
        inner = room - 2 * len(mark)
        if len(core) < inner:  # some of what comes before it, so that it can be read
            core = name[max(0, begin - (inner - len(core))) : len(name) - end]
        shown.append(mark + cut_middle(core, inner, mark) + mark if len(core) < len(name) else core[:room])
    return shown
