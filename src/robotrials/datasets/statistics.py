"""The statistics that normalise a policy's inputs: exact moments, and quantiles, of data never held whole.

Names and shapes are LeRobot 0.6.1's (``lerobot/datasets/compute_stats.py``): min, max, mean, std, count and five
quantiles for each entry of a vector; for images (3, 1, 1) of brightness in [0, 1]. LeRobot averages the quantiles of
episodes; these are the quantiles of all frames.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from robotrials.datasets.levels import LEVELS

Stats = dict[str, npt.NDArray[np.float64]]
"""Name of a statistic to its value: ``count`` is (1,), the others (D,) or (3, 1, 1)."""

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
STATISTICS = ("min", "max", "mean", "std", "count", *QUANTILES)


class VectorStats:
    """Statistics of vectors that come in pieces. Quantiles are exact up to ``sample_rows`` rows; beyond, they are those
    of every 2nd, 4th, ... row, so that at most so many are held.

    NaN and infinity are left out, entry by entry; an entry that is never finite has zeros. ``count`` is of rows."""

    def __init__(self, sample_rows: int = 100_000) -> None:
        self._rows = 0
        self._limit = sample_rows
        self._sample: list[npt.NDArray[np.float64]] = []
        self._stride = 1
        self._counts: npt.NDArray[np.float64] | None = None
        """Finite numbers of each entry, None before the first row."""
        self.nonfinite = 0
        """Numbers that were left out."""

    def add(self, values: npt.NDArray[np.generic]) -> None:
        """(T, D) or (T,) numbers or flags, T >= 1."""
        rows = np.asarray(values, np.float64).reshape(len(values), -1)
        finite = np.isfinite(rows)
        if finite.all():
            n = np.full(rows.shape[1], float(len(rows)))
            mean = rows.mean(axis=0)
            squares = ((rows - mean) ** 2).sum(axis=0)
            low, high = rows.min(axis=0), rows.max(axis=0)
        else:
            self.nonfinite += int((~finite).sum())
            rows = np.where(finite, rows, np.nan)
            n = finite.sum(axis=0).astype(np.float64)
            mean = np.where(finite, rows, 0.0).sum(axis=0) / np.maximum(n, 1.0)
            squares = np.where(finite, (rows - mean) ** 2, 0.0).sum(axis=0)
            low, high = np.where(finite, rows, np.inf).min(axis=0), np.where(finite, rows, -np.inf).max(axis=0)
        if self._counts is None:
            self._counts, self._mean, self._squares, self._min, self._max = n, mean, squares, low, high
        else:
            # Chan, Golub and LeVeque 1979: the moments of two pieces from those of each.
            total, shift = np.maximum(self._counts + n, 1.0), mean - self._mean
            self._mean = self._mean + shift * (n / total)
            self._squares = self._squares + squares + shift**2 * (self._counts * n / total)
            self._min, self._max = np.minimum(self._min, low), np.maximum(self._max, high)
            self._counts = self._counts + n
        self._keep(rows)
        self._rows += len(rows)

    def result(self) -> Stats:
        assert self._counts is not None
        known = self._counts > 0
        stats = {
            "min": self._min,
            "max": self._max,
            "mean": self._mean,
            "std": np.sqrt(self._squares / np.maximum(self._counts, 1.0)),
            **dict(zip(QUANTILES, self._quantiles(known), strict=True)),
        }
        made: Stats = {name: np.where(known, value, 0.0) for name, value in stats.items()}
        return {**made, "count": np.array([self._rows])}

    def _quantiles(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        sample, shares = np.concatenate(self._sample), list(QUANTILES.values())
        if not self.nonfinite:
            quantiles: npt.NDArray[np.float64] = np.quantile(sample, shares, axis=0)
            return quantiles
        # The rows of a thinned sample may all be NaN where others were not: then the mean is the best that is known.
        known = known & np.isfinite(sample).any(axis=0)
        quantiles = np.tile(self._mean, (len(shares), 1))
        quantiles[:, known] = np.nanquantile(sample[:, known], shares, axis=0)
        return quantiles

    def _keep(self, rows: npt.NDArray[np.float64]) -> None:
        first = -self._rows % self._stride
        self._sample.append(rows[first :: self._stride])
        while sum(map(len, self._sample)) > self._limit:
            self._sample = [np.concatenate(self._sample)[::2]]
            self._stride *= 2


class ImageStats:
    """Statistics of images from their counts of brightness; exact, quantiles too."""

    def __init__(self) -> None:
        self._levels = np.zeros((3, LEVELS), np.int64)
        self._frames = 0

    def add(self, levels: npt.NDArray[np.int64], frames: int) -> None:
        """(3, 256) counts over ``frames`` images."""
        self._levels += levels
        self._frames += frames

    def result(self) -> Stats:
        counts, level = self._levels, np.arange(LEVELS)
        total = counts.sum(axis=1)
        mean = counts @ level / total
        variance = np.maximum(counts @ level**2 / total - mean**2, 0.0)
        reached = counts.cumsum(axis=1)
        values = {
            "min": (counts > 0).argmax(axis=1),
            "max": LEVELS - 1 - (counts[:, ::-1] > 0).argmax(axis=1),
            "mean": mean,
            "std": np.sqrt(variance),
            **{name: (reached >= q * total[:, None]).argmax(axis=1) for name, q in QUANTILES.items()},
        }
        stats = {name: (value / (LEVELS - 1)).reshape(3, 1, 1) for name, value in values.items()}
        return {**stats, "count": np.array([self._frames])}


def plain(stats: Stats) -> dict[str, list[object]]:
    """As JSON and parquet take it: nested lists of floats, and a whole number for ``count``."""
    return {name: stats[name].astype(int if name == "count" else float).tolist() for name in STATISTICS}
