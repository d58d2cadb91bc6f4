from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from robotrials.errors import LedgerError
from robotrials.plan.plan import build_plan
from robotrials.results.counting import Counting
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord
from robotrials.results.summary import gap_words, summarize
from robotrials.stats.intervals import METHODS, suite_rate, wilson
from tests.results.tiny_run import errored, fill, finished, plan


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.sqlite", {})


def test_a_tasks_figures_count_finished_episodes_and_errors_apart(ledger: Ledger) -> None:
    fill(ledger)
    push, reach = summarize(ledger, plan()).suites[0].tasks
    assert (push.name, push.n_planned, push.n_finished, push.n_success, push.n_errors, push.n_missing) == (
        *("push", 4, 4, 3, 0, 0),
    )
    assert (push.rate, push.interval) == (0.75, wilson(3, 4))
    assert (push.avg_sum_reward, push.avg_max_reward, push.mean_steps) == (1.0, 0.5, 140.0)
    assert (reach.n_finished, reach.n_success, reach.n_errors, reach.n_missing) == (2, 1, 1, 1)
    assert (reach.rate, reach.interval) == (0.5, wilson(1, 2))
    assert (reach.avg_sum_reward, reach.avg_max_reward, reach.mean_steps) == (5.0, 1.5, 50.0)


def test_a_task_with_errors_alone_has_no_rate(ledger: Ledger) -> None:
    fill(ledger)
    (hammer,) = summarize(ledger, plan()).suites[1].tasks
    assert (hammer.n_finished, hammer.n_errors, hammer.n_missing) == (0, 2, 2)
    assert (hammer.rate, hammer.interval, hammer.avg_sum_reward, hammer.avg_max_reward, hammer.mean_steps) == (
        *(None, None, None, None, None),
    )


def test_a_suites_means_weigh_its_tasks_the_same(ledger: Ledger) -> None:
    fill(ledger)
    easy, hard = summarize(ledger, plan()).suites
    assert (easy.name, easy.n_planned, easy.n_finished, easy.n_success, easy.n_errors) == ("easy", 8, 6, 4, 1)
    mean, low, high = suite_rate([(3, 4), (1, 2)])
    assert (easy.rate, easy.interval) == (mean, (low, high))
    assert easy.rate == 0.625  # not 4 of 6
    assert (easy.avg_sum_reward, easy.avg_max_reward, easy.mean_steps) == (3.0, 1.0, 95.0)
    assert (hard.name, hard.rate, hard.n_errors) == ("hard", None, 2)


def test_what_no_mean_has_in_it_is_named(ledger: Ledger) -> None:
    assert summarize(ledger, plan()).gap == ""  # no mean at all: the table says "none"
    fill(ledger)
    summary = summarize(ledger, plan())
    assert summary.tasks_without_rate == ("hard/hammer",)
    assert summary.gap == "the mean is over 2 of 3 tasks: nothing of hard/hammer has finished"
    names = [f"t/{i}" for i in range(5)]
    assert (
        gap_words(names, 1200)
        == "the mean is over 1,195 of 1,200 tasks: nothing of t/0, t/1, t/2 and 2 more has finished"
    )


def test_the_whole_run_is_the_mean_over_all_tasks_that_have_a_rate(ledger: Ledger) -> None:
    fill(ledger)
    summary = summarize(ledger, plan())
    overall = summary.overall
    assert (overall.n_planned, overall.n_finished, overall.n_success, overall.n_errors, overall.n_missing) == (
        *(12, 6, 4, 3, 3),
    )
    assert (overall.rate, overall.interval) == (summary.suites[0].rate, summary.suites[0].interval)
    assert not summary.complete


def test_the_time_of_all_results_is_split_by_where_it_went(ledger: Ledger) -> None:
    fill(ledger)
    summary = summarize(ledger, plan())
    six = {"reset": 3.0, "simulate": 6.0, "render": 12.0, "infer": 1.5, "wait": 0.75, "film": 0.0}
    assert summary.seconds == six
    assert summary.suites[0].tasks[1].seconds == {name: value / 3 for name, value in six.items()}


def test_a_run_that_has_not_begun_has_no_figures_and_is_not_complete(ledger: Ledger) -> None:
    summary = summarize(ledger, plan())
    assert (summary.overall.rate, summary.overall.interval, summary.overall.n_missing) == (None, None, 12)
    assert not summary.complete


def test_a_run_is_complete_when_every_episode_has_finished_without_error(ledger: Ledger) -> None:
    ledger.record([(finished(i, True, 1, 1.0, 1.0), True) for i in range(11)])
    ledger.record([(errored(11), True)])
    assert not summarize(ledger, plan()).complete
    ledger.reopen_errors()
    ledger.record([(finished(11, False, 1, 1.0, 1.0), True)])
    summary = summarize(ledger, plan())
    assert summary.complete
    assert summary.overall.rate == pytest.approx(11 / 12)


def test_a_ledger_of_another_plan_is_refused(ledger: Ledger) -> None:
    ledger.record([(finished(12, True, 1, 1.0, 1.0), True)])
    with pytest.raises(LedgerError, match="episode 12, which is none of the 12 episodes of the plan"):
        summarize(ledger, plan())


def test_tasks_that_carry_a_group_are_also_summed_by_it(ledger: Ledger) -> None:
    fill(ledger)
    tasks = [replace(task, group="camera" if task.name != "reach" else "light") for task in plan().tasks]
    camera, light = summarize(ledger, build_plan(tasks, 4, 1000)).groups
    assert (camera.name, camera.n_planned, camera.n_finished, camera.n_success, camera.n_errors) == (
        "camera",
        8,
        4,
        3,
        2,
    )
    assert (camera.rate, light.rate) == (0.75, 0.5)
    assert summarize(ledger, plan()).groups == ()


@pytest.mark.parametrize("method", ["exact", "jeffreys"])
def test_intervals_are_of_the_method_asked_for(ledger: Ledger, method: str) -> None:
    fill(ledger)
    summary = summarize(ledger, plan(), method)
    assert summary.suites[0].tasks[0].interval == METHODS[method](3, 4, 0.95)
    assert summary.overall.interval == suite_rate([(3, 4), (1, 2)], method=method)[1:]


def test_of_a_run_that_stopped_early_only_the_counted_episodes_are_planned(ledger: Ledger) -> None:
    fill(ledger)
    push, reach = (
        summarize(ledger, plan(), counting=Counting(frozenset({0, 1, 4}), frozenset({0, 1, 4}))).suites[0].tasks
    )
    assert (push.n_planned, push.n_finished, push.n_success, push.n_missing) == (2, 2, 2, 0)
    assert (reach.n_planned, reach.n_finished, reach.n_errors) == (1, 1, 0)


def marked(episode: int, success: bool, *marks: str) -> EpisodeRecord:
    return replace(finished(episode, success, 20, 1.0, 1.0), marks=marks)


def test_what_makes_a_rate_doubtful_is_said_beside_it(ledger: Ledger) -> None:
    assert summarize(ledger, plan()).notes == ()
    ledger.record(
        [(marked(0, True, "solved_at_once"), True), (marked(4, True, "solved_at_once", "success_lost"), True)]
    )
    ledger.record([(marked(5, True, "solved_at_once"), True), (marked(8, False, "ended_at_once"), True)])
    ledger.record([(replace(marked(9, True, "success_lost"), attempt=2), False)])  # not its result
    assert summarize(ledger, plan()).notes == (
        "3 episodes were solved at the first step (reach 2, push 1): check that a scene is unsolved after its reset",
        "1 episode was ended at the first step, unsolved (hammer 1): check that a scene begins in a valid state",
        "1 episode was solved, and no longer at the last step (reach 1): counted as success; --env.success=end counts "
        "the last step alone",
    )
    assert (
        summarize(ledger, plan(), counting=Counting(frozenset({8}), frozenset({8})))
        .notes[0]
        .startswith("1 episode was ended at the first step")
    )


def test_success_that_was_lost_is_a_failure_where_the_end_counts(ledger: Ledger) -> None:
    ledger.record([(marked(0, False, "success_lost"), True)])
    (note,) = summarize(ledger, plan()).notes
    assert note.endswith("(push 1): not counted as success, by --env.success=end")
