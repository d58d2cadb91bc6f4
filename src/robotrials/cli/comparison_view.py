"""The tables of ``robotrials compare``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from robotrials.cli import draw
from robotrials.cli.facts import fact_lines, wrapped
from robotrials.cli.grid import Grid, Line, Section
from robotrials.results.compare.comparison import Comparison, ComparisonReport, Side
from robotrials.results.compare.pairing import Pair
from robotrials.results.compare.verdict import BETTER, WORSE, p_words
from robotrials.results.compare.verdict import Line as TaskLine

_NAME_ROOM = 16
"""Cells a task's name should have before another column is worth its place."""
_STYLES = {BETTER: "bold green", WORSE: "bold red"}


def comparison_lines(report: ComparisonReport, console: Console, n_listed: int) -> list[Text]:
    """All lines: the runs, then each run against the first, then what they are about."""
    marks = draw.glyphs(console)
    lines = [Text(), *_sides(report, console, marks), Text()]
    for comparison in report.against_first:
        lines += _against_first(comparison, report, console, marks, n_listed)
    notes = [*report.notes, *_setup_notes(report)]
    lines += fact_lines((("Notes" if i == 0 else "", Text(note)) for i, note in enumerate(notes)), console)
    return lines


def _setup_notes(report: ComparisonReport) -> list[str]:
    """What differs from the baseline's setup; of several runs, with those of which it is true."""
    runs: dict[str, list[str]] = {}
    for comparison in report.against_first:
        for note in comparison.pairing.notes:
            runs.setdefault(note, []).append(comparison.other.name)
    if len(report.against_first) == 1:
        return list(runs)
    return [f"{', '.join(names)}: {note}" for note, names in runs.items()]


def _sides(report: ComparisonReport, console: Console, marks: draw.Glyphs) -> list[Text]:
    """One line a run; best first, with letters, where there are several."""
    ranking = report.ranking
    order = ranking.order if ranking else range(len(report.sides))
    titles = ["Run", "Success", "Rate", "95 % interval", "Errors", *(["Letters"] if ranking else [])]
    runs = []
    for place, at in enumerate(order):
        side = report.sides[at]
        cells = [
            Text(f"{side.successes}/{side.finished}"),
            *_rate(side, marks),
            Text(str(side.errors), "bold red" if side.errors else "bright_black"),
            *([Text(ranking.letters[place], "bold")] if ranking else []),
        ]
        runs.append(Line(side.name + (" (baseline)" if at == 0 else ""), cells))
    lines = Grid(titles, "lrrrr" + ("l" if ranking else ""), [Section(runs)]).render(console)
    if ranking:
        lines.append(
            Text(f"Runs that share a letter cannot be told apart (Holm, {report.options.level:g})", "bright_black")
        )
    return lines


def _rate(side: Side, marks: draw.Glyphs) -> list[Text]:
    if side.rate is None or side.interval is None:
        return [Text("none", "bright_black"), Text()]
    return [Text(draw.percent(side.rate), "bold"), Text(draw.interval(*side.interval, marks))]


def _against_first(
    comparison: Comparison, report: ComparisonReport, console: Console, marks: draw.Glyphs, n_listed: int
) -> list[Text]:
    one, other = comparison.baseline.name, comparison.other.name
    why = Text(comparison.pairing.why, "bright_black")
    lines = [Text(f"{other} against {one}", "bold"), *wrapped(why, console.width), Text()]
    lines += _table(comparison, report.task_ids, console, marks)
    lines.append(Text())
    verdict = Text(comparison.verdict.words, _STYLES.get(comparison.verdict.kind, "bold"))
    facts: list[tuple[str, str | Text]] = [("Verdict", verdict), ("Tests", _tests(comparison))]
    if comparison.pairing.paired:
        facts += _differing(comparison, report, n_listed)
    return [*lines, *fact_lines(facts, console), Text()]


def _table(comparison: Comparison, ids: Mapping[str, int], console: Console, marks: draw.Glyphs) -> list[Text]:
    titles = ["Baseline", "Other", "Difference", "95 % interval", "p"]
    if comparison.pairing.paired:
        titles.insert(3, "Won-lost")
    grid = _grid(comparison, titles, ids, marks)
    for optional in ("Won-lost", "95 % interval"):
        if grid.room_for_names(console.width) >= min(grid.longest_name(full=False), _NAME_ROOM):
            break
        titles = [title for title in titles if title != optional]
        grid = _grid(comparison, titles, ids, marks)
    lines = grid.render(console)
    if len(comparison.tasks) > 1:
        lines.append(Text("The p of single tasks is not corrected for their number", "bright_black"))
    return lines


def _grid(comparison: Comparison, titles: Sequence[str], ids: Mapping[str, int], marks: draw.Glyphs) -> Grid:
    sections = _by_suite(comparison.tasks, titles, ids, marks)
    if comparison.groups:
        sections.append(Section([Line(line.name, _cells(line, titles, marks)) for line in comparison.groups]))
    if len(comparison.tasks) > 1:
        overall = comparison.overall
        sections.append(Section([Line(overall.name, _cells(overall, titles, marks), style="bold")], ruled=True))
    return Grid(["Task", *titles], "l" + "r" * len(titles), sections)


def _by_suite(
    tasks: Sequence[TaskLine], titles: Sequence[str], ids: Mapping[str, int], marks: draw.Glyphs
) -> list[Section]:
    """A section for every suite of several tasks, under its name; the others are lines of one without a title."""
    suites: dict[str, list[Line]] = {}
    alone: list[Line] = []
    members = Counter(line.name.partition("/")[0] for line in tasks if "/" in line.name)
    for task in tasks:
        suite, _, name = task.name.partition("/")
        cells, number = _cells(task, titles, marks), ids.get(task.name)
        if members[suite] > 1:
            suites.setdefault(suite, []).append(Line(name, cells, number))
        else:
            alone.append(Line(task.name, cells, number))
    return [
        *([Section(alone)] if alone else []),
        *(Section(own, Line(suite, style="bold")) for suite, own in suites.items()),
    ]


def _cells(line: TaskLine, titles: Sequence[str], marks: draw.Glyphs) -> list[Text]:
    cells: dict[str, Text] = {}
    for title, (_, n), rate in zip(("Baseline", "Other"), (line.baseline, line.other), line.rates, strict=True):
        cells[title] = Text("none", "bright_black") if rate is None or not n else Text(draw.percent(rate))
    if line.difference is not None and line.interval is not None and line.p is not None:
        low, high = line.interval
        cells["Difference"] = Text(f"{100 * line.difference:+.1f}", "bold")
        cells["Won-lost"] = Text(f"{line.wins}-{line.losses}")
        cells["95 % interval"] = Text(f"{100 * low:+.1f} {marks.interval} {100 * high:+.1f}")
        cells["p"] = Text(p_words(line.p).removeprefix("p ").removeprefix("= "))
    return [cells.get(title, Text()) for title in titles]


def _tests(comparison: Comparison) -> str:
    line = comparison.overall
    if line.p is None:
        return "none"
    words = f"{line.test}: {p_words(line.p)}"
    if line.mid_p is not None:
        words += f", mid-{p_words(line.mid_p)}"
    if comparison.adjusted_p is not None:
        words += f", after Holm {p_words(comparison.adjusted_p)}"
    if comparison.anytime_p is not None:
        words += f", valid under looking {p_words(comparison.anytime_p)}"
    if comparison.pairing.sequential:
        did = "stopped" if comparison.pairing.stopped else "would have stopped"
        words += f" (decides here: the run {did} on this comparison)"
    return words


def _differing(comparison: Comparison, report: ComparisonReport, n_listed: int) -> list[tuple[str, str | Text]]:
    """The episodes in which one succeeded and one failed: first those that the baseline alone won."""
    one, other = comparison.baseline.name, comparison.other.name
    lost = [pair for pair in comparison.differing if pair.baseline.success]
    won = [pair for pair in comparison.differing if pair.other.success]
    facts: list[tuple[str, str | Text]] = []
    folders = {side.name: _folder(path) for side, path in zip(report.sides, report.paths, strict=True)}
    for title, pairs, winner in (("Lost", lost, one), ("Won", won, other)):
        head = f"{draw.count(len(pairs), 'episode')} in which {winner} alone succeeded"
        facts.append((title, Text(head, "bold")))
        for pair in pairs[:n_listed]:
            facts += [("", line) for line in _pair_lines(pair, folders[one], folders[other])]
        if len(pairs) > n_listed:
            facts.append(("", Text(f"and {len(pairs) - n_listed:,} more: --episodes=N, or --json", "bright_black")))
    return facts


def _pair_lines(pair: Pair, one: Path, other: Path) -> list[Text]:
    episode = pair.baseline
    state = "" if episode.init_state is None else f", initial state {episode.init_state}"
    seed = "" if episode.seed is None else f"  seed {episode.seed}{state}"
    lines = [Text(f"{episode.name}{seed}")]
    videos = [(folder, e.video) for folder, e in ((one, pair.baseline), (other, pair.other)) if e.video]
    lines += [Text(f"  {folder / video}", "bright_black") for folder, video in videos]
    return lines


def _folder(path: str) -> Path:
    found = Path(path)
    return found.parent if found.suffix == ".json" else found
