"""``robotrials report DIR...``: one self-contained HTML page of one run, or of several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from robotrials.cli import draw, output
from robotrials.cli.positionals import Words
from robotrials.cli.verb import Flag, Verb
from robotrials.errors import ConfigError

EMBED_MB = 50.0
VERB = Verb(
    name="report",
    usage=("report DIR... [--output=FILE] [--embed_videos=MB]",),
    about="""
    Make one HTML page of a run, or of several side by side: success rates with intervals, every task, where the time
    went, errors, configuration, and the videos, failures first. The page works offline and on a phone; `eval` writes
    it when it ends.
    """,
    flags=(
        Flag("output", "default DIR/report.html, or report.html here for several", value="FILE"),
        Flag(
            "embed_videos",
            "put up to so many megabytes of videos into the page, failures first, to send it as one file; bare: 50. "
            "Others are linked by their place beside the page",
            value="MB",
            bare=str(EMBED_MB),
        ),
    ),
    ending="Exit status: 0, or 1 when there is no run, or the page cannot be written.",
)


@dataclass(frozen=True)
class ReportCall:
    directories: tuple[Path, ...]
    output: Path | None
    embed_bytes: int


def run(argv: Sequence[str]) -> int:
    """Parse, write, say where; returns the exit status."""
    call = parse_report(argv)
    from robotrials.reporting.report import write_report

    made = write_report(call.directories, call.output, call.embed_bytes)
    videos = draw.count(made.linked + made.embedded, "video")
    where = f", {made.embedded} of them inside" if made.embedded else ""
    output.text(f"{made.path} ({made.size / 1e6:.1f} MB, {videos}{where})\n")
    return 0


def parse_report(argv: Sequence[str]) -> ReportCall:
    """The runs and the options.

    Raises:
        ConfigError: no run, an unknown flag, or a limit that is no number.
    """
    words: Words = VERB.parse(argv)
    if not words.plain:
        raise ConfigError("report takes run directories: robotrials report DIR...")
    target = words.flags.get("output")
    megabytes = words.number("embed_videos", 0.0)
    return ReportCall(
        tuple(Path(word).expanduser() for word in words.plain), Path(target) if target else None, int(megabytes * 1e6)
    )
