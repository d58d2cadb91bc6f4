"""From a prepared run to the exit status: what ``eval`` and ``resume`` have in common."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from robotrials.cli import draw, output
from robotrials.cli.display import Heading, open_display
from robotrials.cli.listing import show
from robotrials.cli.outcome import report_lines
from robotrials.cli.plan_view import plan_lines, policy_title
from robotrials.errors import RobotrialsError
from robotrials.reporting.report import write_report
from robotrials.run.execute import RunResult, execute
from robotrials.run.prepare import PreparedRun
from robotrials.tuning.remembered import laid_out

COMPLETE, PARTIAL = 0, 2


def carry_out(prepared: PreparedRun, dry_run: bool) -> int:
    """Run what is missing, or only show it; tables go to stdout, everything else to stderr.

    Returns 0 when every episode of the plan has an outcome and none erred (or after a dry run), else 2.
    """
    if prepared.rendering and prepared.rendering.note:
        output.note(prepared.rendering.note)
    prepared, words = laid_out(prepared)
    if words is not None:
        output.note(words)
    console = draw.make_console(sys.stdout)  # its width and alphabet decide how the tables are laid out
    if dry_run:
        show(plan_lines(prepared, console))
        return COMPLETE
    output.line(opening(prepared))
    try:
        with open_display(Heading(title(prepared), prepared.done - prepared.errors)) as observer:
            result = execute(prepared, observer)
    except KeyboardInterrupt:  # a second one, while results were written
        output.line(
            f"Interrupted. What had finished is written down. To go on:\n  {resume_command(prepared.output_dir)}"
        )
        return PARTIAL
    write_page(result.output_dir)
    show(report_lines(prepared, result, console))
    for line in closing(result):
        output.line(line)
    return COMPLETE if result.complete else PARTIAL


def write_page(directory: Path) -> None:
    """report.html. The results are written down already: a page that cannot be made is worth a note, no more."""
    try:
        write_report([directory])
    except RobotrialsError as error:
        output.note(f"no report.html: {error}")


def title(prepared: PreparedRun) -> str:
    """``expert on metaworld``; of a class given as ``module:Class``, the class."""
    settings = prepared.config.eval
    shard = f", shard {settings.shard_id} of {settings.num_shards}" if settings.num_shards > 1 else ""
    return f"{policy_title(prepared.config.policy)} on {prepared.config.env.type.rpartition(':')[2]}{shard}"


def opening(prepared: PreparedRun) -> str:
    """The first line: what is about to run, and where it goes."""
    total = draw.count(len(prepared.plan), "episode")
    if prepared.is_finished:
        if prepared.stopped:
            return f"{title(prepared)}: complete, stopped early by --until={prepared.config.until}"
        return f"{title(prepared)}: complete, all {total} have finished"
    kept = prepared.done - prepared.errors
    work = f"{len(prepared.plan) - kept:,} of {total} to run" if kept else total
    again = f" ({prepared.errors:,} of them again, after an error)" if prepared.errors else ""
    workers = draw.workers(prepared.n_workers, prepared.config.eval.runtime)
    parts = [draw.count(len(prepared.plan.tasks), "task"), work + again, workers]
    if prepared.n_servers:
        parts.append(draw.count(prepared.n_servers, "policy server"))
    return f"{title(prepared)}: {', '.join(parts)}"


def closing(result: RunResult) -> list[str]:
    """What to do next, when something is left to do."""
    overall, command = result.summary.overall, f"  {resume_command(result.output_dir)}"
    if result.complete:
        return []
    if overall.n_missing:
        settled = f"{overall.n_planned - overall.n_missing:,} of {overall.n_planned:,} episodes are written down"
        return [f"{'Stopped' if result.interrupted else 'Not complete'}: {settled}. To go on:", command]
    return [f"{draw.count(overall.n_errors, 'episode')} ended in an error. To try again:", command]


def resume_command(directory: Path) -> str:
    return f"robotrials resume {shlex.quote(str(directory))}"
