"""What stands on stdout when a run ends: the table, where the time went, the errors, and where everything lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from robotrials.cli import draw
from robotrials.cli.advice import advice_lines
from robotrials.cli.display import pace
from robotrials.cli.facts import fact_lines, place
from robotrials.cli.plan_view import shard_words
from robotrials.cli.table import Row, SuiteRows, results_table
from robotrials.plan.task import TaskSpec
from robotrials.policies import registry as policies
from robotrials.results.summary import Rates, RunSummary
from robotrials.run.dataset import DatasetMade
from robotrials.run.execute import RunResult
from robotrials.run.prepare import PreparedRun

MAX_ERRORS = 5
"""Different error messages shown."""


def report_lines(prepared: PreparedRun, result: RunResult, console: Console, ran: str | None = None) -> list[Text]:
    """All lines; the table first, between empty lines. ``ran`` says what this session did; None: by the figures."""
    suites, overall = to_rows(result.summary, prepared.plan.tasks)
    facts: list[tuple[str, str | Text]] = [
        ("Shard", shard_words(prepared)),
        ("Ran", _ran(prepared, result) if ran is None else ran),
        ("Left out", result.summary.out_of_order),
        *_stopping(result.stopping),
        ("Overall", result.summary.gap),
        ("Not finite", _nonfinite(result.summary.overall)),
        *(("Success" if i == 0 else "", note) for i, note in enumerate(result.summary.notes)),
        *_time(result.summary.seconds, prepared.config.eval.record, console),
        ("Exact", _exactness(prepared)),
        *_errors(result.failures),
        *advice_lines(prepared, result),
        *places(result.output_dir),
        *(_dataset(result.dataset) if result.dataset is not None else []),
    ]
    return [
        Text(),
        *results_table(suites, overall, console, [_row(group) for group in result.summary.groups]),
        Text(),
        *fact_lines(((name, value) for name, value in facts if value), console),
    ]


def to_rows(summary: RunSummary, plan: Sequence[TaskSpec] = ()) -> tuple[list[SuiteRows], Row]:
    """The summary as rows; a suite of one task is one line, ``suite/task`` unless both have the same name. ``plan``
    gives the tasks their numbers."""
    ids = {task.key: task.id for task in plan}
    suites = []
    for suite in summary.suites:
        if len(suite.tasks) > 1:
            tasks = [_row(task, id=ids.get((suite.name, task.name))) for task in suite.tasks]
            suites.append(SuiteRows(tasks, _row(suite)))
        else:
            task = suite.tasks[0]
            name = task.name if task.name == suite.name else f"{suite.name}/{task.name}"
            suites.append(SuiteRows([_row(task, name, ids.get((suite.name, task.name)))]))
    return suites, _row(summary.overall, "Overall")


def _row(figures: Rates, name: str | None = None, id: int | None = None) -> Row:
    return Row(
        name=name or figures.name,
        successes=figures.n_success,
        finished=figures.n_finished,
        errors=figures.n_errors,
        missing=figures.n_missing,
        rate=figures.rate,
        interval=figures.interval,
        steps=figures.mean_steps,
        id=id,
    )


def _nonfinite(overall: Rates) -> str:
    """How many episodes showed NaN or infinity; empty for none."""
    if not overall.n_nonfinite:
        return ""
    shown = draw.count(overall.n_nonfinite, "episode")
    return f"{shown} of {overall.n_finished:,} had NaN or infinity in an observation; see the ledger's nonfinite"


_INEXACT = "no (--eval.exact=false): outcomes may depend on how requests were batched"


def _exactness(prepared: PreparedRun) -> str:
    """Why another run may come to other outcomes; empty when it may not."""
    if not prepared.config.eval.exact:
        return _INEXACT
    caveat = policies.caveat(prepared.config.policy)
    return f"not known: {caveat}" if caveat else ""


def _ran(prepared: PreparedRun, result: RunResult) -> str:
    """``40 episodes in 0:21 on 2 workers, 1.9 episodes/s``: of this session, not of those it went on with."""
    overall = result.summary.overall
    kept = prepared.done - prepared.errors
    surplus = result.stopping["surplus"] if result.stopping else 0
    fresh = overall.n_planned - overall.n_missing + surplus - kept
    if prepared.is_finished:
        return f"nothing: all {draw.count(overall.n_planned, 'episode')} had finished before"
    where = draw.workers(prepared.n_workers, prepared.config.eval.runtime)
    words = f"{draw.count(fresh, 'episode')} in {draw.duration(result.wall_s)} on {where}"
    if fresh and result.wall_s > 0:
        words += f", {pace(fresh / result.wall_s)}"
    return f"{words}; {kept:,} had finished before" if kept else words


def _stopping(stopping: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """What ``--until`` has saved, or that it was not reached."""
    if not stopping:
        return []
    planned, counted = stopping["planned"], stopping["counted"]
    if counted is None:
        return [("Until", f"{stopping['rule']} was not reached: {stopping['words']}")]
    saved = planned - counted
    lines = [
        ("Until", f"{stopping['rule']}: {stopping['words']}"),
        ("", "the table's intervals suppose a number of episodes fixed beforehand: too narrow for a run that stops"),
        ("Saved", f"{saved:,} of {draw.count(planned, 'episode')} ({100 * saved / planned:.0f} %)"),
    ]
    if stopping["surplus"]:
        more = draw.count(stopping["surplus"], "episode")
        lines.append(
            ("", f"{more} had finished beyond the {counted:,} that decided it: kept in the ledger, not counted")
        )
    return lines


def _time(seconds: Mapping[str, float], record: str, console: Console) -> list[tuple[str, str | Text]]:
    """Where the time went; what to do where most of it went into films."""
    split = draw.time_split(seconds, draw.glyphs(console), 20 if console.width >= 90 else 0)
    lines: list[tuple[str, str | Text]] = [("Time", split)]
    if seconds.get("film", 0.0) > 0 and max(seconds, key=lambda part: seconds[part]) == "film":
        fewer = "" if record in ("first:1", "first:0") else "--eval.record=first:1 films one episode of each task, "
        lines.append(
            ("", f"films took the most (--eval.record={record}): {fewer}--eval.record=none draws and writes none")
        )
    return lines


def _errors(failures: list[str]) -> list[tuple[str, Text]]:
    """The most frequent error messages, and how many others there are."""
    lines = [
        ("Errors" if i == 0 else "", Text(message, "red" if i == 0 else ""))
        for i, message in enumerate(failures[:MAX_ERRORS])
    ]
    others = len(failures) - MAX_ERRORS
    if others > 0:
        lines.append(("", Text(f"and {draw.count(others, 'other message')}, in ledger.sqlite", "bright_black")))
    return lines


def places(directory: Path) -> list[tuple[str, Text]]:
    """Where the results are, what to open first first."""
    page, info = directory / "report.html", directory / "eval_info.json"
    found = [("Report", place(page))] if page.exists() else []
    found.append(("Directory", place(directory)))
    if info.exists():
        found.append(("Results", place(info)))
    n_videos = sum(1 for _ in (directory / "videos").rglob("*.mp4"))
    if n_videos:
        found.append(("Videos", place(directory / "videos", f" ({n_videos})")))
    return found


def _dataset(made: DatasetMade) -> list[tuple[str, str]]:
    """Where the dataset lies, what is not in it, and how it gets to the Hub."""
    plan = made.plan
    words = f"{plan.path} ({draw.count(made.episodes, 'episode')}, {draw.count(made.frames, 'step')})"
    if made.erred:
        words += f"; without {draw.count(made.erred, 'episode')} that erred"
    lines = [("Dataset", words)]
    if made.nonfinite:
        counts = ", ".join(f"{n:,} of {column}" for column, n in made.nonfinite.items())
        lines.append(("", f"NaN and infinity are kept, and left out of its statistics: {counts}"))
    if plan.repo_id:
        private = "private=True" if plan.private else ""
        call = f"LeRobotDataset({plan.repo_id!r}, root={str(plan.path)!r}).push_to_hub({private})"
        lines.append(("", f"not pushed; in a Python with LeRobot: {call}"))
    return lines
