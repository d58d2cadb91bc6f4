from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from robotrials.errors import LedgerError
from robotrials.plan.plan import build_plan
from robotrials.results.export.eval_info import strict_json, write_exports
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import RunDirectory
from robotrials.results.summary import summarize
from robotrials.stats.intervals import clopper_pearson, suite_rate, wilson
from tests.results.tiny_run import errored, fill, finished, plan

CONFIG = {
    "policy": {"type": "onnx", "path": "bc.onnx", "options": {}},
    "env": {"type": "metaworld", "options": {"task": "easy,hard"}},
    "seed": 1000,
}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    with RunDirectory(tmp_path) as directory:
        yield directory


def refuse_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def load(run: RunDirectory, name: str) -> Any:
    return json.loads((run.path / name).read_bytes(), parse_constant=refuse_constant)


def export(run: RunDirectory, records: list[Any] | None = None, config: dict[str, Any] | None = None) -> None:
    with Ledger.create(run.ledger_path, {}) as ledger:
        if records is None:
            fill(ledger)
        else:
            ledger.record([(record, True) for record in records])
        summary = summarize(ledger, plan())
        write_exports(run, plan(), ledger, summary, {"config": config or CONFIG}, eval_s=90.0)


def percent(interval: tuple[float, float]) -> list[float]:
    return [100.0 * bound for bound in interval]


def test_eval_info_lists_every_task_with_its_episodes_in_order(run: RunDirectory) -> None:
    export(run)
    push, reach, hammer = load(run, "eval_info.json")["per_task"]
    assert push == {
        "task_group": "easy",
        "task_id": 0,
        "task": "push",
        "metrics": {
            "sum_rewards": [1.0, 2.0, 4.0, -3.0],
            "max_rewards": [0.5, 1.0, 1.0, -0.5],
            "successes": [True, True, True, False],
            "video_paths": ["videos/0.mp4"],
            "predicted_video_paths": [],
            "episodes": [0, 1, 2, 3],
            "seeds": [1000, 1001, 1002, 1003],
            "steps": [10, 20, 30, 500],
            "nonfinite_observations": [0, 0, 0, 0],
            "errors": [],
            "avg_sum_reward": 1.0,
            "avg_max_reward": 0.5,
            "pc_success": 75.0,
            "pc_success_ci95": percent(wilson(3, 4)),
            "n_success": 3,
            "n_errors": 0,
            "n_nonfinite": 0,
            "n_planned": 4,
        },
    }
    assert (reach["task_group"], reach["task_id"]) == ("easy", 1)
    assert (hammer["task_group"], hammer["task_id"]) == ("hard", 0)


def test_an_errored_episode_is_no_failure_and_is_listed_as_error(run: RunDirectory) -> None:
    export(run)
    reach = load(run, "eval_info.json")["per_task"][1]["metrics"]
    assert reach["successes"] == [True, False]
    assert (reach["episodes"], reach["seeds"]) == ([0, 2], [1000, 1002])
    assert reach["errors"] == [{"episode": 1, "seed": 1001, "attempt": 3, "error": "RuntimeError: boom"}]
    assert (reach["n_success"], reach["n_errors"], reach["pc_success"]) == (1, 1, 50.0)


def test_a_rate_over_no_finished_episode_is_null(run: RunDirectory) -> None:
    export(run)
    info = load(run, "eval_info.json")
    assert info["per_group"]["hard"] == {
        "avg_sum_reward": None,
        "avg_max_reward": None,
        "pc_success": None,
        "pc_success_ci95": None,
        "n_episodes": 0,
        "n_success": 0,
        "n_errors": 2,
        "n_nonfinite": 0,
        "n_planned": 4,
        "video_paths": [],
        "predicted_video_paths": [],
    }


def test_groups_and_overall_have_lerobots_keys_and_the_interval(run: RunDirectory) -> None:
    export(run)
    info = load(run, "eval_info.json")
    _, low, high = suite_rate([(3, 4), (1, 2)])
    easy = {
        "avg_sum_reward": 3.0,
        "avg_max_reward": 1.0,
        "pc_success": 62.5,
        "pc_success_ci95": percent((low, high)),
        "n_episodes": 6,
        "n_success": 4,
        "n_errors": 1,
        "n_nonfinite": 0,
        "n_planned": 8,
        "video_paths": ["videos/0.mp4", "videos/4.mp4"],
        "predicted_video_paths": [],
    }
    assert info["per_group"]["easy"] == easy
    assert info["overall"] == {**easy, "n_errors": 3, "n_planned": 12, "eval_s": 90.0, "eval_ep_s": 10.0}


def test_a_run_without_a_single_result_is_strict_json_too(run: RunDirectory) -> None:
    export(run, records=[])
    info = load(run, "eval_info.json")
    assert info["overall"]["pc_success"] is None
    assert info["per_task"][0]["metrics"]["successes"] == []
    assert load(run, "metrics.json")["pc_success"] is None


def test_rewards_that_are_no_numbers_become_null(run: RunDirectory) -> None:
    export(run, records=[finished(0, False, 1, math.nan, -math.inf), finished(1, True, 1, 1.0, 1.0)])
    push = load(run, "eval_info.json")["per_task"][0]["metrics"]
    assert (push["sum_rewards"], push["max_rewards"]) == ([None, 1.0], [None, 1.0])
    assert push["avg_sum_reward"] is None
    assert push["pc_success"] == 50.0


def test_metrics_is_one_flat_object_with_the_fields_of_lerobots_ci(run: RunDirectory) -> None:
    export(run)
    metrics = load(run, "metrics.json")
    _, low, high = suite_rate([(3, 4), (1, 2)])
    assert metrics["per_task"].pop("easy/push")["pc_success"] == 75.0
    assert sorted(metrics.pop("per_task")) == ["easy/reach", "hard/hammer"]
    assert metrics.pop("interval").startswith("95 %: Wilson")
    assert metrics == {
        "env": "metaworld",
        "task": "easy,hard",
        "policy": "bc.onnx",
        "pc_success": 62.5,
        "pc_success_ci95": percent((low, high)),
        "n_episodes": 6,
        "n_success": 4,
        "n_errors": 3,
        "n_nonfinite": 0,
        "n_planned": 12,
        "avg_sum_reward": 3.0,
        "avg_max_reward": 1.0,
        "eval_s": 90.0,
        "complete": False,
        "task_descriptions": {"push": "do push", "reach": "do reach", "hammer": "do hammer"},
    }


def test_a_policy_without_a_path_is_named_by_its_type_and_tasks_by_their_suites(run: RunDirectory) -> None:
    config = {"policy": {"type": "expert", "path": None, "options": {}}, "env": {"type": "metaworld", "options": {}}}
    export(run, config=config)
    metrics = load(run, "metrics.json")
    assert (metrics["policy"], metrics["task"]) == ("expert", "easy,hard")


def test_eval_config_is_the_configuration(run: RunDirectory) -> None:
    export(run)
    assert load(run, "eval_config.json") == CONFIG


def test_exports_are_the_same_bytes_whatever_order_the_results_came_in(run: RunDirectory, tmp_path: Path) -> None:
    records = [finished(i, i % 2 == 0, 10 * i, 0.1 * i, 0.3 * i) for i in range(11)] + [errored(11)]
    export(run, records=records)
    with RunDirectory(tmp_path / "other") as other:
        export(other, records=records[::-1])
        for name in ("eval_info.json", "metrics.json", "eval_config.json"):
            assert (other.path / name).read_bytes() == (run.path / name).read_bytes()


def test_an_export_that_cannot_be_written_says_how_to_get_it(run: RunDirectory) -> None:
    (run.path / "eval_info.json").mkdir()
    (run.path / "eval_info.json" / "in the way").touch()
    with pytest.raises(LedgerError, match=r"eval_info\.json cannot be written: .*robotrials resume"):
        export(run)


def test_strict_json_leaves_finite_numbers_exact() -> None:
    content = {"a": 0.1 + 0.2, "b": (1, True, None), "c": float("inf")}
    assert json.loads(strict_json(content)) == {"a": 0.1 + 0.2, "b": [1, True, None], "c": None}


def test_groups_of_tasks_and_the_method_of_the_intervals_are_named(run: RunDirectory) -> None:
    tasks = [replace(task, group="camera") for task in plan().tasks]
    grouped = build_plan(tasks, 4, 1000)
    with Ledger.create(run.ledger_path, {}) as ledger:
        fill(ledger)
        write_exports(run, grouped, ledger, summarize(ledger, grouped, "exact"), {"config": CONFIG}, eval_s=1.0)
    for name in ("eval_info.json", "metrics.json"):
        content = load(run, name)
        assert content["interval"].startswith("95 %: Clopper-Pearson for a task")
        assert content["per_label"]["camera"]["pc_success"] == 62.5
    assert load(run, "eval_info.json")["per_task"][0]["metrics"]["pc_success_ci95"] == percent(clopper_pearson(3, 4))
