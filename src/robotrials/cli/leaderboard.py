"""``robotrials leaderboard``: models by suites, from runs, files of results and repositories of the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from robotrials.cli import draw, output
from robotrials.cli.verb import Flag, Verb
from robotrials.errors import ConfigError

VERB = Verb(
    name="leaderboard",
    usage=("leaderboard PATH... [--repos=FILE] [--suites=A,B] [--output=F]",),
    about="""
    Rank models on one HTML page and in a CSV beside it. PATH is a run directory, an eval_info.json (ours, or
    lerobot-eval's), or a folder that holds such. Models whose intervals overlap with the best share its rank; a model
    that lacks a suite, a task or episodes is shown, but not ranked. Where episodes erred, the interval covers whatever
    they would have come to (the worst case), marked.
    """,
    flags=(
        Flag(
            "repos",
            "model repositories of the Hub, one a line, # for comments (needs robotrials[hub]); their eval_info.json "
            "are read",
            value="FILE",
        ),
        Flag("suites", "only these suites, or all suites of these benchmarks", value="A,B"),
        Flag("output", "default leaderboard.html, here", value="FILE"),
    ),
    ending="""\
Exit status: 0; 2 when a file could not be read or a repository of the list gave
no results: each is named, and the others are ranked; 1 when there is nothing to
rank, or results are given twice.""",
)
COMPLETE, PARTIAL = 0, 2


@dataclass(frozen=True)
class LeaderboardCall:
    paths: tuple[Path, ...]
    repos: Path | None
    suites: tuple[str, ...]
    output: Path


def run(argv: Sequence[str]) -> int:
    """Parse, read, write, say where; returns the exit status."""
    call = parse_leaderboard(argv)
    from robotrials.reporting.leaderboard import write_leaderboard
    from robotrials.reporting.sources import read_list, read_local

    sources, not_read = read_local(call.paths)
    if call.repos is not None:
        from robotrials.reporting.hub_reading import read_repositories

        found, lines = read_repositories(read_list(call.repos))
        sources += found
        not_read += lines
    made = write_leaderboard(sources, call.output, call.suites, not_read)
    for line in not_read:
        output.note(line)
    for line in made.board.not_alike:
        output.note(f"not measured alike: {line}")
    models = made.board.models
    apart = sum(not model.cells[0].is_complete for model in models)
    words = f", {apart} of them incomplete and not ranked overall" if apart else ""
    output.text(f"{made.html}\n{made.csv}\n{draw.count(len(models), 'model')}{words}\n")
    return PARTIAL if not_read else COMPLETE


def parse_leaderboard(argv: Sequence[str]) -> LeaderboardCall:
    """The sources and the options.

    Raises:
        ConfigError: no source, or an unknown flag.
    """
    words = VERB.parse(argv)
    if not words.plain and "repos" not in words.flags:
        raise ConfigError(
            "leaderboard takes runs, eval_info.json files or --repos=FILE: robotrials leaderboard PATH..."
        )
    repos = words.flags.get("repos")
    return LeaderboardCall(
        tuple(Path(word).expanduser() for word in words.plain),
        Path(repos).expanduser() if repos else None,
        tuple(name.strip() for name in words.flags.get("suites", "").split(",") if name.strip()),
        Path(words.flags.get("output", "leaderboard.html")),
    )
