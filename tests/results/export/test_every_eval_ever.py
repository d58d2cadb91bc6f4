from __future__ import annotations

import json
from pathlib import Path

import pytest

from robotrials.cli.main import main
from robotrials.errors import ConfigError
from robotrials.results.export.every_eval_ever import aggregate, relative_path
from robotrials.results.reopened import reopen
from robotrials.stats.intervals import suite_rate, wilson
from tests.results.stored_runs import write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    sessions = [{"started_at": 1_790_000_000.5, "wall_s": 3.0}]
    return write_run(tmp_path / "run", lambda s: s.index < 7, n=10, sessions=sessions)


def test_rates_of_all_suites_and_tasks_have_intervals_and_counts(run: Path) -> None:
    record = aggregate(reopen(run), "lab/policy", "Lab")
    results = {entry["evaluation_name"]: entry["score_details"] for entry in record["evaluation_results"]}
    assert list(results) == ["overall", "easy", "easy/push", "easy/reach"]
    interval = results["easy/push"]["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"]) == wilson(7, 10)
    overall = results["overall"]
    assert (overall["score"], overall["uncertainty"]["num_samples"]) == (0.7, 20)
    assert overall["uncertainty"]["confidence_interval"]["lower"] == suite_rate([(7, 10), (7, 10)])[1]
    assert overall["details"]["n_errors"] == "0"
    assert (record["model_info"]["id"], record["evaluation_timestamp"]) == ("lab/policy", "1790000000.500")


def test_the_same_run_is_the_same_file(run: Path) -> None:
    figures = reopen(run)
    paths = {relative_path(figures, aggregate(figures, "lab/policy")) for _ in range(2)}
    (path,) = paths
    assert path.parts[:4] == ("data", "toy", "lab", "policy")


def test_a_run_without_a_result_is_refused(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", lambda s: "error", n=2)
    with pytest.raises(ConfigError, match="no episode has finished"):
        aggregate(reopen(path))
    ok = write_run(tmp_path / "ok", lambda s: True, n=2)
    with pytest.raises(ConfigError, match="must be developer/model, got 'x'"):
        aggregate(reopen(ok), "x")


def test_a_task_without_a_rate_is_left_out_and_not_zero(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", lambda s: "error" if s.task == "push" else True, n=2)
    names = [entry["evaluation_name"] for entry in aggregate(reopen(path))["evaluation_results"]]
    assert names == ["overall", "easy", "easy/reach"]


def test_its_own_package_finds_no_fault(run: Path, tmp_path: Path) -> None:
    core = pytest.importorskip("every_eval_ever.validator.validation_core")
    assert main(["export", str(run), f"--every-eval-ever={tmp_path}", "--model_id=lab/policy"]) == 0
    (file,) = (tmp_path / "data").rglob("*.json")
    json.loads(file.read_text(), parse_constant=pytest.fail)
    report = core.validate_aggregate(file, repo_path=str(file.relative_to(tmp_path)), run_semantic_checks=True)
    assert report.valid, report.errors
    assert report.warnings == []
