from __future__ import annotations

import numpy as np

from robotrials.datasets.analysis.chunks import aligned, band_of, cut, permuted
from robotrials.datasets.analysis.reading import DatasetEpisode


def episode(index: int, frames: int) -> DatasetEpisode:
    steps = np.arange(frames, dtype=np.float32)
    return DatasetEpisode(index, np.stack([steps, 100 + steps], axis=1), np.linspace(0, 1, frames))


def test_chunks_begin_every_stride_and_lie_where_their_middle_is() -> None:
    chunks = cut([episode(0, 101), episode(1, 40)], chunk=30, stride=20, bands=5)
    assert chunks.actions[:, 0, 0].tolist() == [0, 20, 40, 60, 0]
    assert chunks.actions.shape == (5, 30, 2)
    assert chunks.episode.tolist() == [0, 0, 0, 0, 1]
    np.testing.assert_allclose(chunks.progress[:4], [0.15, 0.35, 0.55, 0.75])
    assert chunks.band.tolist() == [0, 1, 2, 3, 1]
    np.testing.assert_allclose(chunks.gain[:4], 0.29)


def test_an_episode_shorter_than_a_chunk_has_none() -> None:
    assert len(cut([episode(0, 29)], 30, 15, 5)) == 0
    assert len(aligned([episode(0, 29)], 30, 5)) == 0


def test_progress_of_one_belongs_to_the_last_band() -> None:
    assert band_of(np.array([0.0, 0.199, 0.2, 1.0]), 5).tolist() == [0, 0, 1, 4]


def test_aligned_chunks_are_one_an_episode_and_band_around_its_middle() -> None:
    chunks = aligned([episode(0, 201), episode(1, 301)], chunk=30, bands=5)
    assert chunks.band.tolist() == [0, 1, 2, 3, 4] * 2
    np.testing.assert_allclose(chunks.progress, [0.1, 0.3, 0.5, 0.7, 0.9] * 2, atol=0.003)


def test_permuted_progress_leaves_one_chunk_to_each_episode() -> None:
    chunks = cut([episode(0, 101), episode(1, 101), episode(2, 20)], 30, 20, 5)
    rows = permuted(chunks, 3, np.random.default_rng(0))
    assert chunks.episode[rows].tolist() == [0, 1]
