"""Words to stdout and stderr that survive a reader who went away.

A pipe that closes early (``| head``), or a terminal that is gone, must neither stop a run nor change its exit status:
what is left to say then goes nowhere.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def said_if_long(words: str, after_s: float = 3.0) -> Iterator[None]:
    """Say on stderr what is going on where it takes longer than ``after_s`` seconds."""
    timer = threading.Timer(after_s, line, [f"{words} ..."])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


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


def open_streams() -> None:
    """Give the process a stdout and a stderr that lead nowhere where the shell closed them (``>&-``): Python has None
    there, and any file that is opened next would take their numbers."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            if nowhere != number:
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "w", closefd=False))


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
    except OSError as error:
        silence(stream)
        # EPIPE: the reader has enough. EIO: the terminal hung up. Anything else, a full disk say, is worth a word.
        if stream is sys.stdout and error.errno not in (errno.EPIPE, errno.EIO):
            _write(sys.stderr, f"stdout cannot be written: {error.strerror}\n")


def _styled(word: str, code: str) -> str:
    coloured = is_lively(sys.stderr) and not os.environ.get("NO_COLOR")
    return f"\033[{code}m{word}\033[0m" if coloured else word
