"""The table of a run in LaTeX, with intervals, ready for a paper (``booktabs``)."""

from __future__ import annotations

from robotrials.results.export.eval_info import interval_words
from robotrials.results.reopened import RunFigures
from robotrials.results.summary import Rates
from robotrials.stats.intervals import NAMES

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def latex_table(run: RunFigures) -> str:
    """A ``table`` float; errors and episodes that have not been run have a column where there are any. Ends with a
    newline."""
    summary, overall = run.summary, run.summary.overall
    extra = [
        title for title, n in (("Errors", overall.n_errors), ("Not run", overall.n_missing)) if n
    ]  # a rate without them would say too little
    rows: list[str] = []
    for suite in summary.suites:
        several = len(suite.tasks) > 1
        if several:
            rows.append(_row(suite, rf"\textbf{{{escape(suite.name)}}}", extra))
        indent = r"\quad " if several else ""
        rows += [_row(task, indent + escape(task.name), extra) for task in suite.tasks]
    if summary.groups:
        rows += [r"\midrule", *(_row(group, rf"\emph{{{escape(group.name)}}}", extra) for group in summary.groups)]
    if len(summary.suites) > 1:
        rows += [r"\midrule", _row(overall, r"\textbf{Overall}", extra)]
    titles = " & ".join(["Task", "Success", r"Rate (\%)", r"95\,\% interval", *extra])
    caption = (
        f"Success of {escape(run.policy)} on {escape(run.env)}, with 95\\,\\% intervals ({NAMES[summary.method]})."
    )
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            f"% intervals: {interval_words(summary.method)}",
            r"\begin{table}[t]",
            r"  \centering",
            rf"  \caption{{{caption}}}",
            rf"  \begin{{tabular}}{{l{'r' * (3 + len(extra))}}}",
            r"    \toprule",
            rf"    {titles} \\",
            r"    \midrule",
            *(f"    {row}" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _row(figures: Rates, name: str, extra: list[str]) -> str:
    rate = "--" if figures.rate is None else f"{100 * figures.rate:.1f}"
    interval = ""
    if figures.interval is not None:
        interval = f"[{100 * figures.interval[0]:.1f}, {100 * figures.interval[1]:.1f}]"
    more = {"Errors": figures.n_errors, "Not run": figures.n_missing}
    cells = [name, f"{figures.n_success}/{figures.n_finished}", rate, interval, *(str(more[title]) for title in extra)]
    return " & ".join(cells) + r" \\"


def escape(text: str) -> str:
    """``text`` as LaTeX that shows it as it is, on one line.

    >>> escape("50 %_a")
    '50 \\\\%\\\\_a'
    """
    return "".join(_SPECIAL.get(letter, letter) for letter in " ".join(text.split()))
