"""The Gaussian mixture that describes a set of chunks, and how many peaks it has.

The Bayesian information criterion (BIC) chooses the mixture, but the number of its components is not the number of
modes: skewed data with one peak take several components. So the components are merged wherever the density of the
mixture has no valley between them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_COMPONENTS = 12
MAX_DIMS = 15
_SUBSPACES = (1, 2, 4, 8, MAX_DIMS)
"""How many leading principal components the mixture is about; the rest counts as one Gaussian."""
_ROWS_PER_DIM = 20
"""With fewer chunks a dimension, a full covariance is no estimate."""
_VALLEY = 0.7
"""Two peaks are two modes when the density between them falls below this share of the lower one. Two equal Gaussians
have such a valley from 2.9 standard deviations on."""
_MIN_SHARE = 0.05
"""A mode holds at least this share of the chunks; less are outliers."""
_PATIENCE = 2
"""The search for the number of components ends when so many more in a row have not lowered the BIC."""


@dataclass(frozen=True)
class Mixture:
    """The mixture that BIC chooses for N chunks: ``components`` of it in the first ``dims`` principal components, and
    ``modes``, those left after merging. ``bic`` holds the best BIC of each number of components tried, from 1 on."""

    components: int
    dims: int
    modes: int
    bic: tuple[float, ...]


@contextmanager
def single_thread() -> Iterator[None]:
    """One thread in BLAS and OpenMP: the matrices are small, and threads would spin waiting for each other, for minutes
    where the cores are busy."""
    import sklearn.mixture  # noqa: F401  first: the limit is set on libraries that are loaded
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def fit_mixture(features: np.ndarray, rng: np.random.Generator, starts: int) -> Mixture:
    """Standardise each joint, take principal components, and choose dimensions and components together by BIC.

    Numbers of dimensions can be compared since every candidate is a density of the same 15 (or fewer) components: a
    mixture with full covariances in the first ``q``, one Gaussian in each of the others (after Raftery and Dean 2006,
    "Variable selection for model-based clustering").
    """
    scores = principal_scores(features)
    n, most = scores.shape
    if most == 0:
        return Mixture(1, 0, 1, ())
    rest = n * (np.log(2 * np.pi) + 1) + 2 * np.log(n)  # BIC of one whitened component as a Gaussian of its own
    best: tuple[float, Any, int] = (np.inf, None, 0)
    curve: dict[int, float] = {}
    for q in [q for q in _SUBSPACES if q < most] + [most]:
        since = 0
        lowest = np.inf
        for k in range(1, MAX_COMPONENTS + 1):
            model = _fit(scores[:, :q], k, rng, starts)
            bic = float(model.bic(scores[:, :q])) + (most - q) * rest
            curve[k] = min(curve.get(k, np.inf), bic)
            since = 0 if bic < lowest else since + 1
            lowest = min(lowest, bic)
            if bic < best[0]:
                best = (bic, model, q)
            if since == _PATIENCE or (k + 1) * (q + 1) > n / 2:
                break
    _, model, q = best
    return Mixture(model.n_components, q, _modes(model, scores[:, :q]), tuple(curve.values()))


def principal_scores(features: np.ndarray) -> np.ndarray:
    """(N, D) whitened scores on the leading principal components, D at most 15 and at most N / 20."""
    n = len(features)
    flat = features - features.mean(axis=0)
    scale = flat.std(axis=(0, 1))
    flat = (flat / np.where(scale > 0, scale, 1.0)).reshape(n, -1).astype(np.float64)
    # Through the (N, N) products: N is in the hundreds, and rarely above the number of columns.
    values, vectors = np.linalg.eigh(flat @ flat.T)
    values, vectors = values[::-1], vectors[:, ::-1]
    most = max(1, min(MAX_DIMS, n // _ROWS_PER_DIM))
    keep = min(most, int(np.count_nonzero(values > 1e-9 * max(float(values[0]), 1e-300))))
    return np.ascontiguousarray(vectors[:, :keep] * np.sqrt(n))


def _fit(scores: np.ndarray, k: int, rng: np.random.Generator, starts: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    # The scores have variance 1: a component may be as narrow as 3 % of them, but not a spike on copies of a chunk.
    model = GaussianMixture(
        k, n_init=starts if k > 1 else 1, reg_covar=1e-3, random_state=int(rng.integers(2**31)), max_iter=200
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start that does not converge loses on its BIC
        return model.fit(scores)


def _modes(model: Any, scores: np.ndarray) -> int:
    """Merge components without a valley between them, highest pass first; count what stays apart.

    The pass between two components is the lowest density on the line between their means; between groups, the highest
    of the passes. A valley must show in the chunks themselves as well: a thin bent ridge is one mode, but no straight
    line stays on it.
    """
    means, k = model.means_, len(model.means_)
    peak = model.score_samples(means)
    owner = model.predict(scores)
    line = np.linspace(0.0, 1.0, 33)[:, None]
    passes = []
    for i in range(k):
        for j in range(i):
            density = model.score_samples(means[i] * (1 - line) + means[j] * line)
            passes.append((float(density.min()), i, j))
    group = np.arange(k)
    count = 1
    for height, i, j in sorted(passes, reverse=True):
        a, b = group[i], group[j]
        if a == b:
            continue
        lower_peak = min(peak[group == a].max(), peak[group == b].max())
        sides = scores[np.isin(owner, np.flatnonzero(group == a))], scores[np.isin(owner, np.flatnonzero(group == b))]
        large = min(map(len, sides)) >= max(2, _MIN_SHARE * len(scores))
        if large and height < lower_peak + np.log(_VALLEY) and _has_valley(*sides):
            count += 1
        group[group == b] = a
    return count


def _has_valley(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether the density of both groups of points (n, q) together dips between them: seen along the direction that
    parts them best (Fisher's), and from one mean to the other, where the halves of a bent ridge run into each other."""
    chord = right.mean(0) - left.mean(0)
    within = np.atleast_2d(np.cov(np.concatenate([left - left.mean(0), right - right.mean(0)]), rowvar=False))
    fisher = np.linalg.solve(within + 1e-6 * np.eye(len(within)), chord)
    return all(_dips(left @ axis, right @ axis) for axis in (fisher, chord))


def _dips(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether a kernel estimate of both (n,) together has a valley between their means."""
    points = np.concatenate([left, right])
    width = 1.06 * np.sqrt((left.var() * len(left) + right.var() * len(right)) / len(points)) * len(points) ** -0.2
    if width == 0:
        return True  # two points, many times each
    grid = np.linspace(left.mean(), right.mean(), 101)
    density = np.exp(-0.5 * ((grid[:, None] - points) / width) ** 2).sum(axis=1)
    low = 1 + int(density[1:-1].argmin())
    return bool(density[low] < _VALLEY * min(density[:low].max(), density[low + 1 :].max()))
