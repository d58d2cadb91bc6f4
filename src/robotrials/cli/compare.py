"""``robotrials compare A B [C ...]``: which run is better, and how sure that is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from robotrials.cli import output
from robotrials.errors import ConfigError

COMPLETE, MISCONFIGURED, NO_VERDICT, WORSE = 0, 1, 2, 3

HELP = """\
usage: robotrials compare BASELINE OTHER [OTHER ...] [flags]

Compare runs with the first one: run directories, or eval_info.json files (ours
or lerobot-eval's) that list their episodes. Episodes of the same task, seed and
initial state are compared pair by pair (McNemar's exact test, Agresti and Min's
interval); runs of other seeds by Barnard's test and Newcombe's interval. Three
runs or more also get letters: runs that share one cannot be told apart (Holm).
Every difference is OTHER minus BASELINE; tasks weigh the same.

  --margin=X            a difference below it does not matter [0.05]
  --level=X             how often equal policies may be told apart [0.05]; all
                        intervals are 95 % ones, whatever it is
  --stats.interval=wilson|exact|jeffreys
                        method of the intervals of single rates [wilson]
  --pair_by_order       the k-th episode of a task is the same in all files
                        (for files that do not name their seeds)
  --episodes=N          episodes listed in which the runs differ [10]
  --json                everything as JSON, all differing episodes included
  --fail-if-worse       exit with 3 when an OTHER is worse than BASELINE

Exit status
  0  compared
  1  a run cannot be read, or the runs share no task
  2  --fail-if-worse, and no verdict: a run lacks episodes, or so many erred
     that less than half could be compared
  3  --fail-if-worse, and one is worse
"""
FLAGS = ("margin", "level", "stats.interval", "pair_by_order", "episodes", "json", "fail_if_worse")
BARE = {"pair_by_order": "true", "json": "true", "fail_if_worse": "true"}


def run(argv: Sequence[str]) -> int:
    """Parse, read, compare, print; returns the exit status."""
    if any(word in ("--help", "-h") for word in argv):
        output.text(HELP)
        return COMPLETE
    from robotrials.cli.positionals import split_words
    from robotrials.plan.options import coerce
    from robotrials.results.compare.comparison import Options, compare_runs, why_no_verdict
    from robotrials.results.compare.verdict import WORSE as IS_WORSE
    from robotrials.results.stored import read_run
    from robotrials.stats.intervals import METHODS

    words = split_words(argv, "compare", FLAGS, BARE)
    interval = words.flags.get("stats.interval", "wilson")
    if interval not in METHODS:
        raise ConfigError(f"--stats.interval must be one of {', '.join(METHODS)}; got {interval!r}")
    options = Options(
        level=_fraction(words.number("level", 0.05), "level"),
        margin=_fraction(words.number("margin", 0.05), "margin"),
        interval=interval,
        by_order=words.truth("pair_by_order"),
    )
    n_listed = coerce(words.flags.get("episodes", "10"), int, "--episodes")
    if n_listed < 0:
        raise ConfigError(f"--episodes must not be negative, got {n_listed}")
    report = compare_runs([read_run(Path(path)) for path in words.plain], options)
    if words.truth("json"):
        from robotrials.results.export.eval_info import strict_json

        output.text(strict_json(to_json(report)))
    else:
        from robotrials.cli import draw
        from robotrials.cli.comparison_view import comparison_lines
        from robotrials.cli.listing import show

        show(comparison_lines(report, draw.make_console(sys.stdout), n_listed))
    if not words.truth("fail_if_worse"):
        return COMPLETE
    unjudged = [why for why in map(why_no_verdict, report.against_first) if why]
    for why in unjudged:
        output.note(f"no verdict: {why}")
    if any(comparison.verdict.kind == IS_WORSE for comparison in report.against_first):
        return WORSE
    return NO_VERDICT if unjudged else COMPLETE


def _fraction(value: float, name: str) -> float:
    if not 0.0 < value < 1.0:
        raise ConfigError(f"--{name} is a fraction between 0 and 1, such as 0.05; got {value:g}")
    return value


def to_json(report: object) -> object:
    """The report as JSON values; a pair as the name, seed, outcomes and videos of its episodes."""
    import dataclasses

    from robotrials.results.compare.pairing import Pair

    def plain(value: object) -> object:
        if isinstance(value, Pair):
            one, other = value.baseline, value.other
            return {
                "suite": one.suite,
                "task": one.task,
                "index": one.index,
                "seed": one.seed,
                "init_state": one.init_state,
                "success": [one.success, other.success],
                "end": [one.end, other.end],
                "steps": [one.steps, other.steps],
                "videos": [one.video, other.video],
            }
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if isinstance(value, dict):
            return {_key(key): plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return value

    return plain(report)


def _key(key: object) -> str:
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)
