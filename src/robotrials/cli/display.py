"""What is seen while a run goes on: a live panel on a terminal, a plain line now and then elsewhere. All on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from robotrials.cli import draw, output
from robotrials.cli.short_names import shorten
from robotrials.engine.observer import Observer, Progress, TaskProgress

MAX_TASKS = 8
"""Tasks shown at once."""
MAX_MESSAGES = 20
"""Messages shown in all: a run that errs ten thousand times must not scroll its own progress away."""


LEAST_FOR_INTERVAL = 20
"""Episodes that must have ended before their interval is shown: with eight of eight it begins at 30 %."""
ANYTIME = "anytime-valid 95 %"
"""The interval that is shown while a run goes on: it holds however often one looks (``stats/sequential.py``)."""


@dataclass(frozen=True)
class Heading:
    """What the panel calls the run, and how many episodes earlier runs in its directory had settled."""

    title: str
    done_before: int = 0


@contextmanager
def open_display(heading: Heading) -> Iterator[Observer]:
    """The display that suits stderr; it is taken down on leaving, also when the run raises."""
    if not output.is_lively(sys.stderr):
        yield LineDisplay(heading)
        return
    console = draw.make_console(sys.stderr)
    with Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False) as live:
        yield LiveDisplay(heading, live)


class _Messages:
    """Lets the first messages through, and says once that there are more."""

    def __init__(self) -> None:
        self._seen = 0

    def __call__(self, text: str) -> list[str]:
        self._seen += 1
        if self._seen <= MAX_MESSAGES:
            return [text]
        if self._seen == MAX_MESSAGES + 1:
            return ["(more messages are not shown; the run's ledger holds the text of every error)"]
        return []


class LiveDisplay:
    """A panel that is drawn anew at each snapshot; messages scroll by above it."""

    def __init__(self, heading: Heading, live: Live) -> None:
        self._heading = heading
        self._live = live
        self._messages = _Messages()

    def on_progress(self, snapshot: Progress) -> None:
        panel = render_panel(self._heading, snapshot, self._live.console)
        self._guarded(lambda: self._live.update(panel, refresh=True))

    def on_message(self, text: str) -> None:
        for words in self._messages(text):
            line = Text.assemble(("! ", "yellow"), words)
            self._guarded(lambda line=line: self._live.console.print(line, soft_wrap=True))  # type: ignore[misc]

    def _guarded(self, draw_it: Callable[[], None]) -> None:
        try:
            draw_it()
        except OSError:  # the terminal was closed: the run goes on without it
            output.silence(sys.stderr)


class LineDisplay:
    """Plain lines for logs: one every ten seconds or ten per cent, whichever is rarer, but one a minute at least, and
    one after ten seconds in which no episode has ended."""

    def __init__(self, heading: Heading, clock: Callable[[], float] = time.monotonic) -> None:
        self._heading = heading
        self._clock = clock
        self._messages = _Messages()
        self._last_at = clock()
        self._last_done = heading.done_before
        self._n_lines = 0

    def on_progress(self, snapshot: Progress) -> None:
        now, done = self._clock(), snapshot.done
        waited = now - self._last_at
        a_tenth = (done - self._last_done) * 10 >= snapshot.planned
        is_due = waited >= 60.0 or (waited >= 10.0 and (a_tenth or (self._n_lines == 0 and done == self._last_done)))
        if done >= snapshot.planned or not is_due:
            return
        self._last_at, self._last_done = now, done
        self._n_lines += 1
        output.line(describe(snapshot))

    def on_message(self, text: str) -> None:
        for words in self._messages(text):
            output.line(words)


def describe(snapshot: Progress) -> str:
    """One line: ``123/200 episodes (61 %), 117 succeeded so far, 1 error, 8 episodes under way, ...``."""
    parts = [f"{snapshot.done:,}/{snapshot.planned:,} episodes ({_share_done(snapshot)})"]
    if snapshot.successes + snapshot.failures:
        interval = _shown_interval(snapshot)
        words = f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}] % ({ANYTIME})" if interval else " so far"
        parts.append(f"{snapshot.successes:,} succeeded{words}")
    if snapshot.errors:
        parts.append(draw.count(snapshot.errors, "error"))
    parts.append(_doing(snapshot) or f"{snapshot.running} running")
    parts.append(f"{draw.duration(snapshot.elapsed_s)} elapsed")
    if snapshot.eta_s is not None:
        parts.append(f"about {draw.duration(snapshot.eta_s)} left")
    return ", ".join(parts)


def _shown_interval(snapshot: Progress) -> tuple[float, float] | None:
    """None where so few have ended that it would say next to nothing."""
    finished = snapshot.successes + snapshot.failures
    return draw.valid_interval(snapshot) if finished >= LEAST_FOR_INTERVAL else None


def _doing(snapshot: Progress) -> str:
    """What is loaded (``loading the policy (12 s)``), or how far the episodes in flight are."""
    now = snapshot.underway
    if now.stage:
        return f"{now.stage} ({now.stage_s:.0f} s)"
    if not snapshot.running or not now.step_limit:
        return ""
    at = f"step {now.step:,} of {now.step_limit:,}"
    words = f"{draw.count(snapshot.running, 'episode')} under way"
    return f"{words}, {at}" if snapshot.running == 1 else f"{words}, the farthest at {at}"


def render_panel(heading: Heading, snapshot: Progress, console: Console) -> Group:
    """The live panel, as high as the console allows."""
    marks = draw.glyphs(console)
    width = min(console.width, 110)
    lines: list[Text | Table] = [
        Text(),
        _ends(Text(heading.title, "bold"), _clock_text(snapshot), width),
        _progress_line(snapshot, width, marks),
        _rate_text(snapshot, marks),
        _ends(_now_text(snapshot), _pace_text(heading, snapshot, marks), width),
    ]
    split = draw.time_split(snapshot.seconds, marks, bar_width=16 if width >= 90 else 0)
    if split.plain:
        lines.append(Text.assemble(("time     ", "bright_black"), split))
    if len(snapshot.per_task) > 1:
        lines += _tasks(snapshot, width, max(0, min(MAX_TASKS, console.height - 10)), marks)
    for line in lines:
        if isinstance(line, Text):
            line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines)


def _ends(left: Text, right: Text, width: int) -> Text:
    """``left`` at the left edge and ``right`` at the right one; ``right`` is left out where both do not fit."""
    gap = width - left.cell_len - right.cell_len
    return left if gap < 2 else Text.assemble(left, " " * gap, right)


def _clock_text(snapshot: Progress) -> Text:
    text = Text(draw.duration(snapshot.elapsed_s))
    if snapshot.eta_s is not None:
        text.append(f", about {draw.duration(snapshot.eta_s)} left")
    return text


def _progress_line(snapshot: Progress, width: int, marks: draw.Glyphs) -> Text:
    counts = f"  {snapshot.done:,}/{snapshot.planned:,}  {_share_done(snapshot)}"
    bar = draw.outcome_bar(
        snapshot.successes, snapshot.failures, snapshot.errors, snapshot.planned, max(10, width - len(counts)), marks
    )
    return Text.assemble(bar, counts)


def _share_done(snapshot: Progress) -> str:
    return f"{100 * snapshot.done // max(1, snapshot.planned)} %"


def _rate_text(snapshot: Progress, marks: draw.Glyphs) -> Text:
    text = Text.assemble(("success  ", "bright_black"))
    finished = snapshot.successes + snapshot.failures
    interval = _shown_interval(snapshot)
    if not finished:
        text.append("no outcome yet", "bright_black")
    else:
        text.append(f"{snapshot.successes:,} succeeded, {snapshot.failures:,} failed", "bold green")
        text.append(f" so far, {draw.interval(*interval, marks)} % ({ANYTIME})" if interval else " so far")
    if snapshot.errors:
        text.append(f"   {draw.count(snapshot.errors, 'error')}", "bold red")
    return text


def _now_text(snapshot: Progress) -> Text:
    return Text.assemble(("now      ", "bright_black"), _doing(snapshot) or f"{snapshot.running} running")


def _pace_text(heading: Heading, snapshot: Progress, marks: draw.Glyphs) -> Text:
    parts = [draw.count(snapshot.workers, "worker")]
    fresh = snapshot.done - heading.done_before
    if fresh > 0 and snapshot.elapsed_s > 0:
        parts.append(pace(fresh / snapshot.elapsed_s))
    return Text(f" {marks.dot} ".join(parts), "bright_black")


def pace(per_second: float) -> str:
    """``2.4 episodes/s``, or per minute or hour when slow."""
    for unit, seconds in (("s", 1), ("min", 60), ("h", 3600)):
        if per_second * seconds >= 1 or unit == "h":
            return f"{per_second * seconds:.3g} episodes/{unit}"
    raise AssertionError("unreachable")


def _tasks(snapshot: Progress, width: int, n_rows: int, marks: draw.Glyphs) -> list[Text | Table]:
    """The tasks at work, and one line for the others."""
    active = [task for task in snapshot.per_task if 0 < task.done < task.planned]
    shown = active[:n_rows]
    finished = sum(task.done >= task.planned for task in snapshot.per_task)
    waiting = sum(task.done == 0 for task in snapshot.per_task)
    others = [
        f"{n} {words}"
        for n, words in (
            (len(active) - len(shown), "more at work"),
            (finished, "finished"),
            (waiting, "with no episode done"),
        )
        if n
    ]
    lines: list[Text | Table] = [Text()]
    if shown:
        lines.append(_task_grid(shown, width, marks))
    if others:
        noun = "task" if len(snapshot.per_task) == 1 else "tasks"
        lines.append(Text(f"  {', '.join(others)}, of {len(snapshot.per_task)} {noun}", "bright_black"))
    return lines


def _task_grid(tasks: list[TaskProgress], width: int, marks: draw.Glyphs) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    for _ in range(2):
        grid.add_column(no_wrap=True, justify="right")
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    names = shorten([task.task for task in tasks], max(10, width // 3), marks.cut).names
    for task, name in zip(tasks, names, strict=True):
        finished = task.done - task.errors
        succeeded = f"{task.successes} succeeded" if finished else ""
        errors = Text(draw.count(task.errors, "error"), "bold red") if task.errors else Text()
        failures = finished - task.successes
        bar = draw.outcome_bar(task.successes, failures, task.errors, task.planned, min(30, width // 4), marks)
        grid.add_row(f"  {name}", f"{task.done}/{task.planned}", succeeded, bar, errors)
    return grid
