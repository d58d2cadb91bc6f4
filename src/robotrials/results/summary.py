"""A run in figures: per task, per suite and overall, computed in one pass over the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from robotrials.errors import LedgerError
from robotrials.plan.plan import Plan
from robotrials.results.counting import Counting, everything, out_of_order_words
from robotrials.results.doubts import Doubts
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord, Timings
from robotrials.stats.intervals import METHODS, suite_rate

PARTS = tuple(part.name for part in fields(Timings) if part.name != "total")
"""Where an episode's time goes: reset, simulate, render, infer, wait, film."""


@dataclass(frozen=True)
class Rates:
    """What one task, one suite or the whole run came to.

    The denominator of every mean is ``n_finished``: successes and failures, not errors, which are counted apart. Means
    of a suite and of the run are means over its tasks, each weighing the same; tasks without a finished episode are
    left out. ``rate`` and ``interval`` (95 %: the run's method for a task, ``suite_rate`` for more) lie in [0, 1]. All
    means are None while nothing has finished. ``seconds`` sums the wall time of all results, errors too, by ``PARTS``.
    ``n_nonfinite`` of the finished episodes showed NaN or infinity.

    ``n_out_of_order`` results are in none of the other figures, of a run that is not finished: see ``counting.py``.
    ``n_errors_out_of_order`` of them are errors.
    """

    name: str
    n_planned: int
    n_finished: int
    n_success: int
    n_errors: int
    rate: float | None
    interval: tuple[float, float] | None
    avg_sum_reward: float | None
    avg_max_reward: float | None
    mean_steps: float | None
    seconds: Mapping[str, float]
    n_out_of_order: int = 0
    n_errors_out_of_order: int = 0
    n_nonfinite: int = 0

    @property
    def n_missing(self) -> int:
        """Episodes of the plan that have no result, not even an error."""
        return self.n_planned - self.n_finished - self.n_errors - self.n_out_of_order


@dataclass(frozen=True)
class SuiteFigures(Rates):
    """A suite, with its tasks in the order of the plan."""

    tasks: tuple[Rates, ...] = ()


@dataclass(frozen=True)
class RunSummary:
    """The whole run: ``overall`` over all tasks, its suites in the order of the plan, and the tasks' own groups
    (``TaskSpec.group``, such as LIBERO-plus's perturbations) where they have any. ``method`` made the intervals.
    ``notes`` say what makes rates doubtful, in words (``doubts``)."""

    overall: Rates
    suites: tuple[SuiteFigures, ...]
    groups: tuple[Rates, ...] = ()
    method: str = "wilson"
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> Mapping[str, float]:
        return self.overall.seconds

    @property
    def tasks_without_rate(self) -> tuple[str, ...]:
        """Tasks of which nothing has finished, as ``suite/task`` in the order of the plan: no mean has them in it."""
        return tuple(
            task.name if task.name == suite.name else f"{suite.name}/{task.name}"
            for suite in self.suites
            for task in suite.tasks
            if task.rate is None
        )

    @property
    def gap(self) -> str:
        """What the means of this run leave out, in words; empty where all tasks, or none, have a rate."""
        absent, n = self.tasks_without_rate, sum(len(suite.tasks) for suite in self.suites)
        unfinished = bool(self.overall.n_out_of_order)
        return gap_words(absent, n, unfinished) if absent and self.overall.rate is not None else ""

    @property
    def out_of_order(self) -> str:
        """Which results are in no rate, and why, in words; empty where all count."""
        return out_of_order_words(self.overall.n_out_of_order, self.overall.n_errors_out_of_order)

    @property
    def complete(self) -> bool:
        """Every episode of the plan has finished, none with an error."""
        return self.overall.n_finished == self.overall.n_planned


def gap_words(absent: Sequence[str], n_tasks: int, unfinished: bool = False, most: int = 3) -> str:
    """``the mean is over 3 of 4 tasks: nothing of hard/push has finished``; of a run with results that do not count
    yet: ``no result of hard/push counts yet``."""
    named = ", ".join(absent[:most]) + (f" and {len(absent) - most:,} more" if len(absent) > most else "")
    why = f"no result of {named} counts yet" if unfinished else f"nothing of {named} has finished"
    return f"the mean is over {n_tasks - len(absent):,} of {n_tasks:,} tasks: {why}"


@dataclass
class _Sums:
    """Running sums of one task."""

    planned: int = 0
    finished: int = 0
    successes: int = 0
    errors: int = 0
    out_of_order: int = 0
    errors_out_of_order: int = 0
    reward_sum: float = 0.0
    reward_max: float = 0.0
    steps: int = 0
    nonfinite: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))

    def set_aside(self, record: EpisodeRecord) -> None:
        """A result that does not count yet; its time was spent."""
        self._spend(record)
        self.out_of_order += 1
        self.errors_out_of_order += record.is_error

    def _spend(self, record: EpisodeRecord) -> None:
        for part in PARTS:
            self.seconds[part] += getattr(record.timings, part)

    def add(self, record: EpisodeRecord) -> None:
        self._spend(record)
        if record.is_error:
            self.errors += 1
            return
        self.finished += 1
        self.successes += bool(record.success)
        self.steps += record.steps
        self.nonfinite += record.nonfinite > 0
        self.reward_sum += record.reward_sum or 0.0
        self.reward_max += record.reward_max or 0.0

    def figures(self, name: str, method: str) -> Rates:
        n = self.finished
        return Rates(
            name=name,
            n_planned=self.planned,
            n_finished=n,
            n_success=self.successes,
            n_errors=self.errors,
            rate=self.successes / n if n else None,
            interval=METHODS[method](self.successes, n, 0.95) if n else None,
            avg_sum_reward=self.reward_sum / n if n else None,
            avg_max_reward=self.reward_max / n if n else None,
            mean_steps=self.steps / n if n else None,
            seconds=self.seconds,
            n_out_of_order=self.out_of_order,
            n_errors_out_of_order=self.errors_out_of_order,
            n_nonfinite=self.nonfinite,
        )


def summarize(ledger: Ledger, plan: Plan, method: str = "wilson", counting: Counting | None = None) -> RunSummary:
    """The figures of ``plan`` from the results in ``ledger``; memory grows with the tasks, not with the episodes.

    ``method`` names the intervals' (``--stats.interval``). ``counting`` says which results count (``counting.py``).
    None: all.

    Raises:
        LedgerError: the ledger holds episodes that the plan does not have.
    """
    sums = {task.key: _Sums() for task in plan.tasks}
    counting = counting or everything(plan)
    for episode in plan:
        if episode.id in counting.planned:
            sums[(episode.suite, episode.task)].planned += 1
    doubts = Doubts(plan, ledger.marks())
    for record in ledger.accepted():
        if record.episode not in plan:
            raise LedgerError(
                f"{ledger.path} holds episode {record.episode}, which is none of the {len(plan)} episodes of the plan: "
                "it is the ledger of another run"
            )
        episode = plan.episode(record.episode)
        if record.episode in counting.counted:
            sums[(episode.suite, episode.task)].add(record)
            doubts.add(record)
        elif record.episode in counting.out_of_order:
            sums[(episode.suite, episode.task)].set_aside(record)
    by_suite: dict[str, list[Rates]] = {}
    by_group: dict[str, list[Rates]] = {}
    for task in plan.tasks:
        figures = sums[task.key].figures(task.name, method)
        by_suite.setdefault(task.suite, []).append(figures)
        if task.group:
            by_group.setdefault(task.group, []).append(figures)
    suites = tuple(
        SuiteFigures(**vars(_over_tasks(suite, tasks, method)), tasks=tuple(tasks)) for suite, tasks in by_suite.items()
    )
    all_tasks = [task for tasks in by_suite.values() for task in tasks]
    groups = tuple(_over_tasks(group, tasks, method) for group, tasks in by_group.items())
    return RunSummary(_over_tasks("overall", all_tasks, method), suites, groups, method, doubts.notes())


def _over_tasks(name: str, tasks: Sequence[Rates], method: str) -> Rates:
    rate: float | None = None
    interval: tuple[float, float] | None = None
    if any(task.n_finished for task in tasks):
        rate, *bounds = suite_rate([(task.n_success, task.n_finished) for task in tasks], method=method)
        interval = (bounds[0], bounds[1])
    return Rates(
        name=name,
        n_planned=sum(task.n_planned for task in tasks),
        n_finished=sum(task.n_finished for task in tasks),
        n_success=sum(task.n_success for task in tasks),
        n_errors=sum(task.n_errors for task in tasks),
        rate=rate,
        interval=interval,
        avg_sum_reward=_mean(task.avg_sum_reward for task in tasks),
        avg_max_reward=_mean(task.avg_max_reward for task in tasks),
        mean_steps=_mean(task.mean_steps for task in tasks),
        seconds={part: sum(task.seconds[part] for task in tasks) for part in PARTS},
        n_out_of_order=sum(task.n_out_of_order for task in tasks),
        n_errors_out_of_order=sum(task.n_errors_out_of_order for task in tasks),
        n_nonfinite=sum(task.n_nonfinite for task in tasks),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
