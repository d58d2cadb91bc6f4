"""The part of a report of several runs that says which is better: verdicts, a forest plot, and where they differ.

It is ``robotrials compare`` of the runs in their order, the first of them the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from robotrials.errors import ConfigError
from robotrials.reporting import numbers
from robotrials.reporting.charts_html import run_class
from robotrials.reporting.loading import LoadedRun
from robotrials.reporting.markup import Markup, breakable, join, tag
from robotrials.results.compare.comparison import Comparison, ComparisonReport, compare_runs
from robotrials.results.compare.pairing import Pair
from robotrials.results.compare.verdict import BETTER, WORSE, Line, p_words
from robotrials.results.stored import StoredEpisode, read_run

MAX_ROWS = 200
"""Tasks in the forest plot; of more, those with the largest differences."""
MAX_LISTED = 100
"""Episodes listed of each kind."""
_AXES = (0.05, 0.1, 0.25, 0.5, 1.0)
_MINUS = "\N{MINUS SIGN}"

VideoOf = Callable[[int, StoredEpisode], "str | None"]
"""(position of the run, episode) -> the address of a video that a link can open."""


def compare_loaded(runs: Sequence[LoadedRun]) -> ComparisonReport | str | None:
    """The comparison of all runs with the first; why there is none, in words; None for a single run."""
    if len(runs) < 2:
        return None
    try:
        return compare_runs([read_run(run.path) for run in runs])
    except ConfigError as error:
        return str(error)


def comparison_section(found: ComparisonReport | str | None, runs: Sequence[LoadedRun], video: VideoOf) -> Markup:
    """Empty for a single run."""
    if found is None:
        return Markup("")
    heading = tag("h2", "Comparison", tag("small", f"every difference is a run minus {runs[0].label}"))
    if isinstance(found, str):
        return tag("section", heading, tag("p", found, class_="note"), id="section-comparison")
    verdicts = [_verdict(comparison, i, runs[i].label) for i, comparison in enumerate(found.against_first, 1)]
    differing = [
        _differing(comparison, i, runs, video)
        for i, comparison in enumerate(found.against_first, 1)
        if comparison.pairing.paired
    ]
    return tag(
        "section",
        heading,
        tag("div", *verdicts, class_="verdicts"),
        _letters(found, runs),
        _forest(found.against_first),
        _notes(found),
        *differing,
        id="section-comparison",
    )


def _verdict(comparison: Comparison, position: int, label: str) -> Markup:
    line, kind = comparison.overall, comparison.verdict.kind
    test = f"{line.test}: {p_words(line.p)}" if line.p is not None else "no test"
    if comparison.adjusted_p is not None:
        test += f", after Holm {p_words(comparison.adjusted_p)}"
    if comparison.pairing.sequential and comparison.anytime_p is not None:
        test += f", valid under looking {p_words(comparison.anytime_p)} (decides here)"
    return tag(
        "article",
        tag("h3", tag("span", class_=f"swatch {run_class(position)}"), label),
        tag("p", comparison.verdict.words, class_=f"says {_KINDS.get(kind, 'open')}"),
        tag("p", f"{comparison.pairing.why[0].upper()}{comparison.pairing.why[1:]}. {test}.", class_="note"),
    )


_KINDS = {BETTER: "better", WORSE: "worse"}


def _letters(report: ComparisonReport, runs: Sequence[LoadedRun]) -> Markup | None:
    """Best first; runs that share a letter cannot be told apart."""
    if report.ranking is None:
        return None
    entries = [
        tag(
            "li",
            tag("span", class_=f"swatch {run_class(at)}"),
            f"{runs[at].label} ",
            tag("b", letters),
            f" {numbers.percent(report.sides[at].rate)}",
        )
        for at, letters in zip(report.ranking.order, report.ranking.letters, strict=True)
    ]
    why = f"Best first. Runs that share a letter cannot be told apart (Holm, {report.options.level:g})."
    return join(tag("ul", *entries, class_="legend letters"), tag("p", why, class_="note"))


# -- the forest plot


def _forest(comparisons: Sequence[Comparison]) -> Markup:
    """A row for each task, group and the mean; a lane for each run: the difference with its interval."""
    tasks = _rows([comparison.tasks for comparison in comparisons])
    groups = _rows([comparison.groups for comparison in comparisons])
    left_out = max(0, len(tasks) - MAX_ROWS)
    if left_out:
        kept = set(sorted(tasks, key=lambda name: -_largest(tasks[name]))[:MAX_ROWS])
        tasks = {name: row for name, row in tasks.items() if name in kept}
    overall: list[Line | None] = [comparison.overall for comparison in comparisons]
    axis = _axis([line for row in (*tasks.values(), *groups.values(), overall) for line in row if line is not None])
    rows = [_row(name, row, axis) for name, row in tasks.items()] if len(tasks) > 1 else []
    totals = [_row(name, row, axis) for name, row in groups.items()]
    title = next(iter(tasks)) if len(tasks) == 1 else "All tasks"
    totals.append(_row(title, overall, axis, "overall"))
    head = tag(
        "tr",
        tag("th", "Task", scope="col"),
        tag("th", "Difference in points, 95 % interval", scope="col"),
        tag("th", "Points", scope="col", class_="num"),
        tag("th", "Won–lost", scope="col", class_="num opt"),
        tag("th", "p", scope="col", class_="num opt"),
    )
    note = f"The {MAX_ROWS} tasks with the largest differences; {left_out:,} others are not shown. " if left_out else ""
    if len(tasks) > 1:
        note += "The p of single tasks is not corrected for their number."
    return join(
        tag(
            "div",
            tag(
                "table",
                tag("thead", head, _axis_row(axis)),
                tag("tbody", *rows),
                tag("tbody", *totals, class_="suites"),
                class_="figures forest",
            ),
            class_="scroll",
        ),
        tag("p", note, class_="note") if note else None,
    )


def _rows(of_each: Sequence[Sequence[Line]]) -> dict[str, list[Line | None]]:
    rows: dict[str, list[Line | None]] = {}
    for i, lines in enumerate(of_each):
        for line in lines:
            rows.setdefault(line.name, [None] * len(of_each))[i] = line
    return rows


def _largest(row: Sequence[Line | None]) -> float:
    return max((abs(line.difference) for line in row if line is not None and line.difference is not None), default=0.0)


def _axis(lines: Iterable[Line]) -> float:
    """The end of the axis: the first round number that holds every interval."""
    widest = max((max(map(abs, line.interval)) for line in lines if line.interval is not None), default=1.0)
    return next((end for end in _AXES if widest <= end), 1.0)


def _row(name: str, row: Sequence[Line | None], axis: float, class_: str | None = None) -> Markup:
    points = [tag("span", _points(line), class_="lane") for line in row]
    won = [
        tag("span", "–" if line is None or line.wins is None else f"{line.wins}–{line.losses}", class_="lane")
        for line in row
    ]
    ps = [tag("span", _p(line), class_="lane") for line in row]
    return tag(
        "tr",
        tag("th", breakable(name), scope="row"),
        tag("td", _difference_plot(row, axis)),
        tag("td", *points, class_="num"),
        tag("td", *won, class_="num opt"),
        tag("td", *ps, class_="num opt"),
        class_=class_,
    )


def _difference_plot(row: Sequence[Line | None], axis: float) -> Markup:
    """The differences on an axis from minus to plus ``axis``, one lane each; positions are percentages."""
    height = 24 * len(row)
    shapes = [
        tag("line", class_="zero" if x == 50 else "tick", x1=f"{x}%", x2=f"{x}%", y1=0, y2=height)
        for x in (0, 25, 50, 75, 100)
    ]
    spoken = []
    for i, line in enumerate(row):
        if line is None or line.difference is None or line.interval is None:
            spoken.append("nothing to compare")
            continue
        kind, y = run_class(i + 1), 24 * i + 12
        low, middle, high = (
            f"{50.0 + 50.0 * max(-1.0, min(1.0, x / axis)):.2f}%"
            for x in (line.interval[0], line.difference, line.interval[1])
        )
        shapes.append(tag("line", class_=f"span {kind}", x1=low, x2=high, y1=y, y2=y))
        shapes.append(tag("circle", class_=f"dot difference {kind}", cx=middle, cy=y, r=5))
        spoken.append(
            f"{_signed(line.difference)} points, interval {_signed(line.interval[0])} to {_signed(line.interval[1])}"
        )
    return tag("svg", *shapes, class_="plot", width="100%", height=height, role="img", aria_label="; ".join(spoken))


def _axis_row(axis: float) -> Markup:
    marks = [
        tag("text", _whole(value * axis), x=f"{x}%", y=10, text_anchor="middle", class_="tick-label")
        for x, value in ((0, -1.0), (25, -0.5), (50, 0.0), (75, 0.5), (100, 1.0))
    ]
    drawing = tag("svg", *marks, class_="plot", width="100%", height=12, aria_hidden="true")
    empty = tag("td")
    return tag("tr", empty, tag("td", drawing, class_="axis"), empty, empty, empty, class_="axis-row")


def _p(line: Line | None) -> str:
    """The number alone: the column's head says what it is."""
    return "–" if line is None or line.p is None else p_words(line.p).removeprefix("p ").removeprefix("= ")


def _whole(value: float) -> str:
    points = 100.0 * value
    return f"{points:+g}".replace("-", _MINUS) if points else "0"


def _signed(value: float) -> str:
    return f"{100.0 * value:+.1f}".replace("-", _MINUS)


def _points(line: Line | None) -> str:
    if line is None or line.difference is None or not math.isfinite(line.difference):
        return "–"
    return _signed(line.difference)


# -- notes and episodes


def _notes(report: ComparisonReport) -> Markup | None:
    notes = list(report.notes)
    for comparison in report.against_first:
        prefix = f"{comparison.other.name}: " if len(report.against_first) > 1 else ""
        notes += [f"{prefix}{note}" for note in comparison.pairing.notes]
    return tag("ul", *(tag("li", note) for note in dict.fromkeys(notes)), class_="caveats") if notes else None


def _differing(comparison: Comparison, position: int, runs: Sequence[LoadedRun], video: VideoOf) -> Markup:
    """The episodes in which one of the two succeeded and the other did not, to open and to watch."""
    blocks = []
    for winner, loser, pairs in (
        (0, position, [pair for pair in comparison.differing if pair.baseline.success]),
        (position, 0, [pair for pair in comparison.differing if pair.other.success]),
    ):
        summary = tag(
            "summary",
            tag("b", numbers.count(len(pairs), "episode")),
            f"in which {runs[winner].label} succeeded and {runs[loser].label} did not",
        )
        more = len(pairs) - MAX_LISTED
        blocks.append(
            tag(
                "details",
                summary,
                tag("ol", *(_pair(pair, position, runs, video) for pair in pairs[:MAX_LISTED]), class_="pairs"),
                tag("p", f"and {more:,} more: robotrials compare --json", class_="note") if more > 0 else None,
                open=0 < len(pairs) <= 12,
            )
        )
    return tag("div", *blocks, class_="differing")


def _pair(pair: Pair, position: int, runs: Sequence[LoadedRun], video: VideoOf) -> Markup:
    episode = pair.baseline
    scene = [] if episode.seed is None else [f"seed {episode.seed}"]
    scene += [] if episode.init_state is None else [f"initial state {episode.init_state}"]
    videos = (video(0, pair.baseline), video(position, pair.other))
    links = []
    if all(videos):
        links = [
            tag("a", tag("span", class_=f"swatch {run_class(at)}"), runs[at].label, href=address, class_="watch")
            for at, address in zip((0, position), videos, strict=True)
        ]
    return tag(
        "li",
        tag("a", breakable(episode.name), href=f"#episode={episode.name}&run=0", data_episode=episode.name),
        tag("span", ", ".join(scene), class_="suite"),
        *links,
    )
