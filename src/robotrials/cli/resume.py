"""``robotrials resume DIR``: go on with a run that stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from robotrials.cli import output
from robotrials.errors import ConfigError
from robotrials.plan.config import StatsSettings
from robotrials.plan.options import build


def run(argv: Sequence[str]) -> int:
    """Parse, prepare what is left, run, print; returns the exit status."""
    if any(word in ("--help", "-h") for word in argv):
        from robotrials.cli.help import RESUME

        output.text(RESUME)
        return 0
    directory, dry_run, stats = parse_resume(argv)
    from robotrials.cli.runner import carry_out
    from robotrials.running.prepare import prepare_resume
    from robotrials.running.stored_run import finished_run

    finished = finished_run(directory, stats)  # its simulator need not be installed any more
    return carry_out(finished or prepare_resume(directory, stats), dry_run=dry_run)


def parse_resume(argv: Sequence[str]) -> tuple[Path, bool, StatsSettings | None]:
    """The directory, whether ``--dry_run`` was given, and ``--stats.*``, which changes no outcome.

    Raises:
        ConfigError: no directory, more than one, or a flag: a run goes on as it was configured.
    """
    stats = None
    chosen = [word for word in argv if word.startswith("--stats.")]
    if chosen:
        given = (word[len("--stats.") :].partition("=") for word in chosen)
        stats = build(StatsSettings, {name: value for name, _, value in given}, "--stats.")
        argv = [word for word in argv if word not in chosen]
    flags = {word.replace("-", "_") for word in argv if word.startswith("-")}
    if unknown := flags - {"__dry_run"}:
        flag = next(word for word in argv if word.replace("-", "_") in unknown)
        raise ConfigError(
            f"resume takes no {flag}: a run goes on as it was configured; to change how it is carried out, "
            "give `robotrials eval` the same flags as before, that one, and the same --output_dir"
        )
    directories = [word for word in argv if not word.startswith("-")]
    if len(directories) != 1:
        raise ConfigError(f"resume takes one run directory: robotrials resume DIR; got {len(directories)}")
    return Path(directories[0]).expanduser(), bool(flags), stats
