"""The pages of the documentation, and the command lines that stand in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = tuple(
    sorted(
        [
            *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md")),
            *DOCS.rglob("*.md"),
            *(ROOT / "examples").rglob("README.md"),
            *(ROOT / "docker").rglob("README.md"),
        ]
    )
)

SHELL = frozenset({"bash", "sh", "shell", "console"})
"""Languages of a fence whose every line is typed into a terminal (``console``: every line that begins with a $)."""
RUN = "<!-- run -->"
"""Stands on the line before a fence whose commands a test carries out, one after the other."""

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>\S*)")
_PLACEHOLDER = re.compile(r"<[A-Za-z][A-Za-z ]*>")
_INLINE = re.compile(r"(?<!`)`(robotrials [^`]+)`(?!`)")
_SEPARATORS = frozenset({"&&", "||", ";", "|", "&"})


@dataclass(frozen=True)
class Command:
    """One command of one page. ``words`` are as a shell would split them, variables set before it left out."""

    page: str
    line: int
    words: tuple[str, ...]
    inline: bool = False

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {' '.join(self.words)}"


@dataclass(frozen=True)
class Block:
    """A block of code: ``lines`` without fence and indentation, the first of them line ``first`` of its page."""

    page: str
    first: int
    language: str
    lines: tuple[str, ...]
    is_run: bool = False


def blocks(page: Path) -> Iterator[Block]:
    """Fenced blocks, and those that are indented by four spaces after an empty line."""
    name, lines = _name(page), page.read_text(encoding="utf-8").splitlines()
    i = 0
    while i < len(lines):
        fence = _FENCE.match(lines[i])
        if fence:
            indent = len(fence["indent"])
            end = next((j for j in range(i + 1, len(lines)) if lines[j].strip() == "```"), len(lines))
            inside = tuple(line[indent:] for line in lines[i + 1 : end])
            yield Block(name, i + 2, fence["info"], inside, i > 0 and lines[i - 1].strip() == RUN)
            i = end + 1
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()):
            ends = (j for j in range(i, len(lines)) if lines[j].strip() and not lines[j].startswith("    "))
            end = next(ends, len(lines))
            yield Block(name, i + 1, "", tuple(line[4:] for line in lines[i:end]))
            i = end
        else:
            i += 1


def commands(page: Path) -> Iterator[Command]:
    """Commands of shell blocks, those that begin with ``robotrials`` in other blocks, and those within a sentence."""
    for block in blocks(page):
        yield from commands_of(block)
    for number, line in enumerate(_without_blocks(page), start=1):
        for found in _INLINE.finditer(line):
            for words in split(found.group(1)):
                yield Command(_name(page), number, words, inline=True)


def commands_of(block: Block) -> Iterator[Command]:
    for number, line in _joined(block):
        prompted = line.startswith("$ ")
        if block.language == "console" and not prompted:
            continue
        line = line[2:] if prompted else line
        if block.language not in SHELL and not line.startswith("robotrials "):
            continue
        for words in split(line):
            yield Command(block.page, number, words)


def split(line: str) -> list[tuple[str, ...]]:
    """The commands of one line of a terminal, each as its words; comments, variables and redirections are left out."""
    lexer = shlex.shlex(_PLACEHOLDER.sub("...", line), posix=True, punctuation_chars="<>|&;")
    lexer.whitespace_split, lexer.commenters = True, "#"
    found: list[list[str]] = [[]]
    redirected = False
    for word in lexer:
        if word in _SEPARATORS:
            found.append([])
        elif word in (">", ">>", "<"):
            redirected = True
        elif redirected:
            redirected = False
        elif found[-1] or not re.match(r"[A-Z_]+=", word):
            found[-1].append(word)
    return [tuple(words) for words in found if words]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name


def _joined(block: Block) -> Iterator[tuple[int, str]]:
    """Lines, with those that a backslash continues and the number of the first; without empty ones and comments."""
    pending, began = "", 0
    for number, line in enumerate(block.lines, start=block.first):
        began = began or number
        if line.rstrip().endswith("\\"):
            pending += line.rstrip()[:-1] + " "
            continue
        whole = (pending + line).strip()
        if whole and not whole.startswith("#"):
            yield began, whole
        pending, began = "", 0


def _without_blocks(page: Path) -> list[str]:
    lines = page.read_text(encoding="utf-8").splitlines()
    for block in blocks(page):
        for number in range(block.first, block.first + len(block.lines)):
            lines[number - 1] = ""
    return lines


def prose(page: Path) -> list[str]:
    """The page's lines with code, in blocks and within a line, taken out: where links are."""
    return [re.sub(r"`[^`]*`", "", line) for line in _without_blocks(page)]
