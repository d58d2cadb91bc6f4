from __future__ import annotations

import numpy as np

from robotrials.datasets.analysis.chunks import Chunks
from robotrials.datasets.analysis.spread import ratio, spread


def chunks(means: np.ndarray, episode: np.ndarray, band: np.ndarray) -> Chunks:
    """Chunks of two frames whose means (N, J) are as given."""
    actions = np.stack([means - 1, means + 1], axis=1).astype(np.float32)
    return Chunks(actions, episode, np.zeros(len(means)), np.zeros(len(means)), band)


def test_the_variance_is_that_of_the_means_over_n_minus_one() -> None:
    rng = np.random.default_rng(0)
    means = rng.normal([500.0, -3.0], [1.0, 2.0], (40, 2))
    band = np.arange(40) % 2
    found = spread(chunks(means, np.arange(40) // 4, band), 2, 0)
    np.testing.assert_allclose(found.variance, [means[band == b].var(axis=0, ddof=1) for b in (0, 1)], rtol=1e-4)


def test_a_band_of_two_chunks_has_no_variance() -> None:
    found = spread(chunks(np.eye(2), np.array([0, 1]), np.zeros(2, int)), 1, 0)
    assert np.isnan(found.variance).all()


def test_the_interval_of_the_ratio_holds_the_truth_and_is_wide_where_episodes_are_alike_inside() -> None:
    rng = np.random.default_rng(0)

    def one(scale: float) -> Chunks:
        own = scale * rng.normal(size=(60, 1)).repeat(10, axis=0)  # all ten chunks of an episode are the same
        return chunks(own, np.arange(600) // 10, np.zeros(600, int))

    value, low, high = ratio(spread(one(2.0), 1, 0), spread(one(1.0), 1, 1))
    assert low[0, 0] < 4.0 < high[0, 0]
    assert low[0, 0] < value[0, 0] < high[0, 0]
    assert high[0, 0] / low[0, 0] > 1.8  # of 600 independent chunks it would be 1.4


def test_a_joint_that_does_not_move_has_no_ratio() -> None:
    still = spread(chunks(np.ones((10, 1)), np.arange(10), np.zeros(10, int)), 1, 0)
    value, low, _ = ratio(still, still)
    assert np.isnan(value).all()
    assert np.isnan(low).all()
