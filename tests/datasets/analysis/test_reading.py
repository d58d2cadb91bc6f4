from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robotrials.datasets.analysis.catalogue import open_catalogue
from robotrials.datasets.analysis.reading import read_episodes
from robotrials.datasets.layout import DatasetLayout
from robotrials.datasets.lerobot_v3 import write_dataset as write_rollouts
from robotrials.errors import ConfigError, DatasetError
from tests.datasets.analysis.made_up import strategies, write_dataset
from tests.datasets.kept import keep, make_task


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "ds", strategies(4, [40, 50, 60, 70], 3, 1, 0))


def edit_info(root: Path, **values: object) -> None:
    path = root / "meta/info.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def edit_episodes(root: Path, **columns: list[object]) -> None:
    edit_table(root / "meta/episodes/chunk-000/file-000.parquet", columns)


def edit_rows(root: Path, **columns: pa.Array) -> None:
    edit_table(root / "data/chunk-000/file-000.parquet", columns)


def edit_table(path: Path, columns: Mapping[str, Any]) -> None:
    table = pq.read_table(path)
    pq.write_table(pa.table({**{name: table.column(name) for name in table.column_names}, **columns}), path)


def test_the_chosen_episodes_are_read_with_progress_linear_in_time(root: Path) -> None:
    motions = strategies(4, [40, 50, 60, 70], 3, 1, 0)
    episodes, source = read_episodes(open_catalogue(root), np.array([1, 3]), 2, "auto")
    assert source == "time"
    assert [episode.index for episode in episodes] == [1, 3]
    for episode in episodes:
        np.testing.assert_array_equal(episode.actions, motions[episode.index][:, :2])
        np.testing.assert_allclose(episode.progress, np.linspace(0, 1, len(motions[episode.index])))
        assert episode.success is None


def test_a_column_of_progress_is_clipped_and_never_falls(tmp_path: Path) -> None:
    progress = [np.array([-0.5, 0.2, np.nan, 0.1, 0.9, 1.5], np.float32)]
    root = write_dataset(tmp_path / "ds", strategies(1, 6, 2, 1, 0), progress=progress)
    (episode,), source = read_episodes(open_catalogue(root), np.array([0]), 2, "auto")
    assert source == "progress"
    np.testing.assert_allclose(episode.progress, [0, 0.2, 0.2, 0.2, 0.9, 1.0], rtol=1e-6)


def test_the_progress_of_a_sarm_file_wins_over_time(root: Path) -> None:
    table = {
        "episode_index": np.repeat(np.arange(4), [40, 50, 60, 70]),
        "frame_index": np.concatenate([np.arange(n) for n in (40, 50, 60, 70)]),
        "progress_sparse": np.concatenate([np.linspace(0, 1, n) ** 2 for n in (40, 50, 60, 70)]),
    }
    pq.write_table(pa.table(table), root / "sarm_progress.parquet")
    (episode,), source = read_episodes(open_catalogue(root), np.array([2]), 3, "auto")
    assert source == "sarm_progress.parquet: progress_sparse"
    np.testing.assert_allclose(episode.progress, np.linspace(0, 1, 60) ** 2)
    (episode,), source = read_episodes(open_catalogue(root), np.array([2]), 3, "time")
    np.testing.assert_allclose(episode.progress, np.linspace(0, 1, 60))


def test_rollouts_of_a_run_say_which_succeeded(tmp_path: Path) -> None:
    task = make_task()
    kept = [keep(tmp_path / "run", task, i, 5 + i, success=i != 1) for i in range(3)]
    write_rollouts(tmp_path / "ds", DatasetLayout.of_tasks([task], "all"), kept)
    for video in (tmp_path / "ds").rglob("*.mp4"):
        video.unlink()  # pictures are not looked at
    episodes, _ = read_episodes(open_catalogue(tmp_path / "ds"), np.arange(3), 16, "auto")
    assert [episode.success for episode in episodes] == [True, False, True]
    assert episodes[2].actions[:, 0].tolist() == list(range(7))


def test_a_dataset_whose_episodes_lost_the_column_is_read_by_its_rows(tmp_path: Path) -> None:
    task = make_task()
    kept = [keep(tmp_path / "run", task, i, 5, success=i != 1) for i in range(2)]
    write_rollouts(tmp_path / "ds", DatasetLayout.of_tasks([task], "none"), kept)
    index = tmp_path / "ds/meta/episodes/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(index).drop_columns(["success"]), index)
    episodes, _ = read_episodes(open_catalogue(tmp_path / "ds"), np.arange(2), 16, "auto")
    assert [episode.success for episode in episodes] == [True, False]


def test_words_for_success_say_nothing(root: Path) -> None:
    edit_episodes(root, success=["no"] * 4)
    assert open_catalogue(root).success is None


def test_a_dataset_without_episodes_says_so(root: Path) -> None:
    path = root / "meta/episodes/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    with pytest.raises(DatasetError, match="holds no episode"):
        open_catalogue(root)


def test_names_of_joints_come_from_either_shape_of_the_feature(tmp_path: Path) -> None:
    for number, names in enumerate((["x", "y"], {"motors": ["x", "y"]})):
        root = write_dataset(tmp_path / str(number), strategies(1, 6, 2, 1, 0), names=names)
        assert open_catalogue(root).joints == ("x", "y")


def test_a_dataset_of_format_2_is_told_how_to_become_3(root: Path) -> None:
    edit_info(root, codebase_version="v2.1")
    with pytest.raises(DatasetError, match=r"v2\.1; this reads v3\.0[\s\S]*convert_dataset_v21_to_v30"):
        open_catalogue(root)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda root: (root / "meta/info.json").unlink(), "no meta/info.json"),
        (lambda root: (root / "meta/info.json").write_text("{"), "cannot be read"),
        (lambda root: edit_info(root, total_episodes=9), "counts 9 episodes, meta/episodes has 4"),
        (lambda root: edit_info(root, features={}), "no feature 'action'"),
        (lambda root: edit_info(root, features=["action"]), "features must be a map, not a list"),
        (lambda root: edit_info(root, features={"action": "float32"}), "has the shape None"),
        (lambda root: edit_info(root, features={"action": {"shape": "six"}}), "has the shape 'six'"),
        (lambda root: edit_info(root, features={"action": {"shape": [0]}}), r"has the shape \[0\]"),
        (lambda root: edit_info(root, features={"action": {"shape": [6]}}), "have 3 entries, meta/info.json says 6"),
        (lambda root: edit_info(root, fps="fast"), "fps is 'fast'"),
        (lambda root: edit_info(root, fps=-3), "fps is -3"),
        (lambda root: edit_info(root, fps=0), "fps is 0"),
        (lambda root: edit_info(root, data_path=5), "5 is missing"),
        (lambda root: edit_info(root, data_path="../x.parquet"), "leads out of the dataset, to .*x.parquet"),
        (lambda root: edit_info(root, data_path="/x.parquet"), "leads out of the dataset, to /x.parquet"),
        (lambda root: edit_episodes(root, length=["x"] * 4), "length holds no whole numbers"),
        (lambda root: edit_episodes(root, length=[40, -5, 60, 70]), "episode 1 has -5 frames"),
        (lambda root: edit_episodes(root, episode_index=[0, 1, 1, 3]), "episode 1 is there 2 times"),
        (lambda root: edit_rows(root, action=pa.array(["x"] * 220)), "action: string is not made of numbers"),
        (lambda root: edit_rows(root, action=pa.array([["x"] * 3] * 220)), "is not made of numbers"),
        (lambda root: edit_rows(root, episode_index=pa.array(["0"] * 220)), "episode_index: string is not"),
        (lambda root: edit_rows(root, frame_index=pa.array([None] * 220, pa.int64())), "not every row has a whole"),
        (lambda root: (root / "data/chunk-000/file-000.parquet").unlink(), "file-000.parquet is missing"),
        (lambda root: (root / "data/chunk-000/file-000.parquet").write_bytes(b"PAR1"), "cannot be read"),
    ],
)
def test_a_broken_dataset_is_named_with_its_file(root: Path, damage: object, message: str) -> None:
    damage(root)  # type: ignore[operator]
    with pytest.raises(DatasetError, match=message):
        read_episodes(open_catalogue(root), np.array([0]), 3, "auto")


def test_lost_rows_and_actions_that_are_no_number_are_refused(root: Path) -> None:
    path = root / "data/chunk-000/file-000.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 30), path)
    with pytest.raises(DatasetError, match="episode 0 has 30 rows, meta/episodes says 40"):
        read_episodes(open_catalogue(root), np.array([0]), 3, "auto")
    motions = strategies(1, 40, 3, 1, 0)
    motions[0][7, 1] = np.nan
    other = write_dataset(root.parent / "nan", motions)
    with pytest.raises(DatasetError, match="episode 0, frame 7: action 1 is not a number"):
        read_episodes(open_catalogue(other), np.array([0]), 3, "auto")


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "ds", strategies(1, 6, 2, 1, 0), progress=[np.linspace(0, 1, 6)])
    with pytest.raises(ConfigError, match=r"--progress=done: .* it has: progress"):
        read_episodes(open_catalogue(root), np.array([0]), 2, "done")
