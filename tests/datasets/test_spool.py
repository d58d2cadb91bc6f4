from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robotrials.datasets.spool import COLUMNS, EpisodeSpool, clear_unfinished, load_columns, spool_folder
from robotrials.errors import ContractError, DatasetError
from tests.datasets.kept import CAMERA, decode, frame, keep, make_task, state

SEEN = {CAMERA: frame(0, 0), "observation.state": state(0, 0)}


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_every_step_has_its_row_and_its_frame_at_its_time(tmp_path: Path) -> None:
    kept = keep(tmp_path, make_task(), episode=3, steps=12)
    assert kept.spool == tmp_path / "spool/3-1"
    columns = load_columns(kept.spool)
    np.testing.assert_array_equal(columns["observation.state"], [state(3, step) for step in range(12)])
    np.testing.assert_array_equal(columns["action"][:, 0], np.arange(12))
    np.testing.assert_array_equal(columns["next.reward"], -np.arange(12.0))
    assert columns["next.success"].tolist() == columns["next.done"].tolist() == [False] * 11 + [True]
    assert {key: columns[key].dtype.name for key in ("observation.state", "action", "next.reward", "next.done")} == {
        "observation.state": "float32",
        "action": "float32",
        "next.reward": "float32",
        "next.done": "bool",
    }
    frames = decode(kept.spool / f"{CAMERA}.mp4")
    assert [time for time, _ in frames] == [step / 20 for step in range(12)]
    for step, (_, picture) in enumerate(frames):
        np.testing.assert_allclose(picture, frame(3, step), atol=3)


def test_odd_sizes_are_kept(tmp_path: Path) -> None:
    kept = keep(tmp_path, make_task(side=17), episode=0, steps=3)
    (_, picture), *_ = decode(kept.spool / f"{CAMERA}.mp4")
    assert picture.shape == (17, 17, 3)
    np.testing.assert_allclose(picture, frame(0, 0, 17), atol=3)


def test_nothing_is_seen_under_the_name_before_finish_and_nothing_is_left_after_discard(tmp_path: Path) -> None:
    spool = EpisodeSpool(spool_folder(tmp_path, 0, 1), make_task(), (CAMERA,))
    spool.add(SEEN, np.zeros(3), 0.0, False)
    assert not (tmp_path / "spool/0-1").exists()
    spool.discard()
    assert files(tmp_path) == []


def test_the_same_attempt_made_again_replaces_the_first(tmp_path: Path) -> None:
    keep(tmp_path, make_task(), episode=0, steps=9)
    keep(tmp_path, make_task(), episode=0, steps=4)
    assert len(load_columns(tmp_path / "spool/0-1")["action"]) == 4
    assert files(tmp_path) == [f"spool/0-1/{COLUMNS}", f"spool/0-1/{CAMERA}.mp4"]


def test_what_a_killed_worker_left_is_cleared_and_finished_spools_stay(tmp_path: Path) -> None:
    keep(tmp_path, make_task(), episode=0, steps=2)
    (tmp_path / "spool/.1-1.77.tmp").mkdir()
    (tmp_path / "spool/.1-1.77.tmp/x").touch()
    clear_unfinished(tmp_path)
    assert [path.name for path in (tmp_path / "spool").iterdir()] == ["0-1"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"observation.state": np.zeros(3)}, r"observation.state as float32\[2\], but showed float64\[3\]"),
        ({CAMERA: np.zeros((8, 8, 3), np.uint8)}, r"uint8\[16, 16, 3\], but showed uint8\[8, 8, 3\]"),
        ({CAMERA: np.zeros((16, 16, 3))}, r"but showed float64\[16, 16, 3\]"),
    ],
)
def test_what_the_task_did_not_declare_is_refused(tmp_path: Path, change: dict, words: str) -> None:
    spool = EpisodeSpool(tmp_path / "spool/0-1", make_task(), (CAMERA,))
    with pytest.raises(ContractError, match=words):
        spool.add({**SEEN, **change}, np.zeros(3), 0.0, False)
    with pytest.raises(ContractError, match="showed nothing"):
        spool.add({}, np.zeros(3), 0.0, False)
    spool.discard()


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("in the way")
    spool = EpisodeSpool(spool_folder(tmp_path, 0, 1), make_task(), (CAMERA,))
    spool.add(SEEN, np.zeros(3), 0.0, False)
    with pytest.raises(DatasetError, match="spool/0-1 could not be written"):
        spool.finish()


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    kept = keep(tmp_path, make_task(), episode=0, steps=2)
    path = kept.spool / COLUMNS
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DatasetError, match=r"columns\.npz cannot be read"):
        load_columns(kept.spool)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / COLUMNS, action=np.array([{}], dtype=object))
    with pytest.raises(DatasetError, match="allow_pickle"):
        load_columns(tmp_path)
