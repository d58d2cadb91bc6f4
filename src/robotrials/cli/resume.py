"""``robotrials resume DIR``: go on with a run that stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from robotrials.cli import output
from robotrials.cli.help import EXIT_STATUS
from robotrials.cli.verb import INTERVAL, Flag, Verb
from robotrials.errors import ConfigError
from robotrials.plan.config import StatsSettings
from robotrials.plan.options import build, coerce

VERB = Verb(
    name="resume",
    usage=("resume DIR [--dry_run] [--stats.interval=NAME]",),
    about="""
    Go on with the run in DIR, as it was configured there. Finished episodes are kept; episodes that ended in an error
    are tried again. On a finished run this only prints its table, and needs neither simulator nor policy.
    """,
    flags=(
        Flag("dry_run", "print the plan and what is left of it; start nothing"),
        replace(INTERVAL, help="method of the intervals from now on"),
    ),
    ending=EXIT_STATUS,
    is_open=True,
)


def run(argv: Sequence[str]) -> int:
    """Parse, prepare what is left, run, print; returns the exit status."""
    directory, dry_run, stats = parse_resume(argv)
    from robotrials.cli.runner import carry_out
    from robotrials.run.prepare import prepare_resume
    from robotrials.run.stored_run import finished_run

    finished = finished_run(directory, stats)  # its simulator need not be installed any more
    if finished is None:
        with output.said_if_long("checking the benchmark and the policy"):
            prepared = prepare_resume(directory, stats)
    return carry_out(finished or prepared, dry_run=dry_run)


def parse_resume(argv: Sequence[str]) -> tuple[Path, bool, StatsSettings | None]:
    """The directory, whether ``--dry_run`` was given, and ``--stats.*``, which changes no outcome.

    Raises:
        ConfigError: no directory, more than one, or a flag: a run goes on as it was configured.
    """
    words = VERB.parse(argv)
    flags = dict(words.flags)
    dry_run = coerce(flags.pop("dry_run", False), bool, "--dry_run")
    chosen = {name.removeprefix("stats."): value for name, value in flags.items() if name.startswith("stats.")}
    stats = build(StatsSettings, chosen, "--stats.") if chosen else None
    for name, value in flags.items():
        if not name.startswith("stats."):
            raise ConfigError(
                f"resume takes no --{name}={value}: a run goes on as it was configured; to change how it is carried "
                "out, give `robotrials eval` the same flags as before, that one, and the same --output_dir"
            )
    if len(words.plain) != 1:
        raise ConfigError(f"resume takes one run directory: robotrials resume DIR; got {len(words.plain)}")
    return Path(words.plain[0]).expanduser(), dry_run, stats
