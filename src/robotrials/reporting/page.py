"""One self-contained HTML file: style, script and data inside, nothing from anywhere else.

The content security policy allows exactly the style and the script of this package, by their hashes: whatever text
might get into a page, nothing else in it can run, and nothing can be fetched or sent anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from robotrials.reporting.markup import Markup, join, tag
from robotrials.version import __version__

GENERATOR = "robotrials"
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' "
    "rx='4' fill='%23233'/%3E%3Cpath d='M3 8h10' stroke='%235fd3b0' stroke-width='2'/%3E%3Ccircle cx='9' cy='8' r='3' "
    "fill='%235fd3b0'/%3E%3C/svg%3E"
)


def page(title: str, body: Markup, styles: Sequence[str], scripts: Sequence[str], data: Sequence[Markup] = ()) -> bytes:
    """The file, UTF-8. ``styles`` and ``scripts`` name files of ``assets/``, ``data`` holds ``data_block`` elements."""
    style = "\n".join(asset(name) for name in styles)
    script = '(() => {\n"use strict";\n' + "\n".join(asset(name) for name in scripts) + "\n})();"
    # Videos lie beside the page, or inside it. A page opened from a disk has no origin, so that 'self' may not match.
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "img-src data:",
            "media-src 'self' file: data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content=f"{GENERATOR} {__version__}"),
        tag("title", title),
        tag("link", rel="icon", href=_ICON),
        Markup(f"<style>{style}</style>"),
    )
    content = join(body, *data, Markup(f"<script>{script}</script>"))
    html = f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>{content}</body>\n</html>\n'
    return html.encode("utf-8")


def asset(name: str) -> str:
    return resources.files("robotrials.reporting").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode()
