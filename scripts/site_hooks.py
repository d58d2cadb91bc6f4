"""What MkDocs does besides, for this site: help pages and options from the code, and pages for files outside of docs/.

Pages link to files of the repository (``../src/...``, ``../examples/...``), as they should for who reads them there. On
the site each such file becomes a page below ``source/``, and the links lead to it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")
_LANGUAGES = {".py": "python", ".sh": "bash", ".yml": "yaml", ".yaml": "yaml", ".toml": "toml", ".json": "json"}
_TEXT = {"LICENSE", "Makefile", "Dockerfile"}


def on_files(files: Files, config: Any) -> Files:
    """Add a page for every file outside of docs/ that a page leads to, and for those that these lead to."""
    seen: set[str] = set()
    waiting = [(f"docs/{file.src_uri}", file.content_string) for file in files.documentation_pages()]
    while waiting:
        source, text = waiting.pop()
        for link, _ in _LINK.findall(text):
            target = _shown(_resolve(source, link))
            if target is None or target in seen or target.startswith("docs/"):
                continue
            seen.add(target)
            content = _page_of(target)
            files.append(File.generated(config, _place(target), content=content))
            waiting.append((target, content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links to where their files are on the site, and put in what the code says."""
    uri = page.file.src_uri
    source = uri.removeprefix("source/").removesuffix(".md") if uri.startswith("source/") else f"docs/{uri}"
    if uri.startswith("source/") and not (ROOT / source).exists():
        source += ".md"
    here = posixpath.dirname(uri)

    def moved(found: re.Match[str]) -> str:
        target = _shown(_resolve(source, found[1]))
        if target is None:
            return found[0]
        place = target.removeprefix("docs/") if target.startswith("docs/") else _place(target)
        return posixpath.relpath(place, here or ".") + (found[2] or "")

    markdown = _LINK.sub(moved, markdown)
    markdown = markdown.replace("<!-- help of every verb -->", _help_pages())
    return markdown.replace("<!-- options of every benchmark -->", _benchmark_options())


def _resolve(source: str, link: str) -> str:
    """The path of ``link`` in the repository, as it stands in the file ``source``."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _shown(path: str) -> str | None:
    """What stands for ``path``: itself, or the README of a folder that has one; None for what is not there."""
    if (ROOT / path / "README.md").is_file():
        path = posixpath.join(path, "README.md")
    return path if (ROOT / path).exists() and not path.startswith("..") else None


def _place(target: str) -> str:
    return f"source/{target}" if target.endswith(".md") else f"source/{target}.md"


def _page_of(target: str) -> str:
    path = ROOT / target
    if path.is_dir():
        rows = [f"| `{file.name}` | {file.stat().st_size:,} |" for file in sorted(path.iterdir())]
        return "\n".join([f"# {path.name}", "", f"`{target}`", "", "| file | bytes |", "|---|---|", *rows])
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    if path.suffix not in _LANGUAGES and path.name not in _TEXT:
        return f"# {path.name}\n\nA file of {path.stat().st_size:,} bytes, `{target}` in the repository.\n"
    text = path.read_text(encoding="utf-8").rstrip()
    return f"# {path.name}\n\n`{target}`\n\n````{_LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n"


def _help_pages() -> str:
    from robotrials.cli.main import VERBS, main

    pages = []
    for verb in VERBS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            main([verb, "--help"])
        pages.append(f"## robotrials {verb}\n\n```text\n{printed.getvalue().rstrip()}\n```\n")
    return "\n".join(pages)


def _benchmark_options() -> str:
    from robotrials.benchmarks import registry

    parts = []
    for name in registry.names():
        rows = [
            f"| `--env.{field.name}` | {_default(field)} | {field.metadata['help'].replace('|', ' or ')} |"
            for field in dataclasses.fields(registry.benchmark_class(name).Config)
            if field.metadata.get("help")
        ]
        table = "\n".join(["| flag | default | |", "|---|---|---|", *rows])
        parts.append(f"## {name}\n\n[About it](../benchmarks/{name}.md)\n\n{table}\n")
    return "\n".join(parts)


def _default(field: Any) -> str:
    if field.default is dataclasses.MISSING or field.default in (None, ""):
        return ""
    value = field.default
    text = str(value).lower() if isinstance(value, bool) else ",".join(value) if isinstance(value, tuple) else value
    choices = field.metadata.get("choices")
    others = f" of {', '.join(f'`{choice}`' for choice in choices)}" if choices else ""
    return f"`{text}`{others}"
