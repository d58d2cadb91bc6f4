from __future__ import annotations

import numpy as np
import pytest

from robotrials.stats.unpaired import barnard, fewer, mantel_haenszel, newcombe


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [((40, 50), (28, 50), 0.012036), ((45, 50), (38, 50), 0.067534), ((3, 3), (0, 3), 0.03125)],
)
def test_the_published_values_of_barnard_are_met_from_both_sides(
    first: tuple[int, int], second: tuple[int, int], p: float
) -> None:
    assert barnard(first, second) == pytest.approx(p, abs=1e-6)
    assert barnard(second, first) == pytest.approx(p, abs=1e-6)


def test_scipy_agrees_on_barnard() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(5)
    for _ in range(15):
        n1, n2 = (int(n) for n in rng.integers(1, 60, 2))
        k1, k2 = int(rng.integers(0, n1 + 1)), int(rng.integers(0, n2 + 1))
        theirs = stats.barnard_exact([[k1, k2], [n1 - k1, n2 - k2]], n=64).pvalue
        ours = barnard((k1, n1), (k2, n2))
        assert ours == pytest.approx(theirs, abs=1e-6) or ours > theirs  # see the next test


def test_an_outcome_that_ties_with_the_observed_one_is_as_extreme_although_rounding_says_otherwise() -> None:
    # 14 of 36 against 8 of 15 has the statistic of 22 against 7 with the sign turned; their floats differ in the last
    # bit.
    assert barnard((22, 36), (7, 15)) == pytest.approx(0.360039, abs=1e-6)
    assert barnard((14, 36), (8, 15)) == pytest.approx(0.360039, abs=1e-6)


def test_equal_rates_are_no_evidence_and_large_samples_are_exact_too() -> None:
    assert barnard((5, 10), (50, 100)) == 1.0
    # Near the normal approximation: z = 2.898.
    assert barnard((4000, 10000), (3800, 10000)) == pytest.approx(0.003755, abs=1e-4)


def test_the_exact_test_errs_at_most_as_often_as_it_says() -> None:
    n1, n2 = 8, 11
    for rate in (0.1, 0.3, 0.5):
        choose = lambda n, k: np.prod([(n - i) / (i + 1) for i in range(k)])  # noqa: E731
        wrong = 0.0
        for k1 in range(n1 + 1):
            for k2 in range(n2 + 1):
                if barnard((k1, n1), (k2, n2)) <= 0.05:
                    mass = choose(n1, k1) * choose(n2, k2)
                    wrong += mass * rate ** (k1 + k2) * (1 - rate) ** (n1 + n2 - k1 - k2)
        assert wrong <= 0.05


def test_samples_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="got 3 of 2"):
        barnard((3, 2), (1, 2))
    with pytest.raises(ValueError, match="got 0 of 0"):
        barnard((0, 0), (1, 2))


def test_the_published_interval_of_newcombe_is_met() -> None:
    assert newcombe((45, 50), (38, 50)) == pytest.approx((-0.009397, 0.285551), abs=1e-6)


def test_mantel_haenszel_compares_each_task_within_itself() -> None:
    # Pooled, the first looks better (55/60 v 55/110): only because it ran more of the easy task.
    easy, hard = ((50, 50), (50, 50)), ((5, 10), (5, 60))
    assert mantel_haenszel([easy, easy]) == 1.0
    assert mantel_haenszel([((5, 10), (30, 60)), ((45, 50), (9, 10))]) == pytest.approx(1.0)
    assert mantel_haenszel([easy, hard]) < 0.01


def test_scipy_free_reference_of_mantel_haenszel() -> None:
    # One table of 20/30 v 10/30: (20 - 15)^2 / (30 * 30 * 30 * 30 / (60^2 * 59)) = 6.5556, chi-square of one degree.
    assert mantel_haenszel([((20, 30), (10, 30))]) == pytest.approx(0.010455, abs=1e-6)


def test_scipy_agrees_on_fishers_one_sided_test() -> None:
    stats = pytest.importorskip("scipy.stats")
    for (k1, n1), (k2, n2) in (((2, 20), (30, 60)), ((0, 5), (5, 5)), ((50, 50), (40, 50)), ((0, 3), (0, 9))):
        theirs = stats.fisher_exact([[k1, n1 - k1], [k2, n2 - k2]], alternative="less").pvalue
        assert fewer((k1, n1), (k2, n2)) == pytest.approx(theirs, rel=1e-9)
