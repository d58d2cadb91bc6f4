from __future__ import annotations

import json
from pathlib import Path

import pytest

from robotrials.cli.resume import parse_resume
from robotrials.errors import ConfigError
from robotrials.plan.config import StatsSettings
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare_resume
from robotrials.stats.intervals import clopper_pearson, wilson
from tests.engine.toy_runs import Listener, run, toy_config


def test_only_the_statistics_may_change_on_resume() -> None:
    assert parse_resume(["runs/a", "--stats.interval=exact", "--dry_run"]) == (
        *(Path("runs/a"), True, StatsSettings("exact")),
    )
    assert parse_resume(["runs/a"]) == (Path("runs/a"), False, None)
    with pytest.raises(ConfigError, match=r"--stats.interval must be one of"):
        parse_resume(["runs/a", "--stats.interval=wald"])
    with pytest.raises(ConfigError, match="resume takes no --seed"):
        parse_resume(["runs/a", "--seed=3"])


def test_a_finished_run_is_summed_again_with_another_interval(tmp_path: Path) -> None:
    path = tmp_path / "run"
    before = run(toy_config(path, tasks="a", n_episodes=2)).summary.overall
    assert before.interval == pytest.approx(wilson(before.n_success, 2))
    again = execute(prepare_resume(path, StatsSettings("exact")), Listener()).summary.overall
    assert again.interval == pytest.approx(clopper_pearson(before.n_success, 2))

    assert "Clopper-Pearson" in json.loads((path / "eval_info.json").read_text())["interval"]
