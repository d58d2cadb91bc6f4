from __future__ import annotations

import numpy as np
import pytest

from robotrials.datasets.levels import count_levels
from robotrials.datasets.statistics import QUANTILES, ImageStats, VectorStats, plain


def in_pieces(values: np.ndarray, *sizes: int, rows: int = 100_000) -> VectorStats:
    stats = VectorStats(rows)
    for piece in np.split(values, np.cumsum(sizes)):
        stats.add(piece)
    return stats


def test_vectors_in_pieces_give_the_statistics_of_the_whole() -> None:
    values = np.random.default_rng(0).normal([5.0, -1e4, 0.0], [1.0, 1e-2, 0.0], (300, 3)).astype(np.float32)
    stats = in_pieces(values, 1, 7, 200).result()
    exact = values.astype(np.float64)
    np.testing.assert_array_equal(stats["min"], exact.min(axis=0))
    np.testing.assert_array_equal(stats["max"], exact.max(axis=0))
    np.testing.assert_allclose(stats["mean"], exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(stats["std"], exact.std(axis=0), rtol=1e-6)
    assert stats["count"] == [300]
    for name, q in QUANTILES.items():
        np.testing.assert_allclose(stats[name], np.quantile(exact, q, axis=0), rtol=1e-12)


def test_a_constant_has_no_deviation_and_flags_count_as_zero_and_one() -> None:
    assert in_pieces(np.full((20, 1), 0.1, np.float32), 5).result()["std"] == [0.0]
    assert plain(in_pieces(np.array([True, False, False, False])).result())["mean"] == [0.25]


def test_what_is_not_finite_is_left_out_entry_by_entry_and_counted() -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, (300, 4))
    values[7, 0], values[8, 0], values[250, 1] = np.nan, np.inf, -np.inf
    values[:, 3] = np.nan
    whole = in_pieces(values, 1, 7, 200)
    assert whole.nonfinite == 303
    stats = whole.result()
    for entry in range(3):
        exact = values[np.isfinite(values[:, entry]), entry]
        for name, expected in {
            "min": exact.min(),
            "max": exact.max(),
            "mean": exact.mean(),
            "std": exact.std(),
            **{name: np.quantile(exact, q) for name, q in QUANTILES.items()},
        }.items():
            np.testing.assert_allclose(stats[name][entry], expected, rtol=1e-12, err_msg=name)
    assert {name: value[3] for name, value in stats.items() if name != "count"} == dict.fromkeys(
        ["min", "max", "mean", "std", *QUANTILES], 0.0
    )
    assert stats["count"] == [300]


def test_more_rows_than_are_held_leave_quantiles_of_every_other_row() -> None:
    values = np.arange(1000.0)
    stats = in_pieces(values, 300, 333, rows=130)
    # 1000 rows: thinned to every eighth, wherever the pieces were cut.
    expected = values[::8]
    np.testing.assert_allclose(stats.result()["q90"], np.quantile(expected, 0.9))
    assert stats.result()["count"] == [1000]
    assert stats.result()["max"] == [999.0]


def test_images_have_the_statistics_of_all_their_pixels_in_zero_to_one() -> None:
    rng = np.random.default_rng(1)
    frames = rng.integers(3, 200, (4, 10, 12, 3)).astype(np.uint8)
    frames[..., 2] = 255
    stats = ImageStats()
    for frame in frames:
        stats.add(count_levels(frame), 1)
    result = stats.result()
    pixels = frames.reshape(-1, 3) / 255
    for name, expected in {
        "min": pixels.min(axis=0),
        "max": pixels.max(axis=0),
        "mean": pixels.mean(axis=0),
        "std": pixels.std(axis=0),
        **{name: np.quantile(pixels, q, axis=0, method="inverted_cdf") for name, q in QUANTILES.items()},
    }.items():
        assert result[name].shape == (3, 1, 1)
        np.testing.assert_allclose(result[name].ravel(), expected, atol=1e-9, err_msg=name)
    assert result["count"] == [4]


@pytest.mark.parametrize(("side", "counted"), [(96, 96), (299, 299), (480, 160)])
def test_large_pictures_are_thinned(side: int, counted: int) -> None:
    assert count_levels(np.zeros((side, side, 3), np.uint8)).sum() == 3 * counted**2
