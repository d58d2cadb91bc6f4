"""HTML that cannot be broken by the text in it: every string is escaped unless this module made it.

Task names, error messages and configuration come from simulators, policies and other people's repositories, so nothing
is ever pasted into a page. That is all a report needs of a template engine; it costs no dependency, so that every run
gets its page whatever is installed.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from typing import Any

_VOID = frozenset({"br", "col", "hr", "input", "link", "meta", "source", "wbr"})


class Markup(str):
    """A string that is HTML already. Only ``tag``, ``text`` and ``join`` make one."""

    __slots__ = ()


def text(words: object) -> Markup:
    """``words`` as text of a page, or of a quoted attribute; lone surrogates are written out as escapes."""
    if isinstance(words, Markup):
        return words
    return Markup(html.escape(str(words).encode("utf-8", "backslashreplace").decode("utf-8")))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element. Attributes: ``class_="x"`` is class, ``data_rate`` is data-rate, ``_viewBox`` keeps its underscore
    off; None and False leave one out, True writes it bare.

    >>> tag("td", "a < b", class_="name")
    '<td class="name">a &lt; b</td>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*parts: object) -> Markup:
    """Parts one after the other, each escaped unless it is markup; None leaves one out."""
    return Markup("".join(text(part) for part in parts if part is not None))


def breakable(name: str) -> Markup:
    """A long identifier that may go on in the next line after ``_``, ``-`` and ``/``, and nowhere else."""
    return join(*(part if part else tag("wbr") for part in re.split(r"(?<=[_/-])()", name)))


def data_block(identifier: str, content: Any) -> Markup:
    """``content`` as JSON in a ``<script>`` that is data: nothing in it can end the element or be run.

    Numbers that do not exist become null.
    """
    written = json.dumps(finite(content), separators=(",", ":"), allow_nan=False)
    for character, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        written = written.replace(character, escape)
    return Markup(f'<script type="application/json" id="{text(identifier)}">{written}</script>')


def finite(content: Any) -> Any:
    """``content`` with null for NaN and infinities, tuples as lists."""
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {str(key): finite(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [finite(value) for value in content]
    return content


def _attribute(key: str, value: object) -> str:
    name = key.strip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return "" if value is False else f' {name}="{text(value)}"'
