from __future__ import annotations

import numpy as np
import pytest

from robotrials.stats.paired import mcnemar
from robotrials.stats.sample_size import episodes_for_difference, episodes_for_interval, pairs_for_difference


@pytest.mark.parametrize(
    ("half_width", "rate", "n"),
    [(0.03, 0.5, 1068), (0.03, 0.9, 385), (0.03, 0.95, 203), (0.05, 0.5, 385), (0.05, 0.9, 139), (0.05, 0.95, 73)],
)
def test_the_published_numbers_of_episodes_are_met(half_width: float, rate: float, n: int) -> None:
    assert episodes_for_interval(half_width, rate) == n


@pytest.mark.parametrize(("difference", "discordant"), [(0.1, 0.3), (0.05, 0.1), (0.2, 0.25)])
def test_so_many_pairs_show_the_difference_in_about_four_of_five_runs(difference: float, discordant: float) -> None:
    n = pairs_for_difference(difference, discordant)
    b, c = (discordant + difference) / 2, (discordant - difference) / 2
    runs = np.random.default_rng(3).multinomial(n, [b, c, 1 - discordant], size=1500)
    shown = np.mean([mcnemar(int(b), int(c))[0] <= 0.05 for b, c, _ in runs])
    assert 0.70 <= shown <= 0.85  # the exact test is a little conservative


def test_a_difference_in_every_discordant_pair_needs_six_of_them() -> None:
    assert pairs_for_difference(1.0, 1.0) == 6
    assert pairs_for_difference(0.1, 0.02) >= 60


def test_unpaired_runs_need_more_episodes() -> None:
    assert episodes_for_difference(0.8, 0.7) == 294  # Fleiss, without continuity correction
    assert pairs_for_difference(0.1, 0.2) < 294
