from __future__ import annotations

import threading
import time
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from robotrials.errors import ContractError, VideoError
from robotrials.results import video as video_module
from robotrials.results.video import EpisodeVideo


def picture(step: int, height: int = 48, width: int = 64) -> np.ndarray:
    """Grey that brightens with the step, with a red left half: flips and swapped channels would show."""
    frame = np.full((height, width, 3), 40 + step, np.uint8)
    frame[:, : width // 2] = (200, 30, 30)
    return frame


def decoded(path: Path) -> tuple[list[float], list[np.ndarray], float]:
    """Presentation times in seconds, pictures, and the length of the stream in seconds."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = list(container.decode(video=0))
        assert stream.duration is not None
        assert stream.time_base is not None
        return (
            [f.time for f in frames],
            [f.to_ndarray(format="rgb24") for f in frames],
            float(stream.duration * stream.time_base),
        )


def record(path: Path, control_hz: float, record_fps: float, n_steps: int) -> list[int]:
    """Steps filmed of an episode of ``n_steps`` actions, the state after the last action included."""
    video = EpisodeVideo(path, control_hz, record_fps)
    filmed = []
    for step in range(n_steps):
        if video.wants(step):
            video.add(step, picture(step))
            filmed.append(step)
    video.add(n_steps, picture(n_steps))
    assert video.finish() == path
    return [*filmed, n_steps]


@pytest.mark.parametrize(
    ("control_hz", "record_fps", "filmed"),
    [
        (10.0, 20.0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),  # PushT: every step
        (80.0, 20.0, [0, 4, 8, 10]),  # Meta-World: every fourth, and the last
        (50.0, 20.0, [0, 3, 6, 9, 10]),
        (12.5, 12.5, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        (60.0, 60.0 / 7.0, [0, 7, 10]),
    ],
)
def test_frames_are_taken_at_most_at_the_rate_and_shown_at_their_own_time(
    tmp_path: Path, control_hz: float, record_fps: float, filmed: list[int]
) -> None:
    path = tmp_path / "0.mp4"
    assert record(path, control_hz, record_fps, 10) == filmed
    times, _, length = decoded(path)
    assert times == pytest.approx([step / control_hz for step in filmed], abs=1e-4)
    assert length == pytest.approx(10 / control_hz + 0.5, abs=0.07)  # half a second, or one frame's time if longer


def test_the_first_and_the_last_picture_are_those_that_were_given(tmp_path: Path) -> None:
    record(tmp_path / "0.mp4", 10.0, 20.0, 60)
    _, pictures, _ = decoded(tmp_path / "0.mp4")
    assert len(pictures) == 61
    for step, shown in ((0, pictures[0]), (60, pictures[-1])):
        difference = np.abs(shown.astype(int) - picture(step).astype(int))
        # The border between the halves is soft: colour has half the resolution.
        assert difference[:, :28].max() <= 8
        assert difference[:, 36:].max() <= 8


def test_colours_are_coded_by_the_matrix_that_the_file_names(tmp_path: Path) -> None:
    video = EpisodeVideo(tmp_path / "0.mp4", 10, 10)
    video.add(0, np.full((32, 32, 3), (200, 30, 30), np.uint8))
    video.finish()
    with av.open(str(tmp_path / "0.mp4")) as container:
        frame = next(container.decode(video=0))
        luma = int(frame.to_ndarray()[16, 16])
    assert frame.colorspace == 6  # SMPTE 170M, the matrix of BT.601
    assert abs(luma - (16 + (65.481 * 200 + 128.553 * 30 + 24.966 * 30) / 255)) <= 1.5


def test_odd_sizes_are_padded_by_their_last_row_and_column(tmp_path: Path) -> None:
    video = EpisodeVideo(tmp_path / "0.mp4", 10, 10)
    video.add(0, picture(0, 33, 47))
    video.finish()
    _, (shown,), _ = decoded(tmp_path / "0.mp4")
    assert shown.shape == (34, 48, 3)
    assert np.abs(shown[:33, 30:47].astype(int) - 40).max() <= 8
    assert np.abs(shown[33, 30:].astype(int) - 40).max() <= 8


def test_the_callers_array_may_be_reused_at_once(tmp_path: Path) -> None:
    video = EpisodeVideo(tmp_path / "0.mp4", 10, 10)
    buffer = picture(0)
    for step in range(20):
        buffer[:] = picture(step)
        video.add(step, buffer)
        buffer[:] = 255
    video.finish()
    _, pictures, _ = decoded(tmp_path / "0.mp4")
    assert [round(float(shown[:, 40:].mean())) for shown in pictures] == pytest.approx(range(40, 60), abs=3)


def test_a_flipped_view_is_shown_as_it_looks(tmp_path: Path) -> None:
    frame = picture(0)
    frame[:10] = 0
    video = EpisodeVideo(tmp_path / "0.mp4", 10, 10)
    video.add(0, frame[::-1])
    video.finish()
    _, (shown,), _ = decoded(tmp_path / "0.mp4")
    assert shown[-8:, 40:].mean() < 10 < 30 < shown[:8, 40:].mean()


def test_a_step_that_has_its_picture_is_left_as_it_is(tmp_path: Path) -> None:
    video = EpisodeVideo(tmp_path / "0.mp4", 10, 10)
    for step in (0, 1, 1, 2, 2):
        video.add(step, picture(step))
    video.finish()
    assert decoded(tmp_path / "0.mp4")[0] == pytest.approx([0.0, 0.1, 0.2])


def test_the_file_is_a_streamable_h264_mp4_that_browsers_play(tmp_path: Path) -> None:
    record(tmp_path / "0.mp4", 10, 10, 5)
    data = (tmp_path / "0.mp4").read_bytes()
    assert (
        0 < data.index(b"moov") < data.index(b"mdat")
    )  # the index comes first: playing starts before the end is there
    with av.open(str(tmp_path / "0.mp4")) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert stream.average_rate is not None
        assert Fraction(5) < stream.average_rate <= Fraction(10)


def test_the_file_appears_only_when_it_is_finished(tmp_path: Path) -> None:
    video = EpisodeVideo(tmp_path / "deep" / "er" / "0.mp4", 10, 10)
    video.add(0, picture(0))
    assert not (tmp_path / "deep" / "er" / "0.mp4").exists()
    video.finish()
    assert [p.name for p in (tmp_path / "deep" / "er").iterdir()] == ["0.mp4"]


def test_discarding_leaves_nothing_and_no_thread(tmp_path: Path) -> None:
    threads = threading.active_count()
    for n_frames in (0, 1, 30):
        video = EpisodeVideo(tmp_path / "0.mp4", 10, 10)
        for step in range(n_frames):
            video.add(step, picture(step))
        video.discard()
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == threads


def test_discarding_after_finishing_keeps_the_file(tmp_path: Path) -> None:
    video = EpisodeVideo(tmp_path / "0.mp4", 10, 10)
    video.add(0, picture(0))
    video.finish()
    video.discard()
    assert (tmp_path / "0.mp4").exists()


def test_without_a_frame_there_is_nothing_to_finish(tmp_path: Path) -> None:
    with pytest.raises(VideoError, match="no frame was added"):
        EpisodeVideo(tmp_path / "0.mp4", 10, 10).finish()


def test_a_dead_encoder_blocks_nobody_and_says_why_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    video = EpisodeVideo(tmp_path / "file" / "0.mp4", 10, 10)  # its folder cannot be made
    began = time.monotonic()
    for step in range(100):  # far more than the queue holds
        video.add(step, picture(step))
    with pytest.raises(VideoError, match=r"0\.mp4 could not be recorded: (FileExists|NotADirectory)Error"):
        video.finish()
    video.discard()
    assert time.monotonic() - began < 5.0
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_an_encoder_that_fails_in_the_middle_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = 0

    def fails_at_the_third(frame: np.ndarray) -> np.ndarray:
        nonlocal shown
        shown += 1
        if shown == 3:
            raise OSError(28, "No space left on device")
        return frame

    monkeypatch.setattr(video_module, "_even", fails_at_the_third)
    video = EpisodeVideo(tmp_path / "0.mp4", 10, 10)
    for step in range(50):
        video.add(step, picture(step))
    with pytest.raises(VideoError, match="No space left"):
        video.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "frame",
    [
        np.zeros((8, 8), np.uint8),
        np.zeros((8, 8, 4), np.uint8),
        np.zeros((8, 8, 3), np.float32),
        np.zeros((3, 8, 8), np.uint8),
    ],
)
def test_a_frame_of_another_kind_is_refused_by_name(tmp_path: Path, frame: np.ndarray) -> None:
    with pytest.raises(ContractError, match=r"must be \(H, W, 3\) uint8, got \(.*\) (uint8|float32)"):
        EpisodeVideo(tmp_path / "0.mp4", 10, 10).add(0, frame)


def test_a_frame_of_another_size_is_refused(tmp_path: Path) -> None:
    video = EpisodeVideo(tmp_path / "0.mp4", 10, 10)
    video.add(0, picture(0))
    with pytest.raises(ContractError, match="size must not change"):
        video.add(1, picture(1, 24, 32))
    video.discard()


def test_importing_the_module_does_not_import_the_codec() -> None:
    import subprocess
    import sys

    code = "import sys, robotrials.results.video; assert 'av' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_film_that_is_given_up_takes_no_more_and_says_why(tmp_path: Path) -> None:
    video = EpisodeVideo(tmp_path / "v.mp4", 20.0, 20.0)
    video.add(0, picture(0))
    video.give_up("the scene cannot be drawn")
    video.give_up("another reason")
    assert not video.wants(9)
    video.add(9, picture(9, height=2))
    with pytest.raises(VideoError, match=r"^the scene cannot be drawn$"):
        video.finish()
    assert not list(tmp_path.iterdir())


def test_a_film_is_black_if_every_frame_is(tmp_path: Path) -> None:
    video = EpisodeVideo(tmp_path / "v.mp4", 20.0, 20.0)
    assert (video.has_frames, video.is_black) == (False, False)
    video.add(0, np.zeros((4, 6, 3), np.uint8))
    assert (video.has_frames, video.is_black) == (True, True)
    video.add(1, np.ones((4, 6, 3), np.uint8))
    assert not video.is_black
    video.discard()
