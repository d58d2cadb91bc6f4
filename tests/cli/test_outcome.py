from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from robotrials.cli.outcome import MAX_ERRORS, report_lines, to_rows
from robotrials.cli.runner import closing, opening
from robotrials.results.ledger import Ledger
from robotrials.results.summary import RunSummary, summarize
from robotrials.run.execute import RunResult
from robotrials.run.prepare import PreparedRun, prepare
from tests.engine.toy_runs import toy_config
from tests.results import tiny_run


@pytest.fixture
def summary(tmp_path: Path) -> RunSummary:
    """push: 3 of 4 succeed. reach: 1 of 2, one error, one not run. hammer: two errors, two not run."""
    with Ledger.create(tmp_path / "ledger.sqlite", {}) as ledger:
        tiny_run.fill(ledger)
        return summarize(ledger, tiny_run.plan())


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedRun:
    return prepare(toy_config(tmp_path / "run"))


def result(summary: RunSummary, directory: Path, *failures: str, interrupted: bool = False) -> RunResult:
    return RunResult(summary, directory, summary.complete, interrupted, 30.0, list(failures))


def test_rows_are_the_figures_of_the_summary(summary: RunSummary) -> None:
    (easy, _), overall = to_rows(summary)
    push, reach = easy.tasks
    assert easy.total is not None
    assert (easy.total.name, easy.total.successes, easy.total.finished, easy.total.errors) == ("easy", 4, 6, 1)
    assert (push.name, push.successes, push.finished, push.errors, push.missing) == ("push", 3, 4, 0, 0)
    assert (reach.successes, reach.finished, reach.errors, reach.missing, reach.rate) == (1, 2, 1, 1, 0.5)
    assert (overall.successes, overall.finished, overall.errors, overall.missing) == (4, 6, 3, 3)
    assert overall.rate == pytest.approx((0.75 + 0.5) / 2)


def test_a_suite_of_one_task_is_one_line_with_both_names(summary: RunSummary) -> None:
    (_, hard), _ = to_rows(summary)
    assert hard.total is None
    assert [row.name for row in hard.tasks] == ["hard/hammer"]
    assert hard.tasks[0].rate is None


def report(prepared: PreparedRun, outcome: RunResult) -> str:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=100)
    return "\n".join(line.plain for line in report_lines(prepared, outcome, console))


def test_the_report_counts_this_session_and_names_what_was_kept(summary: RunSummary, prepared: PreparedRun) -> None:
    outcome = result(summary, prepared.output_dir)
    assert "Ran        9 episodes in 0:30 on 2 workers, 18 episodes/min\n" in report(prepared, outcome)
    resumed = replace(prepared, done=5, errors=2)
    assert "Ran        6 episodes in 0:30 on 2 workers, 12 episodes/min; 3 had finished before\n" in report(
        resumed, outcome
    )


def test_the_most_frequent_errors_are_shown_and_the_others_counted(summary: RunSummary, prepared: PreparedRun) -> None:
    messages = [f"RuntimeError: [bold]{i}[/bold]" for i in range(MAX_ERRORS + 2)]
    text = report(prepared, result(summary, prepared.output_dir, *messages))
    assert "Errors     RuntimeError: [bold]0[/bold]\n           RuntimeError: [bold]1[/bold]\n" in text
    assert f"[bold]{MAX_ERRORS}[/bold]" not in text
    assert "and 2 other messages, in ledger.sqlite" in text


def test_a_mean_that_lacks_a_task_says_so(summary: RunSummary, prepared: PreparedRun) -> None:
    text = report(prepared, result(summary, prepared.output_dir))
    assert "Overall    the mean is over 2 of 3 tasks: nothing of hard/hammer has finished\n" in text


def test_a_run_that_stopped_early_says_that_the_intervals_of_the_table_are_not_made_for_it(
    summary: RunSummary, prepared: PreparedRun
) -> None:
    stopping = {"rule": "width<=0.5", "words": "valid interval [9, 59]", "planned": 12, "counted": 6, "surplus": 0}
    outcome = replace(result(summary, prepared.output_dir), stopping=stopping)
    line = "the table's intervals suppose a number of episodes fixed beforehand: too narrow for a run that stops"
    assert line in " ".join(report(prepared, outcome).split())
    undecided = replace(outcome, stopping={**stopping, "counted": None})
    assert line not in " ".join(report(prepared, undecided).split())


def test_films_that_took_the_most_are_named_with_the_flag_that_makes_fewer(
    summary: RunSummary, prepared: PreparedRun
) -> None:
    def text(film_s: float) -> str:
        seconds = {"reset": 1.0, "simulate": 6.0, "render": 0.0, "infer": 1.0, "wait": 0.0, "film": film_s}
        overall = replace(summary.overall, seconds=seconds)
        return report(prepared, result(replace(summary, overall=overall), prepared.output_dir))

    flag = f"--eval.record={prepared.config.eval.record}"
    assert "film 80 %" in text(32.0)
    assert f"films took the most ({flag})" in text(32.0)
    assert "--eval.record=none draws and writes none" in text(32.0)
    assert "films took" not in text(5.0)


def test_an_inexact_run_says_so(summary: RunSummary, prepared: PreparedRun) -> None:
    outcome = result(summary, prepared.output_dir)
    assert "--eval.exact=false" not in report(prepared, outcome)
    config = replace(prepared.config, eval=replace(prepared.config.eval, exact=False))
    assert "Exact      no (--eval.exact=false)" in report(replace(prepared, config=config), outcome)


def test_what_is_left_decides_what_to_do_next(summary: RunSummary) -> None:
    run = Path("/runs/my run")
    command = "  robotrials resume '/runs/my run'"
    stopped = closing(result(summary, run, interrupted=True))
    assert stopped == ["Stopped: 9 of 12 episodes are written down. To go on:", command]
    assert closing(result(summary, run))[0].startswith("Not complete: 9 of 12 episodes")
    settled = replace(summary, overall=replace(summary.overall, n_planned=9))
    assert closing(result(settled, run)) == ["3 episodes ended in an error. To try again:", command]
    whole = replace(summary, overall=replace(summary.overall, n_planned=6, n_errors=0))
    assert closing(result(whole, run)) == []


def test_the_first_line_says_what_is_about_to_run(prepared: PreparedRun) -> None:
    assert opening(prepared) == "Seer on Toy: 2 tasks, 12 episodes, 2 workers"
    assert opening(replace(prepared, n_servers=1)).endswith("2 workers, 1 policy server")
    assert opening(replace(prepared, done=7)) == "Seer on Toy: 2 tasks, 5 of 12 episodes to run, 2 workers"
    again = opening(replace(prepared, done=7, errors=2))
    assert again == "Seer on Toy: 2 tasks, 7 of 12 episodes to run (2 of them again, after an error), 2 workers"
    assert opening(replace(prepared, done=12)) == "Seer on Toy: complete, all 12 episodes have finished"
