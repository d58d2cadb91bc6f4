"""Words to stdout and stderr that survive a reader who went away.

A pipe that closes early (``| head``), or a terminal that is gone, must neither stop a run nor change its exit status:
what is left to say then goes nowhere.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO


def text(words: str) -> None:
    """Write to stdout, as it is."""
    _write(sys.stdout, words)


def note(words: str) -> None:
    """One line on stderr."""
    _write(sys.stderr, f"{_styled('note:', '33')} {words}\n")


def line(words: str) -> None:
    """One line on stderr, as it is."""
    _write(sys.stderr, words + "\n")


def error(words: str) -> None:
    """The message of an error on stderr; its first word red on a terminal (never under NO_COLOR)."""
    flush()
    _write(sys.stderr, f"{_styled('error:', '1;31')} {words}\n")


def flush() -> None:
    """Hand over what is buffered, so that the interpreter's own flush at exit finds nothing that can fail."""
    for stream in (sys.stdout, sys.stderr):
        _write(stream, "")


def silence(stream: TextIO) -> None:
    """Send whatever else is written to ``stream`` nowhere: its reader is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def is_lively(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def _write(stream: TextIO, words: str) -> None:
    try:
        stream.write(words)
        stream.flush()
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(words.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except OSError:  # BrokenPipeError, or EIO from a terminal that hung up
        silence(stream)


def _styled(word: str, code: str) -> str:
    coloured = is_lively(sys.stderr) and not os.environ.get("NO_COLOR")
    return f"\033[{code}m{word}\033[0m" if coloured else word
