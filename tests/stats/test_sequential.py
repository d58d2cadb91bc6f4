from __future__ import annotations

import numpy as np
import pytest

from robotrials.stats.intervals import wilson
from robotrials.stats.paired import mcnemar
from robotrials.stats.sequential import PairedTest, confidence_sequence, paired_e_value


@pytest.mark.parametrize(
    ("b", "c", "e"), [(5, 0, 5.333333), (6, 0, 9.142857), (7, 0, 16), (8, 0, 28.444444), (12, 2, 12.002930)]
)
def test_the_published_e_values_are_met(b: int, c: int, e: float) -> None:
    assert paired_e_value(b, c) == pytest.approx(e, abs=1e-6)
    assert paired_e_value(c, b) == pytest.approx(e, abs=1e-6)


def test_eight_wins_in_a_row_are_the_first_to_decide() -> None:
    test = PairedTest()
    for n in range(1, 9):
        test.add(True, False)
        assert test.decided == (n == 8)
    assert (test.b, test.c) == (8, 0)
    assert test.anytime_p == pytest.approx(1 / 28.444444, abs=1e-6)


def test_pairs_that_agree_change_nothing_and_evidence_once_reached_stays() -> None:
    test = PairedTest()
    for _ in range(8):
        test.add(True, False)
    reached = test.anytime_p
    for first, second in ((True, True), (False, False), (False, True), (False, True)):
        test.add(first, second)
    assert test.e_value < 20
    assert test.anytime_p == reached
    assert test.decided


def test_overwhelming_evidence_is_infinite_not_an_overflow() -> None:
    assert paired_e_value(5000, 0) == float("inf")
    assert PairedTest(largest=float("inf")).anytime_p == 0.0


@pytest.fixture(scope="module")
def equal_policies() -> tuple[float, float]:
    """Share of 4,000 runs of 50 pairs of equal policies in which somebody who looks after every pair sees a difference:
    with exact McNemar, and with the e-value."""
    rng = np.random.default_rng(17)
    first, second = rng.random((2, 4000, 50)) < 0.5
    fooled = betted = 0
    peeks: dict[tuple[int, int], bool] = {}
    for a, b in zip(first, second, strict=True):
        test = PairedTest()
        seen = False
        for one, other in zip(a, b, strict=True):
            test.add(bool(one), bool(other))
            key = (test.b, test.c)
            if key not in peeks:
                peeks[key] = mcnemar(*key)[0] <= 0.05
            seen = seen or peeks[key]
        fooled += seen
        betted += test.decided
    return fooled / 4000, betted / 4000


def test_equal_policies_are_told_apart_in_at_most_5_of_100_runs(equal_policies: tuple[float, float]) -> None:
    _, betted = equal_policies
    assert betted <= 0.05
    assert betted == pytest.approx(0.016, abs=0.008)  # facts: 1.6 %


def test_looking_at_mcnemar_after_every_pair_is_wrong_more_often_than_it_says(
    equal_policies: tuple[float, float],
) -> None:
    fooled, _ = equal_policies
    assert fooled == pytest.approx(0.118, abs=0.02)  # facts: 11.8 %


def test_a_real_difference_is_found_before_the_end() -> None:
    rng = np.random.default_rng(23)
    stops = []
    for _ in range(200):
        test = PairedTest()
        pairs = 0
        while not test.decided:
            test.add(bool(rng.random() < 0.9), bool(rng.random() < 0.6))
            pairs += 1
        stops.append(pairs)
        assert test.b > test.c
    assert np.median(stops) < 100


@pytest.mark.parametrize("rates", [[0.5], [0.9], [0.99], [1.0, 0.0, 0.5, 0.9], [0.2, 0.95]])
def test_95_of_100_confidence_sequences_hold_the_rate_at_every_look(rates: list[float]) -> None:
    rng = np.random.default_rng(29)
    rounds = 150
    outcomes = rng.random((400, rounds, len(rates))) < np.array(rates)
    known: dict[tuple[int, int], tuple[float, float]] = {}
    left = 0
    for run in outcomes:
        sums = np.cumsum(run.sum(axis=1))
        held = True
        for done, k in enumerate(sums, start=1):
            key = (int(k), done * len(rates))
            if key not in known:
                known[key] = confidence_sequence(*key)
            held = held and known[key][0] <= np.mean(rates) <= known[key][1]
        left += not held
    assert left / 400 <= 0.05


def test_a_confidence_sequence_is_wider_than_a_fixed_interval_and_mirrored() -> None:
    for k, n in ((0, 1), (5, 10), (45, 50), (50, 50), (900, 1000)):
        low, high = confidence_sequence(k, n)
        fixed_low, fixed_high = wilson(k, n)
        assert low <= fixed_low + 1e-12
        assert high >= fixed_high - 1e-12
        assert low <= k / n <= high
        assert confidence_sequence(n - k, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)
    assert confidence_sequence(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="between 0 and n = 2, got 3"):
        confidence_sequence(3, 2)
