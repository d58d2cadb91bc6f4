"""The whole analysis: one dataset alone, one split by outcome, or two side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from robotrials.datasets.analysis.catalogue import Catalogue, open_catalogue, require
from robotrials.datasets.analysis.chunks import Chunks, aligned, cut, permuted
from robotrials.datasets.analysis.fitting import Fitters
from robotrials.datasets.analysis.lengths import Density, length_density
from robotrials.datasets.analysis.modes import MIN_CHUNKS, ModeCount, count_modes, most_modes, peaks
from robotrials.datasets.analysis.reading import DatasetEpisode, read_episodes
from robotrials.datasets.analysis.settings import AnalysisSettings
from robotrials.datasets.analysis.spread import Spread, ratio, spread
from robotrials.errors import ConfigError, DatasetError

_SCATTER = 1500
"""Points of a set in the scatter plot; more hide each other."""


@dataclass(frozen=True)
class SetResult:
    """What one set of episodes came to, with B bands and J joints.

    ``lengths`` (E,) of all its episodes in frames, ``kept`` of them are long enough and ``analysed`` were read;
    ``progress`` names its source. ``counts`` (B,) chunks; ``gain`` a (n,) array a band, the progress that each chunk
    makes; ``modes`` one a band, and ``null`` the modes found in each draw with permuted progress.

    Tasks move the robot in different ways, so modes are counted task by task: ``by_task`` has a count a band for each
    task, where there are several, and ``modes`` and ``null`` are of the task that has the most there.
    """

    name: str
    path: str
    lengths: np.ndarray
    kept: int
    analysed: int
    progress: str
    counts: np.ndarray
    spread: Spread
    gain: tuple[np.ndarray, ...]
    modes: tuple[ModeCount, ...]
    null: tuple[int, ...]
    by_task: Mapping[str, tuple[ModeCount, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Ratio:
    """Variance of the first set over that of the second, per band and joint, with a 95 % interval; all (B, J)."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Scatter:
    """Chunks of all sets on the two leading principal components of all together: ``points`` (N, 2), ``owner`` (N,)
    which set, ``progress`` (N,); ``explained`` (2,) shares of the variance."""

    points: np.ndarray
    owner: np.ndarray
    progress: np.ndarray
    explained: np.ndarray


@dataclass(frozen=True)
class Analysis:
    """One or two ``sets``; ``threshold`` in frames (0: none) and how it came about; ``ratio`` None for one set."""

    settings: AnalysisSettings
    joints: tuple[str, ...]
    fps: float
    density: Density
    threshold: float
    threshold_from: str
    sets: tuple[SetResult, ...]
    ratio: Ratio | None
    scatter: Scatter


@dataclass(frozen=True)
class _Set:
    name: str
    catalogue: Catalogue
    lengths: np.ndarray
    kept: int
    episodes: Sequence[DatasetEpisode]
    progress: str


def analyse(
    paths: Sequence[Path],
    settings: AnalysisSettings,
    say: Callable[[str], None] = lambda words: None,
    processes: int = 1,
) -> Analysis:
    """Analyse one dataset, or two, with up to so many ``processes``; ``say`` hears what is being done.

    Raises:
        ConfigError: settings that cannot be meant, or two datasets that do not fit.
        DatasetError: a dataset cannot be read, or holds too little.
        NotInstalledError: pyarrow or scikit-learn is missing.
    """
    settings.check()
    require("sklearn", "robotrials dataset analyze")
    catalogues = [open_catalogue(path) for path in paths]
    joints = _joints(catalogues, settings.max_joints)
    by_outcome = _by_outcome(catalogues, settings)
    density = length_density(catalogues[0].lengths)
    threshold, threshold_from = _threshold(density, settings, by_outcome)
    sets: list[_Set] = []
    for catalogue in catalogues:
        say(f"reading {catalogue.name}")
        sets += _read(catalogue, settings, threshold, len(joints), by_outcome)
    chunks = [cut(one.episodes, settings.chunk, settings.stride, settings.bands) for one in sets]
    for one, pieces in zip(sets, chunks, strict=True):
        if not len(pieces):
            raise DatasetError(
                f"{one.name}: no episode is as long as a chunk of {settings.chunk} frames; give a smaller --chunk"
            )
    spreads = [spread(pieces, settings.bands, settings.seed) for pieces in chunks]
    results = []
    with Fitters(processes) as fitters:
        for one, pieces, variance in zip(sets, chunks, spreads, strict=True):
            say(f"counting modes of {one.name}")
            results.append(_measure(one, pieces, variance, settings, fitters))
    return Analysis(
        settings,
        joints,
        catalogues[0].fps,
        density,
        threshold,
        threshold_from,
        tuple(results),
        Ratio(*ratio(*spreads)) if len(spreads) == 2 else None,
        _scatter(chunks, settings.seed),
    )


def _joints(catalogues: Sequence[Catalogue], most: int) -> tuple[str, ...]:
    first = catalogues[0].joints
    for other in catalogues[1:]:
        if len(other.joints) != len(first):
            raise ConfigError(
                f"{catalogues[0].root} has actions of {len(first)} entries, {other.root} of {len(other.joints)}: "
                "only datasets of the same robot can be compared"
            )
        if other.fps != catalogues[0].fps:
            raise ConfigError(
                f"{catalogues[0].root} has {catalogues[0].fps:g} frames a second, {other.root} {other.fps:g}: "
                "chunks of the same number of frames would be of different times"
            )
    return first[: most or None]


def _by_outcome(catalogues: Sequence[Catalogue], settings: AnalysisSettings) -> bool:
    """Whether one dataset is to be split; decided before rows are read, so by what it says of its episodes."""
    first = catalogues[0]
    said = first.success is not None or first.has_row_success
    if settings.split == "outcome":
        if len(catalogues) > 1:
            raise ConfigError("--split=outcome is for one dataset; two are compared as they are")
        if not said:
            raise DatasetError(
                f"{first.root} does not say which episodes succeeded: it has no column success of true and false"
            )
    return settings.split != "none" and len(catalogues) == 1 and said


def _threshold(density: Density, settings: AnalysisSettings, by_outcome: bool) -> tuple[float, str]:
    if settings.min_length != "auto":
        return float(settings.min_length), "as asked for"
    if by_outcome:  # an episode that ends at its success is short because it is good
        return 0.0, "a rollout that succeeds early is short"
    if density.gap is None:
        return 0.0, "the lengths have no gap"
    return density.gap, "the gap in the lengths"


def _read(
    catalogue: Catalogue, settings: AnalysisSettings, threshold: float, n_joints: int, by_outcome: bool
) -> list[_Set]:
    long_enough = catalogue.lengths >= threshold
    if not long_enough.any():
        raise DatasetError(f"{catalogue.root}: no episode has {threshold:g} frames")
    candidates = catalogue.indices[long_enough]
    if len(candidates) > settings.episode_limit:
        chosen = np.linspace(0, len(candidates) - 1, settings.max_episodes).round().astype(int)
        candidates = candidates[chosen]
    episodes, source = read_episodes(catalogue, candidates, n_joints, settings.progress)
    whole = _Set(catalogue.name, catalogue, catalogue.lengths, int(long_enough.sum()), episodes, source)
    if not by_outcome:
        return [whole]
    parts = []
    for name, outcome in (("successes", True), ("failures", False)):
        mine = [episode for episode in episodes if episode.success is outcome]
        lengths = np.array([len(episode.progress) for episode in mine])
        parts.append(replace(whole, name=name, episodes=mine, lengths=lengths, kept=len(mine)))
    full = [part for part in parts if any(len(e.progress) >= settings.chunk for e in part.episodes)]
    if settings.split == "outcome" and len(full) < 2:
        empty = next(part.name for part in parts if part not in full)
        raise DatasetError(f"{catalogue.root}: no {empty} of at least {settings.chunk} frames among its episodes")
    return full if len(full) == 2 else [whole]


def _measure(one: _Set, pieces: Chunks, variance: Spread, settings: AnalysisSettings, fitters: Fitters) -> SetResult:
    bands = range(settings.bands)
    centred = aligned(one.episodes, settings.chunk, settings.bands)
    tasks = _tasks(one.episodes)
    counts = {
        name: tuple(
            count_modes(
                centred.actions[(centred.band == band) & np.isin(centred.episode, members)],
                settings.draws,
                _seed(settings.seed, 4, band, number),
                fitters,
            )
            for band in bands
        )
        for number, (name, members) in enumerate(tasks.items())
    }
    modes = tuple(most_modes([found[band] for found in counts.values()]) for band in bands)
    return SetResult(
        name=one.name,
        path=str(one.catalogue.root),
        lengths=one.lengths,
        kept=one.kept,
        analysed=len(one.episodes),
        progress=one.progress,
        counts=np.bincount(pieces.band, minlength=settings.bands),
        spread=variance,
        gain=tuple(pieces.gain[pieces.band == band] for band in bands),
        modes=modes,
        null=_null(one, pieces, tasks, settings, fitters),
        by_task=counts if len(counts) > 1 else {},
    )


_MOST_TASKS = 20
"""Tasks whose modes are counted: those with the most episodes."""


def _tasks(episodes: Sequence[DatasetEpisode]) -> dict[str, np.ndarray]:
    """The positions of each task's episodes, the task with the most episodes first."""
    members: dict[str, list[int]] = {}
    for position, episode in enumerate(episodes):
        members.setdefault(episode.task, []).append(position)
    ranked = sorted(members.items(), key=lambda item: -len(item[1]))[:_MOST_TASKS]
    return {name: np.array(positions, np.int64) for name, positions in ranked}


def _seed(*numbers: int) -> tuple[int, ...]:
    """A seed of its own for each task after the first; that of the first is as if there were no other."""
    return numbers if numbers[-1] else numbers[:-1]


def _null(
    one: _Set, pieces: Chunks, tasks: Mapping[str, np.ndarray], settings: AnalysisSettings, fitters: Fitters
) -> tuple[int, ...]:
    """The modes of as many chunks whose progress was permuted within their episode, in each draw; the most of any task.

    What a band has beyond that has to do with how far the task has got. What it shares with it is how this robot moves
    at any time.
    """
    rng = np.random.default_rng([settings.seed, 2])
    samples = [permuted(pieces, len(one.episodes), rng) for _ in range(settings.draws)]
    found: list[tuple[int, ...]] = []
    for number, members in enumerate(tasks.values()):
        mine = [rows[np.isin(pieces.episode[rows], members)] for rows in samples]
        if mine and all(len(rows) >= MIN_CHUNKS for rows in mine):
            found.append(peaks([pieces.actions[rows] for rows in mine], _seed(settings.seed, 2, number), fitters))
    return tuple(max(draw) for draw in zip(*found, strict=True))


def _scatter(chunks: Sequence[Chunks], seed: int) -> Scatter:
    """Principal components of all sets together, on at most 1,500 chunks of each."""
    rng = np.random.default_rng([seed, 3])
    rows, owners, progress = [], [], []
    for number, pieces in enumerate(chunks):
        chosen = np.sort(rng.permutation(len(pieces))[:_SCATTER])
        rows.append(pieces.actions[chosen])
        owners.append(np.full(len(chosen), number))
        progress.append(pieces.progress[chosen])
    flat = np.concatenate(rows).astype(np.float64)
    flat -= flat.mean(axis=0)
    scale = flat.std(axis=(0, 1))
    flat = (flat / np.where(scale > 0, scale, 1.0)).reshape(len(flat), -1)
    values, vectors = np.linalg.eigh(flat.T @ flat)
    axes = vectors[:, ::-1][:, :2]
    total = max(float(values.sum()), 1e-300)
    points = flat @ axes
    return Scatter(points, np.concatenate(owners), np.concatenate(progress), values[::-1][:2] / total)
