"""From a prepared run to the exit status: what ``eval`` and ``resume`` have in common."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from robotrials.cli import draw, output
from robotrials.cli.display import Heading, open_display
from robotrials.cli.plan_view import plan_lines, policy_title
from robotrials.cli.report import report_lines
from robotrials.running.evaluate import PreparedRun, RunResult, execute

COMPLETE, PARTIAL = 0, 2


def carry_out(prepared: PreparedRun, dry_run: bool) -> int:
    """Run what is missing, or only show it; tables go to stdout, everything else to stderr.

    Returns 0 when every episode of the plan has an outcome (or nothing was to run), else 2.
    """
    console = draw.make_console(sys.stdout)
    if dry_run:
        show(plan_lines(prepared, console))
        return COMPLETE
    output.line(opening(prepared))
    with open_display(Heading(title(prepared), prepared.done)) as observer:
        result = execute(prepared, observer)
    show(report_lines(prepared, result, console))
    for line in closing(result):
        output.line(line)
    return COMPLETE if is_whole(result) else PARTIAL


def is_whole(result: RunResult) -> bool:
    """Whether every episode of the plan has an outcome, and none is an error."""
    return result.complete and result.summary.overall.errors == 0


def title(prepared: PreparedRun) -> str:
    return f"{policy_title(prepared.config.policy)} on {prepared.config.env.type}"


def opening(prepared: PreparedRun) -> str:
    """The first line: what is about to run, and where it goes."""
    tasks, total = draw.count(len(prepared.plan.tasks), "task"), len(prepared.plan)
    left = total - prepared.done
    if left == 0:
        return f"{title(prepared)}: all {draw.count(total, 'episode')} are already in {prepared.output_dir}"
    work = f"{draw.count(left, 'episode')} of {total:,} left" if prepared.done else draw.count(total, "episode")
    workers = draw.count(prepared.n_workers, "worker")
    return f"{title(prepared)}: {tasks}, {work}, {workers}; writing to {prepared.output_dir}"


def closing(result: RunResult) -> list[str]:
    """What to do next, when something is left to do."""
    overall = result.summary.overall
    command = resume_command(result.output_dir)
    if not result.complete:
        stopped = "Stopped" if result.interrupted else "Not complete"
        kept = f"{overall.n_finished + overall.errors:,} of {overall.n_planned:,} episodes are written down"
        return [f"{stopped}: {kept}. To go on:", f"  {command}"]
    if overall.errors:
        return [f"{draw.count(overall.errors, 'episode')} ended in an error. To try again:", f"  {command}"]
    return []


def resume_command(directory: Path) -> str:
    return f"robotrials resume {shlex.quote(str(directory))}"


def show(lines: Sequence[Text]) -> None:
    """Print to stdout, each line as it is: paths are never broken, so that they can be copied."""
    console = draw.make_console(sys.stdout)
    with console.capture() as captured:
        for line in lines:
            console.print(line, soft_wrap=True)
    output.text(captured.get())
