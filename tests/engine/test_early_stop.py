"""Stopping early, with real workers: what counts is the same however the work was spread."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from robotrials.cli.outcome import report_lines
from robotrials.engine.early_stop import EarlyStop
from robotrials.errors import ConfigError
from robotrials.plan.plan import Plan, build_plan
from robotrials.results.counting import balanced
from robotrials.results.record import EndReason, EpisodeRecord
from robotrials.results.stored import read_run
from robotrials.run.execute import RunResult, execute
from robotrials.run.prepare import prepare, prepare_resume
from robotrials.stats.stopping import WidthDecider
from tests.engine.toy_runs import Listener, digest, run, toy_config
from tests.results.tiny_run import task


def plan(n: int = 20) -> Plan:
    return build_plan([task("s", "a", 0), task("s", "b", 1), task("s", "c", 2)], n, 1000)


def record(episode: int, success: bool | None) -> EpisodeRecord:
    end = {True: EndReason.SUCCESS, False: EndReason.TIME_LIMIT, None: EndReason.ERROR}[success]
    return EpisodeRecord(episode, 1, "w", end, success, 1, 0.0, 0.0)


def test_balanced_order_is_the_first_of_every_task_then_the_second() -> None:
    assert [spec.name for spec in balanced(plan(2))] == ["s/a/0", "s/b/0", "s/c/0", "s/a/1", "s/b/1", "s/c/1"]


def test_what_counts_does_not_depend_on_the_order_in_which_episodes_settle() -> None:
    outcomes = {spec.id: random.Random(spec.id).random() < 0.9 for spec in plan()}
    outcomes[7] = None  # type: ignore[assignment]
    found = set()
    for seed in range(30):
        order = list(outcomes)
        random.Random(seed).shuffle(order)
        stop = EarlyStop(plan(), WidthDecider(0.45))
        for episode in order:
            if stop.is_enough(record(episode, outcomes[episode])):
                break
        found.add(stop.counted_ids())
    (counted,) = found
    assert counted is not None
    assert 0 < len(counted) < 60
    assert counted == {spec.id for spec in balanced(plan())[: len(counted)]}


def test_an_episode_far_ahead_decides_nothing_before_those_in_front_have_settled() -> None:
    stop = EarlyStop(plan(), WidthDecider(0.9))
    for spec in balanced(plan())[1:]:
        assert not stop.is_enough(record(spec.id, True))
    assert stop.is_enough(record(balanced(plan())[0].id, True))


def config(directory: Path, until: str | None, **more: Any) -> Any:
    settings = {"tasks": "a,b,c", "n_episodes": 20, "batch_size": 2, **more}
    return replace(toy_config(directory, **settings), until=until)


def counted(directory: Path) -> list[tuple[str, bool | None]]:
    return [(episode.name, episode.success) for episode in read_run(directory).episodes]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunResult]:
    """One worker, stopped by width."""
    path = tmp_path_factory.mktemp("alone") / "run"
    return path, run(config(path, "width<=0.5", batch_size=1))


def test_a_run_stops_when_the_interval_is_narrow_enough_and_says_what_it_saved(
    alone: tuple[Path, RunResult],
) -> None:
    path, result = alone
    assert result.complete
    stopping = result.stopping
    assert stopping is not None
    assert stopping["decided"]
    low, high = stopping["state"]["interval"]
    assert high - low <= 0.5
    assert stopping["counted"] == result.summary.overall.n_planned == result.summary.overall.n_finished < 60
    assert stopping["counted"] % 3 == 0
    info = json.loads((path / "eval_info.json").read_text())
    assert info["stopping"]["counted"] == stopping["counted"]
    assert info["overall"]["n_episodes"] == stopping["counted"]
    assert sum(len(entry["metrics"]["successes"]) for entry in info["per_task"]) == stopping["counted"]
    assert json.loads((path / "run.json").read_text())["stopping"] == stopping


@pytest.mark.parametrize("workers", [2, 4])
def test_the_episodes_that_count_do_not_depend_on_the_workers(
    alone: tuple[Path, RunResult], tmp_path: Path, workers: int
) -> None:
    result = run(config(tmp_path / "run", "width<=0.5", batch_size=workers))
    assert counted(tmp_path / "run") == counted(alone[0])
    assert result.stopping is not None
    assert result.stopping["counted"] == alone[1].stopping["counted"]  # type: ignore[index]


def test_a_stopped_run_that_is_resumed_is_a_no_op(alone: tuple[Path, RunResult]) -> None:
    path, result = alone
    prepared = prepare_resume(path)
    assert prepared.is_finished
    before = digest(path)
    again = execute(prepared, Listener())
    assert again.summary == result.summary
    assert again.stopping == result.stopping
    assert digest(path) == before


def test_a_run_that_lost_some_of_its_episodes_comes_to_the_same_when_resumed(alone: tuple[Path, RunResult]) -> None:
    """As after a kill: episodes in front are missing, others beyond them are there."""
    path = alone[0].parent / "killed"
    shutil.copytree(alone[0], path)
    with contextlib.closing(sqlite3.connect(path / "ledger.sqlite")) as ledger, ledger:
        ledger.execute("DELETE FROM attempts WHERE episode IN (0, 21, 42)")
    prepared = prepare_resume(path)
    assert not prepared.is_finished
    assert execute(prepared, Listener()).complete
    assert counted(path) == counted(alone[0])


def test_without_the_rule_a_stopped_run_goes_on_to_its_end(alone: tuple[Path, RunResult]) -> None:
    path = alone[0].parent / "copy"
    shutil.copytree(alone[0], path)
    result = run(config(path, None))
    assert result.complete
    assert (result.stopping, result.summary.overall.n_finished) == (None, 60)
    assert "stopping" not in json.loads((path / "run.json").read_text())


def test_a_width_that_is_never_reached_plays_the_plan_and_no_more(tmp_path: Path) -> None:
    result = run(config(tmp_path / "run", "width<=0.01", n_episodes=3))
    assert result.complete
    assert result.stopping is not None
    assert (result.stopping["counted"], result.stopping["decided"]) == (None, False)
    assert result.summary.overall.n_finished == 9


def test_an_episode_that_errs_among_those_that_count_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "run"
    trouble = {"trouble": "raise@b/0", "max_attempts": 1}
    first = run(config(path, "width<=0.5", **trouble))
    assert not first.complete
    assert first.summary.overall.n_errors == 1
    prepared = prepare_resume(path)
    assert not prepared.is_finished


def test_a_run_stops_when_it_is_shown_to_be_worse_than_another(tmp_path: Path) -> None:
    good = run(config(tmp_path / "good", None, policy="expert", n_episodes=20))
    assert good.summary.overall.rate == 1.0
    result = run(config(tmp_path / "bad", f"vs={tmp_path / 'good'}", policy="zero", n_episodes=20))
    assert result.complete
    assert result.stopping is not None
    assert result.stopping["counted"] == 8  # eight losses in a row: E = 28.4
    assert result.stopping["words"].startswith("worse: won 0, lost 8 of 8 pairs against good")
    console_lines = report_of(result, tmp_path)
    assert any("Saved      52 of 60 episodes (87 %)" in line for line in console_lines)


def test_a_decision_that_is_stored_needs_the_other_run_no_more(tmp_path: Path) -> None:
    base, path = tmp_path / "good", tmp_path / "bad"
    run(config(base, None, policy="expert", n_episodes=20))
    result = run(config(path, f"vs={base}", policy="zero", n_episodes=20))
    shutil.rmtree(base)
    prepared = prepare_resume(path)
    assert prepared.is_finished
    before = digest(path)
    again = execute(prepared, Listener())
    assert (again.stopping, again.summary) == (result.stopping, result.summary)
    assert digest(path) == before
    with contextlib.closing(sqlite3.connect(path / "ledger.sqlite")) as ledger, ledger:
        ledger.execute("DELETE FROM attempts WHERE episode = 0")
    with pytest.raises(ConfigError, match="is no run"):  # what that episode comes to, the other run has to decide
        prepare_resume(path)


def report_of(result: RunResult, tmp_path: Path) -> list[str]:
    prepared = prepare_resume(result.output_dir)
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=100)
    return [line.plain for line in report_lines(prepared, result, console)]


def test_runs_that_cannot_be_compared_episode_by_episode_are_refused(tmp_path: Path) -> None:
    run(config(tmp_path / "a", None, n_episodes=1))
    other_seeds = replace(config(tmp_path / "b", f"vs={tmp_path / 'a'}", n_episodes=1), seed=77)
    with pytest.raises(ConfigError, match=r"toys/a/0 has seed 1000 and initial state None there, 77 and None here"):
        prepare(other_seeds)
    with pytest.raises(ConfigError, match="is no run"):
        prepare(config(tmp_path / "b", f"vs={tmp_path / 'nowhere'}"))
    with pytest.raises(ConfigError, match="a shard sees a slice of it"):
        prepare(config(tmp_path / "b", "width<=0.5", num_shards=2))
    assert not (tmp_path / "b").exists()


def test_another_run_that_has_changed_meanwhile_is_noticed(tmp_path: Path) -> None:
    run(config(tmp_path / "a", None, n_episodes=2, policy="expert"))
    run(config(tmp_path / "b", f"vs={tmp_path / 'a'}", n_episodes=2))
    shutil.rmtree(tmp_path / "a")
    run(config(tmp_path / "a", None, n_episodes=2, policy="zero"))
    with pytest.raises(ConfigError, match="has changed since this run began"):
        prepare_resume(tmp_path / "b")
