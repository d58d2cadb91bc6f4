"""Runs that version 0.1.0 wrote, kept under tests/data, are read by every verb with the figures of then.

``expert``, ``seer``: finished, 12 episodes of the toy benchmark. ``stopped``: interrupted after 5 of 12. ``shard-0``,
``shard-1``: the halves of ``expert``. ``metaworld``: finished, of a simulator that need not be installed to read it.
``dataset``: the rollouts of ``seer``. No later version may write these files anew.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import robotrials
from robotrials.cli.main import main

KEPT = Path(__file__).parent / "data" / "runs_of_0.1"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy: opening a ledger may bring it to this version's shape."""
    shutil.copytree(KEPT, tmp_path / "runs")
    monkeypatch.chdir(tmp_path / "runs")
    return tmp_path / "runs"


@pytest.mark.parametrize(("name", "rate"), [("expert", 100.0), ("seer", 100 * 11 / 12), ("metaworld", 100.0)])
def test_resume_of_a_finished_run_prints_its_table_again(
    runs: Path, name: str, rate: float, capsys: pytest.CaptureFixture[str]
) -> None:
    before = json.loads((KEPT / name / "eval_info.json").read_text())
    assert main(["resume", name]) == 0
    assert f"{rate:.1f} %" in capsys.readouterr().out
    again = json.loads((runs / name / "eval_info.json").read_text())
    for figure in ("pc_success", "n_episodes", "avg_sum_reward", "avg_max_reward"):
        assert again["overall"][figure] == before["overall"][figure]
    assert again["overall"]["pc_success"] == pytest.approx(rate)
    assert [task["metrics"]["successes"] for task in again["per_task"]] == [
        task["metrics"]["successes"] for task in before["per_task"]
    ]


def test_compare_pairs_their_episodes(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "expert", "seer"]) == 0
    page = capsys.readouterr().out
    assert "paired: 12 episodes" in page
    assert "-8.3 points [-28.0, +13.8]" in page
    assert "toys/b/0  seed 1000" in page


def test_the_report_shows_both(runs: Path) -> None:
    assert main(["report", "expert", "seer", "stopped", "--output=both.html"]) == 0
    page = (runs / "both.html").read_text()
    assert "91.7" in page


def test_the_leaderboard_ranks_them(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "expert", "seer", "--output=board.html"]) == 0
    assert "91.7" in (runs / "board.html").read_text()


def test_shards_merge_to_the_run_that_was_not_sharded(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", "shard-0", "shard-1", "--output_dir=whole"]) == 0
    whole = json.loads((runs / "whole" / "eval_info.json").read_text())
    unsharded = json.loads((KEPT / "expert" / "eval_info.json").read_text())
    for merged, then in zip(whole["per_task"], unsharded["per_task"], strict=True):
        assert {key: merged["metrics"][key] for key in then["metrics"]} == then["metrics"]


def test_export_gives_a_row_an_episode(runs: Path) -> None:
    assert main(["export", "seer", "--json=rows.json", "--csv=rows.csv"]) == 0
    rows = json.loads((runs / "rows.json").read_text())
    assert sum(row["success"] for row in rows) == 11
    assert len(rows) == len((runs / "rows.csv").read_text().splitlines()) - 1 == 12


def test_python_reads_them(runs: Path) -> None:
    rows = robotrials.load_run(runs / "seer")
    assert int(rows["success"].sum()) == 11
    assert list(rows["seed"]) == [1000, 1001, 1002, 1003, 1004, 1005] * 2


def test_metrics_of_a_stopped_run_are_of_an_unfinished_one(runs: Path) -> None:
    assert main(["metrics", "stopped"]) == 2


def test_the_dataset_is_analysed(runs: Path) -> None:
    assert main(["dataset", "analyze", "dataset", "--output_dir=analysis"]) == 0
    assert (runs / "analysis" / "analysis.json").exists()
