"""A suite is a choice of tasks: the same task in the same scene is the same whatever suite it was asked for by."""

from __future__ import annotations

from pathlib import Path

import pytest

from robotrials.errors import ConfigError
from robotrials.plan.plan import build_plan
from robotrials.results.compare.comparison import ComparisonReport, compare_runs
from robotrials.results.compare.pairing import outcomes_of
from robotrials.results.stored import read_run, stored_plan
from tests.results.stored_runs import first, write_run


def compare(*paths: Path) -> ComparisonReport:
    return compare_runs([read_run(path) for path in paths])


def test_a_task_of_a_group_is_paired_with_the_task_asked_for_by_name(tmp_path: Path) -> None:
    group = write_run(tmp_path / "group", first(7), ("easy/push", "easy/reach"))
    alone = write_run(tmp_path / "alone", first(5), ("reach/reach",))
    report = compare(group, alone)
    (result,) = report.against_first
    assert result.pairing.why == "paired: 10 episodes of the same task and seed"
    assert (result.overall.losses, result.overall.wins) == (2, 0)
    assert [pair.other.name for pair in result.differing] == ["easy/reach/5", "easy/reach/6"]
    assert "the suite is no part of the scene: reach is the same task as easy/reach" in report.notes
    (back,) = compare(alone, group).against_first
    assert (back.overall.pairs, back.overall.wins) == (10, 2)


def test_other_seeds_of_such_a_task_are_not_paired(tmp_path: Path) -> None:
    group = write_run(tmp_path / "group", first(7), ("easy/reach",))
    alone = write_run(tmp_path / "alone", first(5), ("reach/reach",), seed=5000)
    (result,) = compare(group, alone).against_first
    assert not result.pairing.paired
    assert "the seeds differ" in result.pairing.why


@pytest.mark.parametrize("env", ["vlabench", "mine.py:Kitchen", "gym"])
def test_where_the_suite_may_be_part_of_the_scene_it_tells_tasks_apart(tmp_path: Path, env: str) -> None:
    runs = [write_run(tmp_path / name, first(5), (f"{name}/reach",), env=env) for name in ("a", "b")]
    with pytest.raises(ConfigError, match="share no task"):
        compare(*runs)


def test_a_run_that_is_watched_against_another_finds_its_episodes_in_any_suite(tmp_path: Path) -> None:
    group = read_run(write_run(tmp_path / "group", first(2), ("easy/reach",), n=3))
    alone = read_run(write_run(tmp_path / "alone", first(2), ("reach/reach",), n=3))
    plan = stored_plan(alone.described, alone.path)
    outcomes, strange = outcomes_of(group, plan, "toy")
    assert outcomes == {("reach", "reach", 0): True, ("reach", "reach", 1): True, ("reach", "reach", 2): False}
    assert strange is None
    assert outcomes_of(group, build_plan(group.tasks, 3, 7), "toy")[0] == {}
