"""``robotrials show RUN``: the table of a run again, finished or not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from robotrials.cli import draw, output
from robotrials.cli.verb import INTERVAL, Flag, Verb
from robotrials.errors import ConfigError
from robotrials.plan.config import StatsSettings

VERB = Verb(
    name="show",
    usage=("show RUN [--markdown | --latex] [--stats.interval=NAME]",),
    about="""
    Print the table of a run again, finished or not, as `eval` does when it ends. RUN is a run directory. Nothing is
    written and nothing is run: neither the simulator nor the policy need be installed, and the run may be going on.
    """,
    flags=(
        Flag("markdown", "a table in Markdown, with intervals, to paste"),
        Flag("latex", "a table in LaTeX (booktabs), with intervals, to paste"),
        INTERVAL,
    ),
    ending="Exit status: 0, or 1 when there is no run, or it cannot be read.",
)


def run(argv: Sequence[str]) -> int:
    """Parse, read, print; returns the exit status."""
    from robotrials.plan.options import build

    words = VERB.parse(argv)
    if len(words.plain) != 1:
        raise ConfigError(f"show takes one run directory: robotrials show RUN; got {len(words.plain)}")
    markdown, latex = words.truth("markdown"), words.truth("latex")
    if markdown and latex:
        raise ConfigError("give --markdown or --latex, not both")
    interval = words.flags.get("stats.interval")
    stats = build(StatsSettings, {"interval": interval}, "--stats.") if interval else None
    directory = Path(words.plain[0]).expanduser()
    if markdown or latex:
        output.text(_to_paste(directory, stats, latex))
    else:
        _show(directory, stats)
    return 0


def _to_paste(directory: Path, stats: StatsSettings | None, latex: bool) -> str:
    from robotrials.results.export.latex import latex_table
    from robotrials.results.export.step_summary import step_summary
    from robotrials.results.reopened import reopen

    figures = reopen(directory, stats.interval if stats is not None else None)
    return latex_table(figures) if latex else step_summary(figures)


def _show(directory: Path, stats: StatsSettings | None) -> None:
    from robotrials.cli.listing import show
    from robotrials.cli.outcome import report_lines
    from robotrials.cli.runner import closing, title
    from robotrials.run.stored_run import prepare_stored, result_so_far

    prepared = prepare_stored(directory, stats)
    result = result_so_far(prepared)
    settled = prepared.done - prepared.errors
    spent = draw.duration(result.wall_s)
    words = f"{settled:,} of {draw.count(len(prepared.plan), 'episode')} have an outcome, after {spent} of running"
    output.line(f"{title(prepared)}: {words}")
    show(report_lines(prepared, result, draw.make_console(sys.stdout), ran=""))
    for line in closing(result):
        output.line(line)
