from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from robotrials.datasets import tables
from robotrials.datasets.layout import DatasetLayout
from robotrials.datasets.lerobot_v3 import DatasetSize, KeptEpisode, write_dataset
from robotrials.errors import DatasetError
from tests.datasets.kept import CAMERA, decode, keep, make_task, state

pq = pytest.importorskip("pyarrow.parquet")

LIFT, DROP = make_task("lift"), make_task("drop")
LAYOUT = DatasetLayout.of_tasks([LIFT, DROP], "all")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of 5, 1 and 8 steps; the last is of another task and timed out."""
    folder = tmp_path_factory.mktemp("run")
    kept = [keep(folder, LIFT, 0, 5), keep(folder, LIFT, 4, 1), keep(folder, DROP, 7, 8, success=False)]
    assert write_dataset(folder / "ds", LAYOUT, kept) == DatasetSize(3, 14)
    return folder / "ds"


def rows(path: Path) -> list[dict]:
    return pq.read_table(path).to_pylist()


def test_every_step_is_a_row_with_lerobots_counters(dataset: Path) -> None:
    data = rows(dataset / "data/chunk-000/file-000.parquet")
    assert [row["episode_index"] for row in data] == [0] * 5 + [1] + [2] * 8
    assert [row["index"] for row in data] == list(range(14))
    assert [row["frame_index"] for row in data] == [*range(5), 0, *range(8)]
    assert [row["task_index"] for row in data] == [0] * 6 + [1] * 8
    assert [row["seed"] for row in data] == [1000] * 5 + [1004] + [1007] * 8
    np.testing.assert_allclose([row["timestamp"] for row in data], [row["frame_index"] / 20 for row in data])
    np.testing.assert_array_equal([row["observation.state"] for row in data[6:]], [state(7, step) for step in range(8)])
    assert data[8]["action"] == [2.0, 0.0, 1.0]
    assert data[8]["next.reward"] == -2.0
    assert [row["next.success"] for row in data] == [False] * 4 + [True, True] + [False] * 8
    assert [row["next.done"] for row in data] == [False] * 4 + [True, True] + [False] * 7 + [True]


def test_an_episode_is_a_row_group(dataset: Path) -> None:
    metadata = pq.ParquetFile(dataset / "data/chunk-000/file-000.parquet").metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [5, 1, 8]


def test_an_episodes_row_says_where_its_frames_lie_and_how_it_ended(dataset: Path) -> None:
    episodes = rows(dataset / "meta/episodes/chunk-000/file-000.parquet")
    last = {key: value for key, value in episodes[2].items() if not key.startswith("stats/")}
    assert last == {
        "episode_index": 2,
        "tasks": ["Please drop"],
        "length": 8,
        "data/chunk_index": 0,
        "data/file_index": 0,
        "dataset_from_index": 6,
        "dataset_to_index": 14,
        f"videos/{CAMERA}/chunk_index": 0,
        f"videos/{CAMERA}/file_index": 0,
        f"videos/{CAMERA}/from_timestamp": 0.3,
        f"videos/{CAMERA}/to_timestamp": 0.7,
        "seed": 1007,
        "init_state": None,
        "suite": "toys",
        "task_name": "drop",
        "success": False,
        "end": "time_limit",
        "reward_sum": -1.0,
        "reward_max": 0.0,
        "meta/episodes/chunk_index": 0,
        "meta/episodes/file_index": 0,
    }
    assert episodes[2]["stats/next.reward/mean"] == [-3.5]
    assert episodes[2]["stats/next.reward/count"] == [8]
    assert np.array(episodes[2][f"stats/{CAMERA}/mean"]).shape == (3, 1, 1)


def test_videos_hold_a_frame_for_every_step(dataset: Path) -> None:
    frames = decode(dataset / f"videos/{CAMERA}/chunk-000/file-000.mp4")
    assert [time for time, _ in frames] == pytest.approx([step / 20 for step in range(14)])


def test_info_counts_what_is_there(dataset: Path) -> None:
    info = json.loads((dataset / "meta/info.json").read_text())
    assert (info["codebase_version"], info["fps"], info["splits"]) == ("v3.0", 20, {"train": "0:3"})
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"]) == (3, 14, 2)
    table = pq.read_schema(dataset / "data/chunk-000/file-000.parquet")
    assert [key for key in info["features"] if key != CAMERA] == table.names


def test_statistics_are_those_of_all_rows(dataset: Path) -> None:
    stats = json.loads((dataset / "meta/stats.json").read_text())
    data = rows(dataset / "data/chunk-000/file-000.parquet")
    for key in ("observation.state", "action", "next.reward", "next.success", "index"):
        values = np.array([row[key] for row in data], float).reshape(14, -1)
        np.testing.assert_allclose(stats[key]["mean"], values.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(stats[key]["std"], values.std(axis=0), rtol=1e-12)
        np.testing.assert_allclose(stats[key]["q90"], np.quantile(values, 0.9, axis=0), rtol=1e-12)
    assert stats[CAMERA]["count"] == [14]


def test_a_full_table_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_DATA_MB", 0)
    write_dataset(tmp_path / "ds", LAYOUT, [keep(tmp_path, LIFT, number, 3) for number in range(3)])
    assert [len(rows(tmp_path / f"ds/data/chunk-000/file-00{number}.parquet")) for number in range(3)] == [3, 3, 3]
    episodes = rows(tmp_path / "ds/meta/episodes/chunk-000/file-000.parquet")
    assert [row["data/file_index"] for row in episodes] == [0, 1, 2]


def test_without_cameras_there_are_no_videos(tmp_path: Path) -> None:
    layout = DatasetLayout.of_tasks([LIFT], "none")
    write_dataset(tmp_path / "ds", layout, [keep(tmp_path, LIFT, 0, 3, cameras=())])
    assert not (tmp_path / "ds/videos").exists()
    info = json.loads((tmp_path / "ds/meta/info.json").read_text())
    assert info["video_path"] is None
    assert CAMERA not in info["features"]


def test_episodes_are_taken_one_at_a_time(tmp_path: Path) -> None:
    """More episodes than rows are written at once, from an iterator that would show any look ahead."""
    taken = []

    def one_by_one() -> object:
        for number in range(103):
            kept = keep(tmp_path, LIFT, number, 1, cameras=())
            yield kept
            taken.append(number)
            (kept.spool / "columns.npz").unlink()

    layout = DatasetLayout.of_tasks([LIFT], "none")
    assert write_dataset(tmp_path / "ds", layout, one_by_one()).episodes == 103  # type: ignore[arg-type]
    episodes = rows(tmp_path / "ds/meta/episodes/chunk-000/file-000.parquet")
    assert [row["seed"] for row in episodes] == [1000 + number for number in taken]


def test_a_spool_that_does_not_fit_its_record_is_an_error_that_names_it(tmp_path: Path) -> None:
    kept = keep(tmp_path, LIFT, 0, 3)
    longer = KeptEpisode(kept.spec, LIFT, keep(tmp_path, LIFT, 1, 4).record, kept.spool)
    with pytest.raises(DatasetError, match=r"spool/0-1: observation\.state is \[3, 2\]; an episode of 4 steps"):
        write_dataset(tmp_path / "ds", LAYOUT, [longer])
