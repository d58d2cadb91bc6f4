from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest

from robotrials.stats.intervals import wilson
from robotrials.stats.paired import mcnemar
from robotrials.stats.sequential import (
    PairedTest,
    confidence_sequence,
    paired_e_value,
    unfinished_sequence,
    width_sequence,
)


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


@functools.cache
def look(successes: int, finished: int, running: int = 0) -> tuple[float, float]:
    return unfinished_sequence(successes, finished, running)


@pytest.mark.parametrize("rates", [[0.5], [0.9], [0.99], [1.0, 0.0, 0.5, 0.9], [0.2, 0.95]])
@pytest.mark.parametrize("in_turn", [True, False])
def test_95_of_100_confidence_sequences_hold_the_mean_rate_at_every_look(rates: list[float], in_turn: bool) -> None:
    """Tasks take turns, or come one after the other, so that the mean rate drifts; somebody looks after every
    episode."""
    rng = np.random.default_rng(29)
    n, runs = 120, 400
    own = np.resize(rates, n) if in_turn else np.sort(np.resize(rates, n))
    sums = np.cumsum(rng.random((runs, n)) < own, axis=1)
    means = np.cumsum(own) / np.arange(1, n + 1)
    left = 0
    for run in sums:
        looks = [look(int(k), n) for n, k in enumerate(run, start=1)]
        left += not all(low <= mean <= high for (low, high), mean in zip(looks, means, strict=True))
    assert left / runs <= 0.05


def test_looking_at_wilsons_interval_after_every_episode_misses_the_rate_more_often_than_it_says() -> None:
    rng = np.random.default_rng(31)
    sums = np.cumsum(rng.random((400, 200)) < 0.5, axis=1)
    missed = [
        any(not wilson(int(k), n)[0] <= 0.5 <= wilson(int(k), n)[1] for n, k in enumerate(run, 1)) for run in sums
    ]
    assert np.mean(missed) > 0.15


def test_a_confidence_sequence_is_wider_than_a_fixed_interval_and_mirrored() -> None:
    for k, n in ((0, 1), (5, 10), (45, 50), (50, 50), (900, 1000), (70_000, 100_000)):
        low, high = confidence_sequence(k, n)
        fixed_low, fixed_high = wilson(k, n)
        assert low <= fixed_low + 1e-12
        assert high >= fixed_high - 1e-12
        assert low <= k / n <= high
        assert high - low < 3.2 * (fixed_high - fixed_low)
        assert confidence_sequence(n - k, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)
    assert confidence_sequence(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match=r"between 0 and n = 2.*got 3"):
        confidence_sequence(3, 2)


def test_what_still_runs_may_go_either_way() -> None:
    low, high = unfinished_sequence(18, 20, 4)
    assert (low, high) == (confidence_sequence(18, 24)[0], confidence_sequence(22, 24)[1])
    assert unfinished_sequence(0, 0, 3) == (0.0, 1.0)


def test_successes_that_end_early_do_not_fool_who_looks_at_what_has_ended() -> None:
    """Ten workers; a success takes one time step, a failure twenty. Looking at what has ended only would show nothing
    but successes at first."""
    rng = np.random.default_rng(37)
    left = naive = 0
    for _ in range(150):
        ends = [0] * 10
        outcomes: list[tuple[int, bool]] = []  # (when it ends, success), in the order of starting
        for _ in range(60):
            worker = int(np.argmin(ends))
            success = bool(rng.random() < 0.5)
            ends[worker] += 1 if success else 20
            outcomes.append((ends[worker], success))
        seen_wrong = naive_wrong = False
        for now in range(1, max(ends)):
            ended = [success for end, success in outcomes if end <= now]
            running = min(10, len(outcomes) - len(ended))
            low, high = look(sum(ended), len(ended), running)
            seen_wrong = seen_wrong or not low <= 0.5 <= high
            low, high = look(sum(ended), len(ended))
            naive_wrong = naive_wrong or not low <= 0.5 <= high
        left += seen_wrong
        naive += naive_wrong
    assert left / 150 <= 0.05
    assert naive / 150 > 0.2


@pytest.mark.parametrize("rates", [[0.5], [0.95], [1.0, 0.0, 0.5, 0.9]])
def test_the_sequence_made_for_a_width_holds_at_every_round(rates: list[float]) -> None:
    rng = np.random.default_rng(53)
    sums = np.cumsum((rng.random((300, 60, len(rates))) < rates).sum(axis=2), axis=1)
    mean, left = np.mean(rates), 0
    for run in sums:
        looks = [width_sequence(int(k), n * len(rates), 0.25) for n, k in enumerate(run, start=1)]
        left += not all(low <= mean <= high for low, high in looks)
    assert left / 300 <= 0.05


@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_the_sequence_made_for_a_width_reaches_it_with_fewer_episodes(rate: float) -> None:
    def reached(interval: Callable[[int, int], tuple[float, float]]) -> int:
        return next(n for n in range(20, 5000, 10) if np.diff(interval(round(rate * n), n))[0] <= 0.1)

    made = reached(lambda k, n: width_sequence(k, n, 0.1))
    assert made < 0.75 * reached(confidence_sequence)
    assert made < 2.2 * reached(wilson)


def test_the_sequence_made_for_a_width_has_its_ends_at_no_and_at_all_success() -> None:
    low, high = width_sequence(0, 80, 0.1)
    assert low == 0.0
    assert 0.045 < high < 0.1  # at no success at all, no narrower than the exact interval
    assert width_sequence(80, 80, 0.1) == pytest.approx((1 - high, 1.0), abs=1e-3)
    assert width_sequence(0, 0, 0.1) == (0.0, 1.0)
