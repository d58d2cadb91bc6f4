from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import robotrials
from robotrials.cli.main import main
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.results.export import frame as frames
from robotrials.results.export.frame import COLUMNS, load_run
from tests.results.stored_runs import write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """push: success, error, nothing; reach: failure, failure, nothing."""
    outcomes = {("push", 0): True, ("push", 1): "error", ("reach", 0): False, ("reach", 1): False}
    return write_run(tmp_path / "run", lambda s: outcomes.get((s.task, s.index)), n=3)


EXPECTED = [
    ("push", 0, 1000, True, "success", 50),
    ("push", 1, 1001, None, "error", 3),
    ("reach", 0, 1000, False, "time_limit", 200),
    ("reach", 1, 1001, False, "time_limit", 200),
]
NAMES = ("task", "index", "seed", "success", "end", "steps")


def test_records_have_one_row_an_episode_errors_included(run: Path) -> None:
    rows = load_run(run, "records")
    assert [tuple(row[name] for name in NAMES) for row in rows] == EXPECTED
    assert list(rows[0]) == list(COLUMNS)
    assert (rows[0]["video"], rows[0]["counted"], rows[1]["error"]) == (
        *("videos/easy/push/0.mp4", True, "RuntimeError: boom"),
    )


def test_pandas_keeps_whole_numbers_and_truths_beside_missing_values(run: Path) -> None:
    pandas = pytest.importorskip("pandas")
    table = load_run(run, "pandas")
    assert isinstance(table, pandas.DataFrame)
    assert [tuple(None if v is pandas.NA else v for v in row) for row in table[list(NAMES)].values] == EXPECTED
    assert str(table.dtypes["init_state"]) == "Int64"
    assert table["init_state"].isna().all()
    # An error is neither: the mean over what has finished is the rate.
    assert table.groupby("task")["success"].mean().to_dict() == {"push": 1.0, "reach": 0.0}


def test_polars_has_the_same_rows(run: Path) -> None:
    polars = pytest.importorskip("polars")
    table = load_run(run, "polars")
    assert table.select(NAMES).rows() == EXPECTED
    assert table.schema["success"] == polars.Boolean
    assert table["success"].mean() == pytest.approx(1 / 3)


def test_arrow_has_the_same_rows(run: Path) -> None:
    pytest.importorskip("pyarrow")
    table = load_run(run, "arrow")
    assert [tuple(row[name] for name in NAMES) for row in table.to_pylist()] == EXPECTED


def test_auto_takes_what_is_installed_and_first_what_the_program_uses(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polars = pytest.importorskip("polars")
    monkeypatch.delitem(frames.sys.modules, "pandas", raising=False)
    assert isinstance(robotrials.load_run(run), polars.DataFrame)
    monkeypatch.delitem(frames.sys.modules, "polars", raising=False)
    monkeypatch.setattr(frames.importlib.util, "find_spec", lambda name: None)
    assert isinstance(robotrials.load_run(run), list)


def test_a_missing_package_and_an_unknown_frame_are_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(frames.sys.modules, "polars", None)
    with pytest.raises(NotInstalledError, match="needs polars: pip install polars"):
        load_run(run, "polars")
    with pytest.raises(ConfigError, match="frame must be auto, pandas, polars, arrow, records; got 'dask'"):
        load_run(run, "dask")


def test_episodes_after_an_early_stop_are_there_and_not_counted(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", lambda s: True, ("easy/push",), 3, stopping={"rule": "width<=1", "counted": 2})
    assert [(row["index"], row["counted"]) for row in load_run(path, "records")] == [(0, True), (1, True), (2, False)]


def test_export_writes_parquet_csv_and_strict_json(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert main(["export", str(run), "--parquet", "--csv", f"--json={run / 'rows.json'}"]) == 0
    table = parquet.read_table(run / "episodes.parquet")
    assert [tuple(row[name] for name in NAMES) for row in table.to_pylist()] == EXPECTED
    described = json.loads(table.schema.metadata[b"robotrials"])
    assert described["config"]["seed"] == 1000
    with open(run / "episodes.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["task"], row["success"]) for row in rows] == [
        *(("push", "True"), ("push", ""), ("reach", "False"), ("reach", "False")),
    ]
    content = json.loads((run / "rows.json").read_text(), parse_constant=pytest.fail)
    assert [tuple(row[name] for name in NAMES) for row in content] == EXPECTED
    assert f"wrote {run / 'episodes.parquet'}" in capsys.readouterr().err


def test_a_table_goes_to_standard_output(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(run), "--csv=-"]) == 0
    said = capsys.readouterr()
    assert [row["task"] for row in csv.DictReader(said.out.splitlines())] == ["push", "push", "reach", "reach"]
    assert said.err == ""
    assert main(["export", str(run), "--json=-"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4
    assert not Path("-").exists()


@pytest.mark.parametrize("path", [None, 3, ["a"]])
def test_what_is_no_path_is_refused_in_words(path: object) -> None:
    with pytest.raises(ConfigError, match="load_run takes the path of a run, got"):
        load_run(path)  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", ["report", "resume", "push", "merge"])
def test_a_file_in_the_place_of_a_run_directory_is_called_one(
    run: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    if verb == "push":
        pytest.importorskip("huggingface_hub", minversion="1.4")
    file = run / "run.json"
    more = {"push": ["--repo_id=a/b"], "merge": [f"--output_dir={run}-merged"]}.get(verb, [])
    assert main([verb, str(file), *more]) == 1
    assert f"{file} is a file: give the run directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "export takes one run"),
        (["RUN", "--parquet=-"], "only --csv=- and --json=- write to standard output"),
        (["RUN", "--csv=-", "--json=-"], "would write into each other"),
        (["RUN"], "needs a format"),
        (["RUN", "--parqet"], "did you mean"),
        (["RUN", "--csv=/nowhere/at/all.csv"], "cannot be written: No such file"),
    ],
)
def test_exports_that_cannot_be_meant_are_refused(
    run: Path, capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert main(["export", *(str(run) if word == "RUN" else word for word in argv)]) == 1
    assert message in capsys.readouterr().err


def test_a_frame_of_lerobots_file_has_what_the_file_knows(tmp_path: Path) -> None:
    metrics: dict[str, Any] = {"successes": [True, False], "sum_rewards": [2.0, 1.0], "max_rewards": [1.0, 0.0]}
    info = {"per_task": [{"task_group": "g", "task_id": 0, "metrics": metrics}]}
    (tmp_path / "eval_info.json").write_text(json.dumps(info))
    rows = load_run(tmp_path, "records")
    assert [(row["success"], row["reward_sum"], row["seed"], row["total_s"]) for row in rows] == [
        *((True, 2.0, None, None), (False, 1.0, None, None)),
    ]
