from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from robotrials.datasets.analysis.chunks import aligned
from robotrials.datasets.analysis.fitting import Fitters
from robotrials.datasets.analysis.modes import count_modes
from robotrials.datasets.analysis.reading import DatasetEpisode
from tests.datasets.analysis.made_up import skewed, strategies


def middle(motions: list[np.ndarray]) -> np.ndarray:
    """The chunk in the middle of each episode."""
    episodes = [DatasetEpisode(i, motion, np.linspace(0, 1, len(motion))) for i, motion in enumerate(motions)]
    return aligned(episodes, 30, 1).actions


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("modes", [1, 2, 3])
def test_as_many_modes_are_found_as_the_data_has(modes: int, seed: int) -> None:
    found = count_modes(middle(strategies(150, 100, 6, modes, seed)), draws=3, seed=(seed,), fitters=Fitters())
    assert found.modes == modes
    assert found.fit is not None
    assert found.fit.components == modes
    assert set(found.resampled) <= {modes}


@pytest.mark.parametrize("seed", [0, 1])
def test_skewed_data_of_one_mode_is_one_mode_though_bic_splits_it(seed: int) -> None:
    found = count_modes(middle(skewed(400, 100, 6, seed)), draws=3, seed=(seed,), fitters=Fitters())
    assert found.fit is not None
    assert found.fit.components > 1
    assert found.modes == 1


def test_a_bent_ridge_is_one_mode() -> None:
    rng = np.random.default_rng(0)
    angle = rng.uniform(-1.2, 1.2, (400, 1))
    features = 0.4 * rng.normal(size=(400, 1, 3)) + 0.2 * rng.normal(size=(400, 30, 3))
    features[..., 0] += 3 * np.sin(angle)
    features[..., 1] += 3 * np.cos(angle)
    found = count_modes(features, draws=0, seed=(0,), fitters=Fitters())
    assert found.fit is not None
    assert found.fit.components > 1
    assert found.modes == 1


def test_a_few_outliers_are_no_mode() -> None:
    motions = strategies(200, 100, 6, 1, 0)
    for motion in motions[:4]:
        motion += 40
    assert count_modes(middle(motions), draws=0, seed=(0,), fitters=Fitters()).modes == 1


def test_episodes_that_are_all_alike_are_one_mode() -> None:
    found = count_modes(np.ones((50, 30, 2), np.float32), draws=2, seed=(0,), fitters=Fitters())
    assert found.modes == 1


def test_fewer_than_twenty_chunks_are_not_judged() -> None:
    assert count_modes(middle(strategies(19, 100, 6, 2, 0)), draws=2, seed=(0,), fitters=Fitters()).modes is None
