"""A leaderboard: models by suites, with intervals, ties, and what is not complete kept apart.

A model is ranked in a column by how many others are clearly better there: rank 1 + the number of models whose interval
lies wholly above its own. So models whose intervals overlap with those at the top share the first rank. A model that
lacks a suite, a task, or episodes of the column has no rank in it and no mean: what is missing is named instead.

Episodes that erred are no reason to leave a model out. It is ranked by the worst case: its interval reaches from the
lower end with all of them counted as failures to the upper end with all of them counted as successes, and is marked.

A suite is a choice of tasks: a model that has played a task in one suite has played it in all that hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from robotrials.errors import ConfigError
from robotrials.reporting.sources import Counts, Source, TrainingFacts
from robotrials.stats.intervals import suite_rate

Suite = tuple[str, str]
"""(env, suite)."""
Names = Mapping[tuple[str, str, int], str]
"""Tasks' names by (env, suite, number), of benchmarks in which a task is the same in every suite."""


@dataclass(frozen=True)
class Cell:
    """One model in one column. ``rate`` and ``interval`` are None without a finished episode, and for a mean over
    something incomplete; ``missing`` says in words what is. ``rank`` and ``best`` are of complete cells. ``rate`` is
    over finished episodes; where some erred, ``interval`` covers whatever they would have come to, and ``floor`` is
    the rate with all of them as failures, by which models are sorted."""

    successes: int = 0
    finished: int = 0
    errors: int = 0
    rate: float | None = None
    interval: tuple[float, float] | None = None
    missing: str = ""
    rank: int | None = None
    best: bool = False
    floor: float | None = None

    @property
    def is_worst_case(self) -> bool:
        """Whether ``interval`` is widened by episodes that erred."""
        return self.errors > 0 and self.interval is not None

    @property
    def is_complete(self) -> bool:
        return self.rate is not None and not self.missing


@dataclass(frozen=True)
class Column:
    """A mean over ``suites``; ``is_suite`` tells a single suite from the means over several."""

    name: str
    suites: tuple[Suite, ...]
    is_suite: bool


@dataclass
class Model:
    """A row. ``labels`` are the files it was made from."""

    name: str
    repo_id: str | None
    training: TrainingFacts
    labels: list[str] = field(default_factory=list)
    conditions: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """By benchmark, where a run directory tells them."""
    suites: dict[Suite, dict[int | None, Counts]] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)


@dataclass(frozen=True)
class Board:
    """Columns, means first, and models: those that are complete overall by rank and rate, then the others by name.
    ``not_read`` holds a line for each source that gave nothing, ``not_alike`` one for each condition under which not
    all of a benchmark's models were measured."""

    columns: tuple[Column, ...]
    models: tuple[Model, ...]
    not_read: tuple[str, ...] = ()
    not_alike: tuple[str, ...] = ()


def make_board(sources: Sequence[Source], suites: Sequence[str] = (), not_read: Sequence[str] = ()) -> Board:
    """The board of ``sources``. ``suites`` keeps only suites (or benchmarks) of these names.

    Raises:
        ConfigError: nothing is left to rank, or a suite that nobody has is asked for.
    """
    models = _models(_with_env(sources))
    found = list(dict.fromkeys(suite for model in models for suite in model.suites))
    if suites:
        unknown = [name for name in suites if not any(name in suite for suite in found)]
        if unknown:
            known = sorted({part for suite in found for part in suite if part})
            raise ConfigError(f"no results have a suite {unknown[0]!r}; there are {', '.join(known)}")
        found = [suite for suite in found if any(name in suite for name in suites)]
        models = [model for model in models if any(suite in model.suites for suite in found)]
    if not models or not found:
        reasons = "".join(f"\n  {line}" for line in not_read)
        raise ConfigError(f"there are no results to make a leaderboard of{reasons}")
    columns = _columns(found)
    tasks = _tasks(models)
    names = {(source.env, *key): name for source in _with_env(sources) for key, name in source.names.items()}
    for model in models:
        _share_between_suites(model, tasks, names)
        model.cells = [_cell(model, column, tasks, names) for column in columns]
    for position in range(len(columns)):
        _rank(models, position)
    models.sort(key=_order)
    return Board(tuple(columns), tuple(models), tuple(not_read), tuple(_not_alike(models)))


def _not_alike(models: Sequence[Model]) -> list[str]:
    """``pusht, --env.episode_length: 300 (act); 200 (dp, vqbet)``, the more usual value first."""
    lines = []
    for env in sorted({env for model in models for env in model.conditions}):
        known = [model for model in models if env in model.conditions]
        for key in sorted({key for model in known for key in model.conditions[env]}):
            names: dict[str, list[str]] = {}
            for model in known:
                names.setdefault(model.conditions[env].get(key, "not there"), []).append(model.name)
            if len(names) > 1:
                ranked = sorted(names.items(), key=lambda item: -len(item[1]))
                lines.append(f"{env}, {key}: " + "; ".join(f"{value} ({_few(who)})" for value, who in ranked))
    return lines


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _with_env(sources: Sequence[Source]) -> list[Source]:
    """A file that does not say its benchmark has the one that has these suites, if only one of them does."""
    envs: dict[str, set[str]] = {}
    for source in sources:
        for suite in source.suites:
            envs.setdefault(suite, set()).update({source.env} - {""})
    made = []
    for source in sources:
        candidates = {env for suite in source.suites for env in envs[suite]}
        only = next(iter(candidates)) if not source.env and len(candidates) == 1 else source.env
        made.append(replace(source, env=only))
    return made


def _models(sources: Sequence[Source]) -> list[Model]:
    """Sources of one model are one row (LIBERO's suites often are a file each); a second result of the same suite is a
    row of its own, because nothing says which one counts: both are called after their files."""
    models: dict[str, Model] = {}
    doubled: set[str] = set()
    for source in sources:
        keyed = {(source.env, suite): dict(tasks) for suite, tasks in source.suites.items()}
        name = source.model
        model = models.get(name)
        if model is not None and not keyed.keys().isdisjoint(model.suites):
            doubled.add(name)
            name = f"{source.model} ({source.label})"
            model = models.get(name)
        if model is None:
            model = models[name] = Model(name, source.repo_id, source.training)
        model.labels.append(source.label)
        if source.conditions:
            model.conditions.setdefault(source.env, source.conditions)
        model.suites.update(keyed)
    for name in doubled:
        model = models[name]
        first, *others = model.labels
        model.name = f"{name} ({first} and {len(others)} more)" if others else f"{name} ({first})"
    return list(models.values())


def _columns(found: Sequence[Suite]) -> list[Column]:
    envs = list(dict.fromkeys(env for env, _ in found))
    shared = {suite for _, suite in found if sum(suite == other for _, other in found) > 1}
    columns = [Column("Overall", tuple(found), False)] if len(found) > 1 else []
    for env in envs:
        own = tuple(suite for suite in found if suite[0] == env)
        if 1 < len(own) < len(found):
            columns.append(Column(env or "unnamed benchmark", own, False))
        for suite in own:
            columns.append(Column(f"{env}/{suite[1]}" if suite[1] in shared else suite[1], (suite,), True))
    return sorted(columns, key=lambda column: column.is_suite)


def _tasks(models: Sequence[Model]) -> dict[Suite, set[int]]:
    """The tasks of each suite that anybody has results of."""
    tasks: dict[Suite, set[int]] = {}
    for model in models:
        for suite, counts in model.suites.items():
            tasks.setdefault(suite, set()).update(number for number in counts if number is not None)
    return tasks


def _share_between_suites(model: Model, tasks: Mapping[Suite, set[int]], names: Names) -> None:
    """Put the results of a task in every suite that holds it, where the model has none of its own there."""
    played: dict[tuple[str, str], Counts] = {}
    for (env, suite), known in model.suites.items():
        for number, counts in known.items():
            if number is not None and (name := names.get((env, suite, number))):
                played.setdefault((env, name), counts)
    for (env, suite), numbers in tasks.items():
        if None in model.suites.get((env, suite), {}):
            continue
        for number in numbers:
            name = names.get((env, suite, number))
            found = played.get((env, name)) if name else None
            if found is not None:
                model.suites.setdefault((env, suite), {}).setdefault(number, found)


def _distinct(model: Model, column: Column, names: Names) -> list[Counts]:
    """The counts of the column's tasks, each once however many of its suites hold it."""
    found: dict[tuple[object, ...], Counts] = {}
    for env, suite in column.suites:
        for number, counts in model.suites.get((env, suite), {}).items():
            name = None if number is None else names.get((env, suite, number))
            found.setdefault((env, name) if name else (env, suite, number), counts)
    return list(found.values())


def _cell(model: Model, column: Column, tasks: dict[Suite, set[int]], names: Names) -> Cell:
    absent = [suite for suite in column.suites if suite not in model.suites]
    counts = _distinct(model, column, names)
    sums = Cell(*(sum(getattr(c, name) for c in counts) for name in ("successes", "finished", "errors")))
    wants: list[str] = []
    if absent:
        has = len(column.suites) - len(absent)
        wants.append("no results" if column.is_suite else f"{has} of {len(column.suites)} suites")
    for suite in column.suites:
        known = model.suites.get(suite, {})
        lacks = 0 if None in known or suite in absent else len(tasks[suite] - set(known))
        lacks += sum(c.finished + c.errors == 0 for c in known.values())
        if lacks:
            named = "" if column.is_suite else f" of {suite[1]}"
            wants.append(f"{len(tasks[suite]) - lacks} of {len(tasks[suite])} tasks{named}")
    n_missing = sum(c.missing for c in counts)
    if n_missing:
        wants.append(f"{n_missing:,} episode{'' if n_missing == 1 else 's'} not run")
    n_aside = sum(c.out_of_order for c in counts)
    if n_aside:
        wants.append(f"{n_aside:,} not counted yet")
    missing = ", ".join(wants)
    if not sums.finished or (missing and not column.is_suite):
        return replace(sums, missing=missing or (_errors(sums.errors) if sums.errors else "no results"))
    rate = suite_rate([(c.successes, c.finished) for c in counts])[0]
    floor, low, _ = suite_rate([(c.successes, c.finished + c.errors) for c in counts])
    high = suite_rate([(c.successes + c.errors, c.finished + c.errors) for c in counts])[2]
    return replace(sums, rate=rate, interval=(low, high), floor=floor, missing=missing)


def _errors(n: int) -> str:
    return f"{n:,} error{'' if n == 1 else 's'}"


def _rank(models: Sequence[Model], position: int) -> None:
    complete = [model for model in models if model.cells[position].is_complete]
    lows = sorted(_bounds(model.cells[position])[0] for model in complete)
    top = max((model.cells[position].floor or 0.0 for model in complete), default=0.0)
    for model in complete:
        cell = model.cells[position]
        better = sum(low > _bounds(cell)[1] for low in lows)
        model.cells[position] = replace(cell, rank=1 + better, best=cell.floor == top)


def _bounds(cell: Cell) -> tuple[float, float]:
    assert cell.interval is not None
    return cell.interval


def _order(model: Model) -> tuple[bool, float, str]:
    first = model.cells[0]
    return (not first.is_complete, -(first.floor or 0.0) if first.is_complete else 0.0, model.name)
