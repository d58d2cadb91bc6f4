"""Which episodes are too short to count: cut where the density of the lengths has a gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BANDWIDTH = 0.25
"""Of the kernel, in standard deviations of the lengths."""
_BELOW = 40
"""The gap must lie below this percentile: what is cut off is the minority."""
_DEPTH = 0.8
"""A gap is where the density is below this share of the lower of the two peaks beside it; less is a ripple."""
_GRID = 400


@dataclass(frozen=True)
class Density:
    """The density of episode lengths: ``at`` (G,) frames, ``density`` (G,) per frame; ``gap`` in frames, None: none."""

    at: np.ndarray
    density: np.ndarray
    gap: float | None


def length_density(lengths: np.ndarray) -> Density:
    """A Gaussian kernel estimate over ``lengths`` (E,), and its deepest gap below the 40th percentile.

    >>> import numpy as np
    >>> length_density(np.r_[np.full(10, 40), np.full(90, 300)]).gap
    118.6...
    """
    values = np.asarray(lengths, dtype=np.float64)
    width = BANDWIDTH * values.std()
    if len(values) < 3 or width == 0:
        return Density(np.unique(values), np.ones(len(np.unique(values))), None)
    grid = np.linspace(max(0.0, values.min() - 3 * width), values.max() + 3 * width, _GRID)
    # Lengths repeat, so that one kernel for each distinct length is enough however many episodes there are.
    distinct, counts = np.unique(values, return_counts=True)
    z = (grid[:, None] - distinct[None, :]) / width
    density = np.exp(-0.5 * z * z) @ counts / (len(values) * width * np.sqrt(2 * np.pi))
    return Density(grid, density, _gap(grid, density, float(np.percentile(values, _BELOW))))


def _gap(grid: np.ndarray, density: np.ndarray, below: float) -> float | None:
    inner = density[1:-1]
    minima = 1 + np.flatnonzero((inner < density[:-2]) & (inner <= density[2:]) & (grid[1:-1] < below))
    deep = [i for i in minima if density[i] < _DEPTH * min(density[:i].max(), density[i + 1 :].max())]
    if not deep:
        return None
    return float(grid[min(deep, key=lambda i: float(density[i]))])
