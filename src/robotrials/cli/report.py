"""What stands on stdout when a run ends: the table, where the time went, the errors, and where everything lies."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from robotrials.cli import draw
from robotrials.cli.display import pace
from robotrials.cli.plan_view import fact_lines
from robotrials.cli.table import Row, Suite, results_table
from robotrials.results.summary import RunSummary
from robotrials.running.evaluate import PreparedRun, RunResult

MAX_ERRORS = 5
"""Different error messages shown."""


def report_lines(prepared: PreparedRun, result: RunResult, console: Console) -> list[Text]:
    """All lines; the table first, after an empty line."""
    marks = draw.glyphs(console)
    facts: list[tuple[str, str | Text]] = [("Ran", _ran(prepared, result))]
    split = draw.time_split(result.summary.seconds, marks, bar_width=20 if console.width >= 90 else 0)
    if split.plain:
        facts.append(("Time", split))
    if not prepared.config.eval.exact:
        facts.append(("Exactness", "off (--eval.exact=false): numerics may depend on how requests were batched"))
    facts += _errors(result)
    facts += _places(result)
    return [Text(), *results_table(*to_rows(result.summary), console), Text(), *fact_lines(facts)]
