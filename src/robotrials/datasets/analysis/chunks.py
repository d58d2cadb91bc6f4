"""Episodes cut into action chunks, each in the band of progress where its middle lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotrials.datasets.analysis.reading import DatasetEpisode


@dataclass(frozen=True)
class Chunks:
    """N chunks. ``actions`` (N, C, J) float32; ``episode`` (N,) position of the episode among those given; ``progress``
    (N,) at the middle frame, ``gain`` (N,) from first to last frame, both in [0, 1]; ``band`` (N,) in 0..bands-1."""

    actions: np.ndarray
    episode: np.ndarray
    progress: np.ndarray
    gain: np.ndarray
    band: np.ndarray

    def __len__(self) -> int:
        return len(self.episode)


def band_of(progress: np.ndarray, bands: int) -> np.ndarray:
    """The band of each progress in [0, 1]; 1 belongs to the last."""
    return np.minimum((np.asarray(progress) * bands).astype(np.int64), bands - 1)


def cut(episodes: Sequence[DatasetEpisode], chunk: int, stride: int, bands: int) -> Chunks:
    """All chunks of ``chunk`` frames that begin every ``stride`` frames; a shorter episode has none."""
    pieces = [_starts(len(episode.progress), chunk, stride) for episode in episodes]
    owner = np.repeat(np.arange(len(episodes)), [len(starts) for starts in pieces])
    return _take(episodes, owner, np.concatenate(pieces) if pieces else np.zeros(0, np.int64), chunk, bands)


def aligned(episodes: Sequence[DatasetEpisode], chunk: int, bands: int) -> Chunks:
    """At most one chunk an episode and band: the one whose middle frame is nearest to the middle of the band.

    Chunks of a fixed stride come at a few fixed times of episodes that are equally long, and are then as many clusters
    without being as many strategies. And two chunks of one episode are no two observations.
    """
    owners: list[int] = []
    starts: list[int] = []
    for position, episode in enumerate(episodes):
        n = len(episode.progress)
        if n < chunk:
            continue
        middles = episode.progress[chunk // 2 : n - chunk + chunk // 2 + 1]
        for band in range(bands):
            start = int(np.abs(middles - (band + 0.5) / bands).argmin())
            if band_of(middles[start], bands) == band:
                owners.append(position)
                starts.append(start)
    return _take(episodes, np.array(owners, np.int64), np.array(starts, np.int64), chunk, bands)


def _starts(length: int, chunk: int, stride: int) -> np.ndarray:
    return np.arange(0, max(0, length - chunk + 1), stride)


def _take(episodes: Sequence[DatasetEpisode], owner: np.ndarray, start: np.ndarray, chunk: int, bands: int) -> Chunks:
    n_joints = episodes[0].actions.shape[1] if episodes else 0
    actions = np.empty((len(owner), chunk, n_joints), np.float32)
    progress, gain = np.empty(len(owner)), np.empty(len(owner))
    for row, (position, first) in enumerate(zip(owner, start, strict=True)):
        episode = episodes[position]
        actions[row] = episode.actions[first : first + chunk]
        progress[row] = episode.progress[first + chunk // 2]
        gain[row] = episode.progress[first + chunk - 1] - episode.progress[first]
    return Chunks(actions, owner, progress, gain, band_of(progress, bands))


def permuted(chunks: Chunks, n_episodes: int, rng: np.random.Generator) -> np.ndarray:
    """The chunks that stand where the aligned ones would if progress were permuted within each episode: one of each
    episode's, at random. Rows of ``chunks``."""
    order = rng.permutation(len(chunks))
    first = np.full(n_episodes, -1)
    first[chunks.episode[order]] = order
    return first[first >= 0]
