"""A run as Markdown, for the summary page of a GitHub Actions step (``$GITHUB_STEP_SUMMARY``)."""

from __future__ import annotations

import re

from robotrials.results.export.eval_info import interval_words
from robotrials.results.reopened import RunFigures
from robotrials.results.summary import Rates

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")


def step_summary(run: RunFigures, min_success: float | None = None) -> str:
    """A heading, a table of tasks, and what there is to say of errors and missing episodes; ends with a newline."""
    summary, overall = run.summary, run.summary.overall
    lines = [f"### {escape(run.policy)} on {escape(run.env)}", ""]
    if overall.rate is None:
        lines.append("No rate yet." if summary.out_of_order else "No episode has finished.")
    else:
        verdict = ""
        if min_success is not None:
            reached = "reached" if overall.rate >= min_success else "**not reached**"
            verdict = f" (asked for: {100 * min_success:.1f} %, {reached})"
        lines.append(f"**Success {_rate(overall)}**{verdict}")
    lines += ["", "| Task | Success | Rate | 95 % interval | Errors | Not run |", "|---|--:|--:|--:|--:|--:|"]
    for suite in summary.suites:
        if len(suite.tasks) > 1:
            lines.append(_row(suite, f"**{escape(suite.name)}**"))
        lines += [_row(task, escape(task.name)) for task in suite.tasks]
    lines += [_row(group, f"*{escape(group.name)}*") for group in summary.groups]
    if len(summary.suites) > 1:
        lines.append(_row(overall, "**Overall**"))
    lines += ["", f"Intervals: {interval_words(summary.method)}."]
    if gap := summary.gap:
        lines.append(f"\n{escape(gap[0].upper() + gap[1:])}.")
    lines += [f"\n{escape(note[0].upper() + note[1:])}." for note in summary.notes]
    if overall.n_errors:
        erred = f"{overall.n_errors} episodes ended in an error"
        lines.append(f"\n{erred}. They are not counted as failures and are excluded from the rates.")
    if overall.n_missing:
        lines.append(f"\n{overall.n_missing} of {overall.n_planned} episodes have not been run.")
    if summary.out_of_order:
        lines.append(f"\n{escape(summary.out_of_order)}.")
    return "\n".join(lines) + "\n"


def _row(figures: Rates, name: str) -> str:
    rate = "none" if figures.rate is None else f"{100 * figures.rate:.1f} %"
    interval = ""
    if figures.interval is not None:
        interval = f"{100 * figures.interval[0]:.1f} – {100 * figures.interval[1]:.1f}"
    counts = f"{figures.n_success}/{figures.n_finished}"
    return f"| {name} | {counts} | {rate} | {interval} | {figures.n_errors} | {figures.n_missing} |"


def _rate(figures: Rates) -> str:
    assert figures.rate is not None
    assert figures.interval is not None
    return f"{100 * figures.rate:.1f} % [{100 * figures.interval[0]:.1f}, {100 * figures.interval[1]:.1f}]"


def escape(text: str) -> str:
    """``text`` as Markdown that shows it as it is, on one line: names come from benchmarks and checkpoints of
    others."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
