"""A run that leaves the number of workers open is laid out by what was measured for its like, and by nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from robotrials.cli.main import main
from robotrials.run.prepare import PreparedRun, prepare
from robotrials.tuning.costs import EpisodeCost, MeasuredCosts, ServerCost
from robotrials.tuning.remembered import laid_out, remember
from tests.engine.toy_runs import toy_config

SLEEPER = EpisodeCost(
    reset=0.0, step=0.02, render=0.0, infer=0.0, rest=0.0, film=0.0, steps=50, steps_a_look=5, busy=0.05, lengths=(50,)
)
"""Its simulator sleeps 19 of 20 ms: many fit on a core."""
FIGURES = MeasuredCosts(
    cores=2,
    memory=float("inf"),
    gpus=1,
    gpu_memory=None,
    costs={"a": SLEEPER, "b": SLEEPER},
    start_s=0.1,
    build_s=0.0,
    coordinator_s=0.1,
    worker_memory=1e6,
    server=None,
)
SERVER = ServerCost(
    load_s=0.1, infer={1: 0.001, 4: 0.002}, other={16: 0.003}, max_batch=4, own_device=False, memory=1e6
)


def toy(directory: Path, **more: object) -> PreparedRun:
    return prepare(toy_config(directory, **{"batch_size": 0, "n_episodes": 60, **more}))


def test_a_run_of_what_was_measured_gets_the_workers_of_the_model(tmp_path: Path) -> None:
    prepared = toy(tmp_path / "run")
    assert laid_out(prepared) == (prepared, None)
    remember(prepared, FIGURES)
    found, words = laid_out(toy(tmp_path / "run"))
    assert (found.n_workers, found.n_servers) == (12, 0)  # six a core, the most that is tried
    assert words is not None
    assert words.startswith("workers as `robotrials tune` measured on 20")
    other_plan, _ = laid_out(toy(tmp_path / "other", n_episodes=2))
    assert other_plan.n_workers == 4  # no more than episodes


@pytest.mark.parametrize(
    "other",
    [{"batch_size": 1}, {"policy": "random"}, {"step_s": 0.5}, {"exact": False}, {"policy_servers": 1}],
    ids=lambda other: next(iter(other)),
)
def test_what_was_asked_for_and_what_is_another_run_stay_as_they_are(tmp_path: Path, other: dict) -> None:
    remember(toy(tmp_path / "run"), FIGURES)
    prepared = toy(tmp_path / "run", **other)
    assert laid_out(prepared) == (prepared, None)


def test_servers_that_were_asked_for_stay_and_the_batch_is_never_changed(tmp_path: Path) -> None:
    prepared = toy(tmp_path / "run", policy_servers=2)
    remember(prepared, replace(FIGURES, server=SERVER))
    found, _ = laid_out(prepared)
    assert found.n_servers == 2
    assert found.n_workers > prepared.n_workers
    assert found.policy == prepared.policy


@pytest.mark.parametrize("content", ["", "{}", '{"format": 1, "figures": {"server": 3}}', "[1]"])
def test_a_damaged_file_is_not_used(tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture) -> None:
    prepared = toy(tmp_path / "run")
    path = remember(prepared, FIGURES)
    assert json.loads(path.read_text())["figures"]["memory"] is None  # JSON has no infinity
    path.write_text(content)
    assert laid_out(prepared) == (prepared, None)
    assert f"{path} cannot be read, so it is not used" in caplog.text


def test_eval_says_where_its_workers_come_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--policy.type=tests.toy:Seer", "--env.type=tests.toy:Toy", "--env.step_s=0.01", "--eval.n_episodes=40"]
    assert main(["tune", *flags, "--seconds=1", "--json"]) == 0
    advised = json.loads(capsys.readouterr().out)["advice"]["workers"]
    assert main(["eval", *flags, f"--output_dir={tmp_path / 'run'}", "--dry_run"]) == 0
    said = capsys.readouterr()
    assert "workers as `robotrials tune` measured on" in said.err
    assert f"{advised} process" in said.out
