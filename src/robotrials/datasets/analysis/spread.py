"""How much the chunks of a band differ, joint by joint, and how that compares between two sets of episodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robotrials.datasets.analysis.chunks import Chunks

MIN_CHUNKS = 3
"""A band with fewer has no variance."""
_DRAWS = 400


@dataclass(frozen=True)
class Spread:
    """``variance`` (B, J) of the chunks' means, in squared units of the action (NaN: too few chunks), and ``draws``
    (R, B, J): the same for resamples of the episodes."""

    variance: np.ndarray
    draws: np.ndarray


def spread(chunks: Chunks, bands: int, seed: int) -> Spread:
    """Variance (over n - 1) of the means of each band's chunks, per joint, with a bootstrap over episodes.

    Whole episodes are drawn, since the chunks of one are alike. Sums per episode make each draw a product of matrices.
    """
    means = chunks.actions.mean(axis=1, dtype=np.float64)
    n_joints = means.shape[1]
    # Centred first: a variance as a difference of squares loses its digits where the mean is large.
    means = means - (means.mean(axis=0) if len(means) else 0.0)
    n_episodes = int(chunks.episode.max()) + 1 if len(chunks) else 0
    moments = np.zeros((n_episodes, bands, 1 + 2 * n_joints))
    np.add.at(
        moments, (chunks.episode, chunks.band), np.concatenate([np.ones((len(means), 1)), means, means**2], axis=1)
    )
    flat = moments.reshape(n_episodes, -1)
    present = np.flatnonzero(flat.any(axis=1))
    rng = np.random.default_rng([seed, 1])
    weights = rng.multinomial(len(present), np.full(len(present), 1.0 / max(1, len(present))), _DRAWS)
    shape = (-1, bands, 1 + 2 * n_joints)
    whole = _variance(flat.sum(axis=0).reshape(shape))[0]
    return Spread(whole, _variance((weights @ flat[present]).reshape(shape)))


def ratio(full: Spread, other: Spread) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """full / other: the ratio (B, J) and its 95 % interval by the bootstrap, low and high; NaN where other is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        point = _finite(full.variance / other.variance)
        draws = _finite(full.draws / other.draws)
    low, high = np.full_like(point, np.nan), np.full_like(point, np.nan)
    known = np.isfinite(draws).sum(axis=0) >= _DRAWS // 2
    if known.any():
        low[known], high[known] = np.nanpercentile(draws[:, known], [2.5, 97.5], axis=0)
    return point, low, high


def _variance(sums: np.ndarray) -> np.ndarray:
    """(R, B, J) from sums (R, B, 1 + 2 J) of one, value and square."""
    n_joints = (sums.shape[2] - 1) // 2
    n = sums[:, :, :1]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (sums[:, :, 1 + n_joints :] - sums[:, :, 1 : 1 + n_joints] ** 2 / n) / (n - 1)
    return np.where(n >= MIN_CHUNKS, np.maximum(value, 0.0), np.nan)


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.nan)
