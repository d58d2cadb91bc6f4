from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robotrials.datasets import join
from robotrials.datasets.join import VideoJoiner
from robotrials.errors import DatasetError
from tests.datasets.kept import CAMERA, decode, keep, make_task


def videos(folder: Path, *lengths: int, side: int = 16, hz: float = 20.0) -> list[Path]:
    task = make_task(side=side, hz=hz)
    return [keep(folder, task, number, steps).spool / f"{CAMERA}.mp4" for number, steps in enumerate(lengths)]


@pytest.mark.parametrize("hz", [20.0, 80.0, 12.5, 7.0])
def test_joined_frames_are_those_of_the_parts_one_control_step_apart(tmp_path: Path, hz: float) -> None:
    parts = videos(tmp_path, 7, 1, 12, hz=hz)
    with VideoJoiner(tmp_path / "out", hz) as joiner:
        places = [joiner.add(path, steps) for path, steps in zip(parts, (7, 1, 12), strict=True)]
    assert [place.from_s for place in places] == pytest.approx([0.0, 7 / hz, 8 / hz], abs=1e-12)
    assert [place.to_s for place in places] == pytest.approx([7 / hz, 8 / hz, 20 / hz], abs=1e-12)
    joined = decode(tmp_path / "out/chunk-000/file-000.mp4")
    assert [time for time, _ in joined] == pytest.approx([frame / hz for frame in range(20)], abs=1e-9)
    for (_, ours), (_, theirs) in zip(joined, [f for path in parts for f in decode(path)], strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_full_file_is_followed_by_another_whose_time_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join, "MAX_VIDEO_S", 0.5)
    parts = videos(tmp_path, 6, 5, 4, 3)
    with VideoJoiner(tmp_path / "out", 20.0) as joiner:
        places = [joiner.add(path, steps) for path, steps in zip(parts, (6, 5, 4, 3), strict=True)]
    assert [place.file for place in places] == [(0, 0), (0, 1), (0, 1), (0, 2)]
    assert [place.from_s for place in places] == [0.0, 0.0, 0.25, 0.0]
    assert len(decode(tmp_path / "out/chunk-000/file-001.mp4")) == 9


def test_videos_that_were_encoded_in_another_way_go_to_another_file(tmp_path: Path) -> None:
    parts = [*videos(tmp_path / "a", 3), *videos(tmp_path / "b", 3, side=32)]
    with VideoJoiner(tmp_path / "out", 20.0) as joiner:
        assert [joiner.add(path, 3).file for path in parts] == [(0, 0), (0, 1)]
    assert decode(tmp_path / "out/chunk-000/file-001.mp4")[0][1].shape == (32, 32, 3)


def test_a_video_of_another_length_or_none_at_all_is_an_error_that_names_it(tmp_path: Path) -> None:
    (path,) = videos(tmp_path, 3)
    with VideoJoiner(tmp_path / "out", 20.0) as joiner:
        with pytest.raises(DatasetError, match="holds 3 frames, but the episode had 4 steps"):
            joiner.add(path, 4)
        with pytest.raises(DatasetError, match=r"missing\.mp4 cannot be joined"):
            joiner.add(tmp_path / "missing.mp4", 4)


def test_files_are_numbered_as_lerobot_numbers_them() -> None:
    index = join.FileIndex(0, 998)
    assert [(index := index.next()).path for _ in range(2)] == ["chunk-000/file-999", "chunk-001/file-000"]
