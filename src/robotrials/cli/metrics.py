"""``robotrials metrics DIR``: what continuous integration wants of a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from robotrials.cli import output
from robotrials.errors import ConfigError

if TYPE_CHECKING:
    from robotrials.results.reopened import RunFigures

COMPLETE, PARTIAL, BELOW = 0, 2, 3

HELP = """\
usage: robotrials metrics DIR [--min-success=X] [flags]

Write what continuous integration reads of a run directory: metrics.json (the
fields of lerobot's CI, intervals, task descriptions), junit.xml (a test for
each task and one over all), and a summary in Markdown, which goes to the page
of the step where GitHub Actions says ($GITHUB_STEP_SUMMARY), else to
summary.md. Works on a run that is still going, too.

  --min-success=X         success asked for, 0.8 or 80%: the exit status says
                          whether the mean over tasks reaches it. In junit.xml a
                          single task fails when its whole interval is below it
  --confident             the lower end of the interval must reach it
  --stats.interval=wilson|exact|jeffreys
                          method of the intervals [the run's]
  --junit=tasks|episodes  what a test is in junit.xml [tasks]
  --output_dir=DIR        where the files go [the run directory]

Exit status
  0  complete, and --min-success is reached
  1  no run, or a flag that cannot be meant
  2  episodes erred or are missing: no verdict
  3  below --min-success
"""
FLAGS = ("min_success", "confident", "stats.interval", "junit", "output_dir")


def run(argv: Sequence[str]) -> int:
    """Parse, read, write, say in a line; returns the exit status."""
    if any(word in ("--help", "-h") for word in argv):
        output.text(HELP)
        return COMPLETE
    from robotrials.cli.positionals import split_words
    from robotrials.results.filesystem import write_atomically
    from robotrials.results.reopened import reopen
    from robotrials.stats.intervals import METHODS

    words = split_words(argv, "metrics", FLAGS, {"confident": "true"})
    if len(words.plain) != 1:
        raise ConfigError(f"metrics takes one run directory: robotrials metrics DIR; got {len(words.plain)}")
    method, unit = words.flags.get("stats.interval"), words.flags.get("junit", "tasks")
    if method is not None and method not in METHODS:
        raise ConfigError(f"--stats.interval must be one of {', '.join(METHODS)}; got {method!r}")
    if unit not in ("tasks", "episodes"):
        raise ConfigError(f"--junit must be tasks or episodes; got {unit!r}")
    wanted = _min_success(words.flags.get("min_success"))
    figures = reopen(Path(words.plain[0]), method)
    folder = Path(words.flags.get("output_dir", words.plain[0])).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in _files(figures, wanted, unit).items():
            write_atomically(folder / name, content)
            output.line(f"wrote {folder / name}")
        _write_summary(figures, wanted, folder)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}") from None
    return _judge(figures, wanted, words.truth("confident"))


def _min_success(text: str | None) -> float | None:
    if text is None:
        return None
    number, percent = text.removesuffix("%"), text.endswith("%")
    try:
        value = float(number) / (100.0 if percent else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"--min-success must lie between 0 and 1, or be written in per cent (80%); got {text!r}")
    return value


def _files(figures: RunFigures, wanted: float | None, unit: str) -> dict[str, bytes]:
    from robotrials.results.export.eval_info import metrics, strict_json
    from robotrials.results.export.junit import episode_report, task_report
    from robotrials.results.stored import read_run

    content = metrics(figures.plan, figures.summary, figures.config, figures.wall_s)
    stored = read_run(figures.path)
    episodes = stored.episodes
    name = f"{figures.policy} on {figures.env}"
    if unit == "episodes":
        junit = episode_report(name, episodes, stored.out_of_order)
    else:
        errors = {(e.suite, e.task): e.error or "" for e in reversed(episodes) if e.is_error}
        junit = task_report(name, figures.summary, wanted, errors)
    return {"metrics.json": strict_json(content).encode(), "junit.xml": junit}


def _write_summary(figures: RunFigures, wanted: float | None, folder: Path) -> None:
    from robotrials.results.export.step_summary import step_summary
    from robotrials.results.filesystem import write_atomically

    words = step_summary(figures, wanted)
    page = os.environ.get("GITHUB_STEP_SUMMARY")
    if page:
        with open(page, "a", encoding="utf-8") as file:  # other steps' words are on the page already
            file.write(words)
        output.line("added a table to the summary of this step")
        return
    write_atomically(folder / "summary.md", words.encode())
    output.line(f"wrote {folder / 'summary.md'}")


def _judge(figures: RunFigures, wanted: float | None, confident: bool) -> int:
    from robotrials.cli import draw

    overall = figures.summary.overall
    if overall.rate is None or overall.interval is None:
        words = figures.summary.out_of_order or "no episode has finished"
        output.text(f"success: none, {words}\n")
        return PARTIAL
    low, high = overall.interval
    line = f"success {draw.percent(overall.rate)} [{100 * low:.1f}, {100 * high:.1f}]"
    line += f", {overall.n_success}/{overall.n_finished}, {draw.count(overall.n_errors, 'error')}"
    line += f", {overall.n_missing:,} not run" if overall.n_missing else ""
    line += f"; {figures.summary.out_of_order}" if overall.n_out_of_order else ""
    if wanted is not None:
        what, value = ("lower end", low) if confident else ("rate", overall.rate)
        reached = value >= wanted
        line += f"; the {what} is {'at least' if reached else 'below'} the {100 * wanted:.1f} % asked for"
    output.text(line + "\n")
    if not figures.summary.complete:
        return PARTIAL
    return BELOW if wanted is not None and not reached else COMPLETE
