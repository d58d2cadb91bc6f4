from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from robotrials.datasets.analysis import plots
from robotrials.datasets.analysis.analyse import Analysis, analyse
from robotrials.datasets.analysis.settings import AnalysisSettings
from tests.datasets.analysis.made_up import strategies, write_dataset


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """Two small datasets whose names are long, and whose joints have names that matplotlib could trip over."""
    root: Path = tmp_path_factory.mktemp("datasets")
    names = [r"$\frac{$", "関節 1", "joint 3"]
    paths = [
        write_dataset(root / (f"{word} of a dataset with a name that is very long " * 2), motions, names=names)
        for word, motions in (("all", strategies(25, 40, 3, 1, 0)), ("best", strategies(22, 40, 3, 1, 1)))
    ]
    return analyse(paths, AnalysisSettings(bands=2, draws=0))


def test_any_name_can_be_drawn_without_a_word(two: Analysis) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = plots.draw_all(two)
    assert len(drawn) == 7
    assert all(data.startswith(b"\x89PNG") for data in drawn.values())


def test_legends_stand_above_the_titles(two: Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    sheets = []
    real = plots._png
    monkeypatch.setattr(plots, "_png", lambda sheet: sheets.append(sheet) or real(sheet))
    plots.summary(two)
    plots.counts(two)
    plots.lengths(two)
    plots.lengths(replace(two, sets=two.sets[:1], ratio=None))
    for sheet in sheets:
        (legend,) = sheet.legends
        titles = max(axes._left_title.get_window_extent().y1 for axes in sheet.axes)
        assert min(words.get_window_extent().y0 for words in legend.get_texts()) > titles
        box = legend.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= sheet.bbox.x1


def test_lengths_that_are_all_alike_are_seen() -> None:
    low, high = plots._length_bins(np.full(9, 120))
    assert (low, high) == (117, 123)
    edges = plots._length_bins(np.array([299, 300, 301]))
    assert edges[0] < 299 < 301 < edges[-1]
    assert edges[-1] - edges[0] == pytest.approx(0.05 * 301)
    assert plots._length_bins(np.array([40, 300]))[[0, -1]].tolist() == [40, 300]


def test_a_band_of_which_no_joint_is_known_is_not_one_without_variance() -> None:
    total = plots._over_joints(np.array([[1.0, 2.0], [np.nan, 3.0], [np.nan, np.nan], [0.0, 0.0]]))
    np.testing.assert_array_equal(total, [3.0, 3.0, np.nan, 0.0])
