"""Which run is better: two or more stored runs, compared episode by episode where they played the same ones.

The first run is the baseline; every difference is "the other minus the baseline". Nothing is printed here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from robotrials.errors import ConfigError
from robotrials.results.compare.pairing import Pair, Pairing, pair_up, was_decided, watched_against
from robotrials.results.compare.same_tasks import benchmark_of, match_tasks
from robotrials.results.compare.verdict import Line, Verdict, judge
from robotrials.results.counting import out_of_order_words
from robotrials.results.stored import StoredEpisode, StoredRun
from robotrials.results.summary import gap_words
from robotrials.stats.intervals import Interval, suite_rate
from robotrials.stats.multiple import compact_letters, holm
from robotrials.stats.paired import PairCounts, mcnemar, weighted_difference
from robotrials.stats.sequential import PairedTest
from robotrials.stats.unpaired import barnard, mantel_haenszel, square_and_add

TaskKey = tuple[str, str]


@dataclass(frozen=True)
class Options:
    """``margin``: a difference below it does not matter (a fraction); ``interval``: the method of the rates' intervals;
    ``by_order``: take the k-th episode of a task for the same in both runs where a file names no seeds."""

    level: float = 0.05
    margin: float = 0.05
    interval: str = "wilson"
    by_order: bool = False


@dataclass(frozen=True)
class Side:
    """One run in a comparison, over the tasks compared: tasks weigh the same. ``rate`` None: nothing has finished."""

    name: str
    successes: int
    finished: int
    errors: int
    missing: int
    rate: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Comparison:
    """Two runs. ``pooled`` is the difference with every pair (or episode) weighing the same, with its interval; it is
    that of ``overall`` where all tasks have equally many. ``anytime_p`` is valid although one looked while it ran.
    ``differing`` lists the pairs in which one succeeded and one failed, ``adjusted_p`` is Holm's over all
    comparisons."""

    baseline: Side
    other: Side
    pairing: Pairing
    overall: Line
    tasks: tuple[Line, ...]
    groups: tuple[Line, ...]
    differing: tuple[Pair, ...]
    anytime_p: float | None
    verdict: Verdict
    adjusted_p: float | None = None


@dataclass(frozen=True)
class Ranking:
    """Several runs, best first: runs that share a letter cannot be told apart (Holm over all pairs, at ``level``)."""

    order: tuple[int, ...]
    letters: tuple[str, ...]
    adjusted_p: Mapping[tuple[int, int], float]


@dataclass(frozen=True)
class ComparisonReport:
    """``against_first``: every other run against the first; ``ranking`` for three runs or more; ``task_ids``: the
    number of each task compared, within its suite, by its name in the lines."""

    names: tuple[str, ...]
    sides: tuple[Side, ...]
    against_first: tuple[Comparison, ...]
    notes: tuple[str, ...]
    options: Options
    ranking: Ranking | None = None
    paths: tuple[str, ...] = field(default=())
    task_ids: Mapping[str, int] = field(default_factory=dict)


def compare_runs(runs: Sequence[StoredRun], options: Options | None = None) -> ComparisonReport:
    """Compare every run with the first, and all with each other when there are three or more.

    Raises:
        ConfigError: fewer than two runs, or runs that share no task.
    """
    options = options or Options()
    if len(runs) < 2:
        raise ConfigError(f"compare takes two runs or more: a baseline and what to compare with it; got {len(runs)}")
    names = short_names([run.path for run in runs])
    matched = match_tasks(runs)
    notes = [note for run, other in zip(runs, matched, strict=True) if (note := _renaming(run, other))]
    notes += [note for name, run in zip(names, matched, strict=True) for note in _notes(name, run)]
    shared = _shared_tasks(matched, names, notes)
    notes += [note for name, run in zip(names, matched, strict=True) if (note := _gap(name, run, shared))]
    sides = tuple(_side(name, run, shared, options) for name, run in zip(names, matched, strict=True))
    pairs = [(0, j) for j in range(1, len(runs))]
    if len(runs) > 2:
        pairs = list(itertools.combinations(range(len(runs)), 2))
    made = {(i, j): _compare(matched[i], matched[j], sides[i], sides[j], shared, options) for i, j in pairs}
    ranking = None
    if len(runs) > 2:
        adjusted = dict(zip(pairs, holm([_decisive_p(made[pair]) for pair in pairs]), strict=True))
        ranking = _rank(sides, adjusted, options.level)
        made = {pair: _adjust(made[pair], adjusted[pair], options, len(pairs)) for pair in pairs}
    return ComparisonReport(
        names,
        sides,
        tuple(made[(0, j)] for j in range(1, len(runs))),
        tuple(notes),
        options,
        ranking,
        tuple(str(run.path) for run in runs),
        {_task_name(task.key): task.id for task in runs[0].tasks if task.key in set(shared)},
    )


_LEAST_COMPARED = 0.5
"""Of the episodes that a run has, so many must be compared for "not worse" to mean something."""


def why_no_verdict(comparison: Comparison) -> str | None:
    """Why "worse" could not have shown, whatever the policies are; None where it could."""
    line = comparison.overall
    for side, compared in ((comparison.baseline, line.baseline[1]), (comparison.other, line.other[1])):
        if side.missing:
            return f"{side.name} is not complete, {side.missing:,} of its episodes have no result"
        if side.errors and compared < _LEAST_COMPARED * (side.finished + side.errors):
            return f"only {compared:,} of {side.finished + side.errors:,} episodes of {side.name} could be compared"
    if line.difference is None:
        return f"{comparison.baseline.name} and {comparison.other.name} have no finished episodes to compare"
    return None


def short_names(paths: Sequence[Any]) -> tuple[str, ...]:
    """The last parts of the paths, as many as it takes to tell them apart; an eval_info.json goes by its folder."""
    parts = [path.absolute().parts[:-1] if path.suffix == ".json" else path.absolute().parts for path in paths]
    for n in range(1, max(map(len, parts)) + 1):
        names = ["/".join(own[-n:]) for own in parts]
        if len(set(names)) == len(names):
            return tuple(names)
    return tuple(f"{'/'.join(own[-1:])} ({i})" for i, own in enumerate(parts, 1))  # one run given twice


# -- two runs


def _compare(
    first: StoredRun, second: StoredRun, one: Side, other: Side, shared: Sequence[TaskKey], options: Options
) -> Comparison:
    pairing, pairs = pair_up(first, second, one.name, other.name, shared, options.by_order)
    cells = _cells(first, second, pairs if pairing.paired else None, shared)
    groups = _by_group(first, shared)
    overall = _line("Overall", list(cells.values()), pairing.paired)
    differing = tuple(pair for pair in pairs if pair.baseline.success != pair.other.success) if pairing.paired else ()
    anytime_p = _anytime_p(pairs, first) if pairing.paired else None
    watched = [run for run, of in ((first, second), (second, first)) if watched_against(run, of)]
    sequential, stopped = bool(watched), any(map(was_decided, watched))
    verdict = judge(
        overall,
        one.name,
        other.name,
        options.level,
        options.margin,
        p=anytime_p if sequential and anytime_p is not None else overall.p,
    )
    return Comparison(
        one,
        other,
        replace(pairing, sequential=sequential, stopped=stopped),
        overall,
        tuple(_line(_task_name(key), [cell], pairing.paired) for key, cell in cells.items()),
        tuple(_line(name, [cells[key] for key in keys], pairing.paired) for name, keys in groups.items()),
        differing,
        anytime_p,
        verdict,
    )


@dataclass(frozen=True)
class _Cell:
    """What two runs came to on one task."""

    baseline: tuple[int, int]
    other: tuple[int, int]
    pairs: PairCounts | None


def _cells(
    first: StoredRun, second: StoredRun, pairs: Sequence[Pair] | None, shared: Sequence[TaskKey]
) -> dict[TaskKey, _Cell]:
    """Paired: both rates are over the pairs alone, so that they differ by the difference that is shown."""
    if pairs is None:
        ours, theirs = _counts(first.episodes), _counts(second.episodes)
        return {key: _Cell(ours.get(key, (0, 0)), theirs.get(key, (0, 0)), None) for key in shared}
    tables: dict[TaskKey, list[int]] = {key: [0, 0, 0, 0] for key in shared}  # pairs, baseline, other, wins
    for pair in pairs:
        table = tables[(pair.baseline.suite, pair.baseline.task)]
        won, won_other = bool(pair.baseline.success), bool(pair.other.success)
        table[0] += 1
        table[1] += won
        table[2] += won_other
        table[3] += won_other and not won
    return {
        key: _Cell((k1, n), (k2, n), PairCounts(n, wins, wins - k2 + k1)) for key, (n, k1, k2, wins) in tables.items()
    }


def _line(name: str, cells: Sequence[_Cell], paired: bool) -> Line:
    cells = [cell for cell in cells if cell.baseline[1] and cell.other[1]]
    baseline = (sum(c.baseline[0] for c in cells), sum(c.baseline[1] for c in cells))
    other = (sum(c.other[0] for c in cells), sum(c.other[1] for c in cells))
    test = "McNemar, exact" if paired else "Barnard"
    if not cells:
        return Line(name, 0, baseline, other, (None, None), None, None, test, None)
    ours, theirs = suite_rate([c.baseline for c in cells]), suite_rate([c.other for c in cells])
    rates = (ours[0], theirs[0])
    if paired:
        counts = [cell.pairs for cell in cells if cell.pairs is not None]
        total = sum(counts, PairCounts(0, 0, 0))
        exact, mid = mcnemar(total.b, total.c)
        difference, low, high = weighted_difference(counts)
        return Line(
            *(name, len(cells), baseline, other, rates, difference, (low, high)),
            *(test, exact, mid, total.n, total.b, total.c),
        )
    even = len({c.baseline[1] for c in cells}) == 1 and len({c.other[1] for c in cells}) == 1
    if even:
        # Where the tasks' rates differ, their sum varies less than the test believes: it errs less often than it says.
        p = barnard(baseline, other)
    else:
        test, p = "Mantel-Haenszel", mantel_haenszel([(c.baseline, c.other) for c in cells])
    return Line(name, len(cells), baseline, other, rates, rates[1] - rates[0], square_and_add(theirs, ours), test, p)


def _anytime_p(pairs: Iterable[Pair], first: StoredRun) -> float:
    """Pairs in balanced order, as a run that may stop early looks at them."""
    position = {task.key: i for i, task in enumerate(first.tasks)}
    test = PairedTest()
    for pair in sorted(pairs, key=lambda p: (p.baseline.index, position[(p.baseline.suite, p.baseline.task)])):
        test.add(bool(pair.other.success), bool(pair.baseline.success))
    return test.anytime_p


def _decisive_p(comparison: Comparison) -> float:
    p = comparison.anytime_p if comparison.pairing.sequential else comparison.overall.p
    return 1.0 if p is None else p


def _adjust(comparison: Comparison, p: float, options: Options, n: int) -> Comparison:
    names = comparison.baseline.name, comparison.other.name
    verdict = judge(comparison.overall, *names, options.level, options.margin, p=p, comparisons=n)
    return replace(comparison, adjusted_p=p, verdict=verdict)


def _rank(sides: Sequence[Side], adjusted: Mapping[tuple[int, int], float], level: float) -> Ranking:
    order = sorted(range(len(sides)), key=lambda i: -(-1.0 if (rate := sides[i].rate) is None else rate))
    place = {run: at for at, run in enumerate(order)}
    different = {tuple(sorted((place[i], place[j]))) for (i, j), p in adjusted.items() if p <= level}
    letters = compact_letters(len(order), {(a, b) for a, b in different})
    return Ranking(tuple(order), tuple(letters), dict(adjusted))


# -- runs


def _side(name: str, run: StoredRun, shared: Sequence[TaskKey], options: Options) -> Side:
    keys = set(shared)
    counts = {key: n for key, n in _counts(run.episodes).items() if key in keys}
    rate: float | None = None
    interval: Interval | None = None
    if any(n for _, n in counts.values()):
        rate, low, high = suite_rate(list(counts.values()), method=options.interval)
        interval = (low, high)
    return Side(
        name,
        sum(k for k, _ in counts.values()),
        sum(n for _, n in counts.values()),
        sum(e.is_error for e in run.episodes if (e.suite, e.task) in keys),
        run.n_missing,
        rate,
        interval,
    )


def _gap(name: str, run: StoredRun, shared: Sequence[TaskKey]) -> str:
    """Which of the compared tasks have no part in the mean of ``run``; empty where all have, or none."""
    counts = _counts(run.episodes)
    absent = [_task_name(key) for key in shared if key not in counts]
    return f"{name}: {gap_words(absent, len(shared), bool(run.out_of_order))}" if 0 < len(absent) < len(shared) else ""


def _counts(episodes: Iterable[StoredEpisode]) -> dict[TaskKey, tuple[int, int]]:
    """Successes and finished episodes of each task; errors are neither."""
    counts: dict[TaskKey, list[int]] = {}
    for episode in episodes:
        if episode.success is not None:
            own = counts.setdefault((episode.suite, episode.task), [0, 0])
            own[0] += episode.success
            own[1] += 1
    return {key: (k, n) for key, (k, n) in counts.items()}


def _shared_tasks(runs: Sequence[StoredRun], names: Sequence[str], notes: list[str]) -> list[TaskKey]:
    """Tasks that all runs have, in the baseline's order; what is left out is noted."""
    for name, run in zip(names[1:], runs[1:], strict=True):
        one, other = benchmark_of(runs[0].env), benchmark_of(run.env)
        # A file's tasks are suites and numbers, which mean something else in another benchmark; directories have names.
        if one and other and one != other and "eval_info" in (runs[0].source, run.source):
            raise ConfigError(
                f"these runs share no task, so there is nothing to compare. {names[0]} is of {one}, {name} of {other}"
            )
    sets = [{task.key for task in run.tasks} for run in runs]
    common = set.intersection(*sets)
    if not common:
        listed = "; ".join(f"{name}: {_some_tasks(run)}" for name, run in zip(names, runs, strict=True))
        raise ConfigError(f"these runs share no task, so there is nothing to compare. {listed}")
    for name, own in zip(names, sets, strict=True):
        if extra := sorted(own - common):
            notes.append(f"{len(extra)} tasks of {name} are not in all runs and are left out: {_few(extra)}")
    return [task.key for task in runs[0].tasks if task.key in common]


def _renaming(before: StoredRun, after: StoredRun) -> str:
    """Which tasks of a run go by the suite that the baseline has them in; empty for none."""
    changed = [(old.key, new.key) for old, new in zip(before.tasks, after.tasks, strict=True) if old.suite != new.suite]
    if not changed:
        return ""
    (old, new), more = changed[0], len(changed) - 1
    others = f", and so are {more:,} more" if more else ""
    return f"the suite is no part of the scene: {_task_name(old)} is the same task as {_task_name(new)}{others}"


def _notes(name: str, run: StoredRun) -> list[str]:
    notes = []
    if run.n_missing:
        notes.append(f"{name} is not complete: {run.n_missing:,} of {run.planned:,} episodes have no result yet")
    if words := out_of_order_words(len(run.out_of_order), sum(episode.is_error for episode in run.out_of_order)):
        notes.append(f"{name}: {words}")
    if run.n_errors:
        erred = "1 episode" if run.n_errors == 1 else f"{run.n_errors:,} episodes"
        notes.append(f"{name}: {erred} ended in an error: left out, not a failure")
    if run.described.get("mixed"):
        notes.append(f"{name} is a mixed run: it went on after something that can change outcomes had changed")
    if run.stopping:
        rule = f"--until={run.stopping.get('rule')}"
        notes.append(f"{name} stopped early by {rule}" if was_decided(run) else f"{name}: {rule} was not reached")
    return notes


def _by_group(run: StoredRun, shared: Sequence[TaskKey]) -> dict[str, list[TaskKey]]:
    """Suites, where there are several, then the tasks' own groups (LIBERO-plus: perturbations)."""
    groups: dict[str, list[TaskKey]] = {}
    if len({suite for suite, _ in shared}) > 1:
        for key in shared:
            groups.setdefault(key[0], []).append(key)
        groups = {name: keys for name, keys in groups.items() if len(keys) > 1}
    labels = {task.key: task.group for task in run.tasks}
    for key in shared:
        if labels.get(key):
            groups.setdefault(f"[{labels[key]}]", []).append(key)
    return groups


def _task_name(key: TaskKey) -> str:
    return key[1] if key[0] == key[1] else f"{key[0]}/{key[1]}"


def _some_tasks(run: StoredRun) -> str:
    return _few([task.key for task in run.tasks])


def _few(keys: Sequence[TaskKey], most: int = 4) -> str:
    words = ", ".join(_task_name(key) for key in keys[:most])
    return words + (f" and {len(keys) - most} more" if len(keys) > most else "")
