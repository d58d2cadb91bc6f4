"""``robotrials merge DIRS... --output_dir=DIR``: one run out of its shards."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from robotrials.cli import draw, output
from robotrials.cli.verb import Verb, flags_of
from robotrials.errors import ConfigError
from robotrials.plan.config import option
from robotrials.plan.options import build

COMPLETE, PARTIAL = 0, 2


@dataclass(frozen=True)
class MergeFlags:
    output_dir: Path | None = option(None, "a new folder, which appears whole or not at all")
    partial: bool = option(False, "merge what is there; the merged run can be resumed")
    allow_mixed: bool = option(False, "merge shards that differ (versions, device), and record it")
    dataset: Path | None = option(
        None, "where the dataset goes, if the shards kept their episodes [<output_dir>/dataset]"
    )


VERB = Verb(
    name="merge",
    usage=("merge DIR DIR ... --output_dir=DIR",),
    about="""
    Make one run out of shards (--eval.num_shards, --eval.shard_id) that were played on machines that share nothing.
    The merged run has the outcomes, videos and logs of all, and equals the unsharded run bit for bit. Gaps, overlaps
    and shards of different runs are refused, naming what differs.
    """,
    flags=flags_of(MergeFlags, output_dir="DIR", dataset="DIR"),
    ending="""
Exit status
  0  every episode of the plan has an outcome
  1  the shards do not make one run
  2  merged, but episodes are missing or erred
""",
)


def run(argv: Sequence[str]) -> int:
    """Parse, merge, print the table; returns the exit status."""
    directories, flags = parse_merge(argv)
    from robotrials.cli.facts import fact_lines
    from robotrials.cli.listing import show
    from robotrials.cli.outcome import places, to_rows
    from robotrials.cli.runner import resume_command, write_page
    from robotrials.cli.table import results_table
    from robotrials.run.merge import merge_runs

    assert flags.output_dir is not None
    merged = merge_runs(directories, flags.output_dir, _Lines(), flags.allow_mixed, flags.partial, flags.dataset)
    write_page(merged.output_dir)
    facts: list[tuple[str, str | Text]] = [
        ("Merged", f"{draw.count(len(directories), 'shard')} of one run"),
        *([("Mixed", "yes: run.json says in what the shards differ")] if merged.mixed else []),
        *places(merged.output_dir),
        *([("Dataset", str(merged.dataset.plan.path))] if merged.dataset is not None else []),
    ]
    console = draw.make_console(sys.stdout)
    table = results_table(*to_rows(merged.summary, merged.plan.tasks), console)
    show([Text(), *table, Text(), *fact_lines(facts, console)])
    if merged.summary.complete:
        return COMPLETE
    left = draw.count(merged.missing, "episode is missing", "episodes are missing")
    erred = draw.count(merged.summary.overall.n_errors, "ended in an error", "ended in an error")
    output.line(f"Not complete: {left}, {erred}. To go on:\n  {resume_command(merged.output_dir)}")
    return PARTIAL


def parse_merge(argv: Sequence[str]) -> tuple[list[Path], MergeFlags]:
    """The directories, and the flags.

    Raises:
        ConfigError: an unknown, repeated or ill-typed flag, no directory, or no ``--output_dir``.
    """
    words = VERB.parse(argv)
    directories, flags = words.plain, build(MergeFlags, words.flags, "--")
    if not directories:
        raise ConfigError(
            "merge takes the run directories of the shards: robotrials merge DIR DIR ... --output_dir=DIR"
        )
    if flags.output_dir is None:
        raise ConfigError("merge needs --output_dir=DIR: where the merged run goes")
    return [Path(word) for word in directories], flags


class _Lines:
    """What the making of a dataset says."""

    def on_progress(self, snapshot: object) -> None:
        pass

    def on_message(self, text: str) -> None:
        output.line(text)
