from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotrials.stats.paired import PairCounts, agresti_min, mcnemar, weighted_difference


@pytest.mark.parametrize(
    ("b", "c", "exact", "mid"),
    [(8, 2, 0.109375, 0.065430), (10, 3, 0.092285, 0.057373), (5, 0, 0.0625, 0.03125), (6, 0, 0.03125, 0.015625)],
)
def test_the_published_values_of_mcnemar_are_met_from_both_sides(b: int, c: int, exact: float, mid: float) -> None:
    assert mcnemar(b, c) == pytest.approx((exact, mid), abs=1e-6)
    assert mcnemar(c, b) == mcnemar(b, c)


def test_no_difference_in_either_direction_is_no_evidence() -> None:
    assert mcnemar(0, 0) == (1.0, 1.0)
    assert mcnemar(4, 4) == (1.0, 1.0)


@pytest.mark.parametrize(("b", "c"), [(0, 1), (3, 3), (17, 40), (4000, 4200), (5000, 300)])
def test_scipy_agrees_on_mcnemar(b: int, c: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    exact, mid = mcnemar(b, c)
    assert exact == pytest.approx(stats.binomtest(min(b, c), b + c, 0.5).pvalue, rel=1e-9)
    half = stats.binom.pmf(min(b, c), b + c, 0.5)
    assert mid == pytest.approx(2 * stats.binom.cdf(min(b, c), b + c, 0.5) - half, rel=1e-9)


def test_the_published_interval_of_agresti_and_min_is_met() -> None:
    assert agresti_min(PairCounts(50, 8, 2)) == pytest.approx((-0.005627, 0.236396), abs=1e-6)


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="together at most n, got n=3 b=2 c=2"):
        PairCounts(3, 2, 2)
    with pytest.raises(ValueError, match="must not be negative"):
        mcnemar(-1, 2)
    with pytest.raises(ValueError, match="no task has a pair"):
        weighted_difference([PairCounts(0, 0, 0)])


pair_counts = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30)).map(
    lambda cells: PairCounts(sum(cells) + 1, cells[0], cells[1])
)


@given(tasks=st.lists(pair_counts, min_size=1, max_size=20))
def test_the_interval_of_many_tasks_holds_their_mean_and_is_mirrored(tasks: list[PairCounts]) -> None:
    mean, low, high = weighted_difference(tasks)
    assert mean == pytest.approx(np.mean([(t.b - t.c) / t.n for t in tasks]))
    assert -1.0 <= low <= mean <= high <= 1.0
    assert high > low
    swapped = weighted_difference([PairCounts(t.n, t.c, t.b) for t in tasks])
    assert swapped == pytest.approx((-mean, -high, -low), abs=1e-12)


def test_tasks_weigh_the_same_whatever_their_number_of_pairs() -> None:
    assert weighted_difference([PairCounts(1, 1, 0), PairCounts(99, 0, 0)])[0] == 0.5


@pytest.mark.parametrize(("n", "tasks"), [(1, 20), (3, 10), (10, 5), (50, 1)])
@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.25, 0.05), (0.02, 0.0)])
def test_95_of_100_intervals_hold_the_true_difference(n: int, tasks: int, rates: tuple[float, float]) -> None:
    rng = np.random.default_rng(11)
    cells = rng.multinomial(n, [*rates, 1 - sum(rates)], size=(1500, tasks))
    held = 0
    for run in cells:
        _, low, high = weighted_difference([PairCounts(n, int(b), int(c)) for b, c, _ in run])
        held += low <= rates[0] - rates[1] <= high
    assert held / 1500 >= 0.92
