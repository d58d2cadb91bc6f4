from __future__ import annotations

import numpy as np

from robotrials.datasets.analysis.lengths import length_density


def test_the_threshold_lies_between_aborted_and_whole_episodes() -> None:
    rng = np.random.default_rng(0)
    gap = length_density(np.r_[rng.normal(60, 10, 30), rng.normal(300, 25, 200)].round()).gap
    assert gap is not None
    assert 100 < gap < 220


def test_lengths_of_one_kind_have_no_threshold() -> None:
    for seed in range(5):
        assert length_density(np.random.default_rng(seed).normal(300, 30, 300).round()).gap is None


def test_a_gap_above_the_fortieth_percentile_would_cut_off_the_majority() -> None:
    rng = np.random.default_rng(0)
    assert length_density(np.r_[rng.normal(60, 10, 150), rng.normal(300, 20, 50)].round()).gap is None


def test_equal_lengths_have_no_threshold() -> None:
    assert length_density(np.full(50, 300)).gap is None


def test_the_density_integrates_to_one() -> None:
    density = length_density(np.random.default_rng(0).normal(300, 30, 200).round())
    assert abs(np.trapezoid(density.density, density.at) - 1) < 2e-3
