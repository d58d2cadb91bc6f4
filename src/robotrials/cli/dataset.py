"""``robotrials dataset analyze FULL [CURATED]``: what the actions of a LeRobot dataset look like."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from robotrials.cli import output
from robotrials.cli.positionals import flag_lines, split_words
from robotrials.datasets.analysis.settings import AnalysisSettings
from robotrials.errors import ConfigError
from robotrials.plan.options import build, nearest

ACTIONS = ("analyze",)
_METAVARS = {"output_dir": "DIR", "progress": "COLUMN", "min_length": "N"}

HELP = f"""\
usage: robotrials dataset analyze FULL [CURATED] [--name=value ...]

What the actions of a LeRobot v3 dataset look like over the course of the task:
length of episodes, spread of every joint, pace, and number of ways to move.
Two datasets are compared; rollouts of --eval.dataset are split by outcome.
Writes index.html, analysis.json and figures/*.png. Videos are not opened.

{flag_lines(AnalysisSettings, _METAVARS)}
Needs robotrials[analysis]. Example:
  robotrials dataset analyze data/all data/curated --bands=4
"""


def run(argv: Sequence[str]) -> int:
    """Parse, analyse, write, print; returns the exit status."""
    if any(word in ("--help", "-h") for word in argv):
        output.text(HELP)
        return 0
    paths, settings = parse(argv)
    from robotrials.datasets.analysis.analyse import analyse
    from robotrials.datasets.analysis.export import check_writable, write
    from robotrials.datasets.analysis.page import findings
    from robotrials.machine.threads import available_cores

    folder = settings.output_dir or Path("outputs/analysis") / "_".join(path.resolve().name for path in paths)
    folder = folder.expanduser()
    check_writable(folder)
    analysis = analyse(paths, settings, output.line, available_cores())
    page = write(analysis, folder)
    for line in findings(analysis):
        output.text(line + "\n")
    output.text(f"{page}\n")
    return 0


def parse(argv: Sequence[str]) -> tuple[list[Path], AnalysisSettings]:
    """The datasets and the settings.

    Raises:
        ConfigError: another action than ``analyze``, no dataset or more than two, or a wrong flag.
    """
    words = split_words(argv, "dataset analyze", [field.name for field in dataclasses.fields(AnalysisSettings)])
    flags = words.flags
    action, *paths = words.plain or [""]
    if action not in ACTIONS:
        raise ConfigError(
            f"dataset does what? robotrials dataset analyze FULL [CURATED]; got {action!r}{nearest(action, ACTIONS)}"
        )
    if not 1 <= len(paths) <= 2:
        raise ConfigError(f"dataset analyze takes one dataset or two: FULL [CURATED]; got {len(paths)}")
    settings = build(AnalysisSettings, flags, "--")
    settings.check()
    return [Path(path).expanduser() for path in paths], settings
