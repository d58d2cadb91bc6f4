"""Results from repositories, by the real client against the stand-in of the Hub's API."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reporting.hub_server import Hub, serving
from tests.reporting.test_hub import robotrials
from tests.reporting.test_sources import entry

pytest.importorskip("huggingface_hub", reason="robotrials[hub]", minversion="1.4")


def results(*successes: list[bool]) -> bytes:
    return json.dumps({"per_task": [entry("easy", i, own) for i, own in enumerate(successes)]}).encode()


@pytest.fixture
def hub() -> Iterator[Hub]:
    train = {"policy": {"type": "act"}, "dataset": {"repo_id": "lab/data"}, "steps": 5, "batch_size": 8}
    repos = {
        "lab/act": {
            "eval/metaworld/eval_info.json": results([True] * 9 + [False]),
            "train_config.json": json.dumps(train).encode(),
        },
        "lab/pi0": {
            "results/eval_info.json": results([False] * 10),
            "results/eval_config.json": json.dumps({"env": {"type": "metaworld"}}).encode(),
        },
        "lab/empty": {"README.md": b"# nothing"},
        "lab/broken": {"eval/metaworld/eval_info.json": b"{"},
    }
    with serving(Hub(repos=repos)) as running:
        yield running


def test_a_list_of_repositories_is_ranked_and_what_gave_nothing_is_named(hub: Hub, tmp_path: Path) -> None:
    names = tmp_path / "models.txt"
    names.write_text("# models\nlab/act\nlab/pi0\nlab/empty\nlab/broken\nlab/gone # left\nno name at all\n")
    board = tmp_path / "board.html"
    done = robotrials(hub, tmp_path, "leaderboard", f"--repos={names}", f"--output={board}", token=None)
    assert done.returncode == 2, done.stderr
    act, pi0 = csv.DictReader((tmp_path / "board.csv").read_text().splitlines())
    assert (act["rank"], act["model"], act["policy_type"], act["dataset"]) == ("1", "lab/act", "act", "lab/data")
    assert (act["easy percent"], pi0["easy percent"], pi0["rank"]) == ("90.0000", "0.0000", "2")
    for line in (
        "lab/empty: it holds no eval_info.json",
        "lab/broken/eval/metaworld/eval_info.json:",
        "lab/gone: there is no such model repository",
        "no name at all: this is no name of a repository",
    ):
        assert line in done.stderr
        assert line in board.read_text()
