from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from robotrials.stats.intervals import METHODS, beta_cdf, clopper_pearson, jeffreys, suite_rate, wilson

KNOWN = [
    # successes, n, exact, wilson, jeffreys
    (0, 10, (0, 0.308497), (0, 0.277533), (0.000048, 0.217196)),
    (9, 10, (0.554984, 0.997471), (0.595850, 0.982124), (0.618685, 0.988988)),
    (10, 10, (0.691503, 1), (0.722467, 1), (0.782804, 0.999952)),
    (5, 10, (0.187086, 0.812914), (0.236593, 0.763407), (0.223529, 0.776471)),
    (45, 50, (0.781865, 0.966725), (0.786398, 0.956524), (0.794645, 0.960806)),
    (50, 50, (0.928878, 1), (0.928652, 1), (0.951242, 0.999990)),
    (471, 500, (0.917762, 0.960816), (0.917944, 0.959316), (0.918919, 0.959987)),
]

counts = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
suites = st.lists(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=60
)


@pytest.mark.parametrize(("successes", "n", "exact", "score", "posterior"), KNOWN)
def test_the_published_intervals_are_met(
    successes: int, n: int, exact: tuple[float, float], score: tuple[float, float], posterior: tuple[float, float]
) -> None:
    assert clopper_pearson(successes, n) == pytest.approx(exact, abs=1e-6)
    assert wilson(successes, n) == pytest.approx(score, abs=1e-6)
    assert jeffreys(successes, n) == pytest.approx(posterior, abs=1e-6)


def test_the_exact_interval_that_scipy_publishes_for_binomtest_is_met() -> None:
    assert clopper_pearson(7, 50) == pytest.approx((0.05819170033997342, 0.26739600249700846), abs=1e-12)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (1, 3), (37, 50), (999, 1000), (12_345, 100_000)])
def test_scipy_agrees(successes: int, n: int, confidence: float) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    result = scipy_stats.binomtest(successes, n)
    for ours, method in ((clopper_pearson, "exact"), (wilson, "wilson")):
        theirs = result.proportion_ci(confidence, method=method)
        assert ours(successes, n, confidence) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    posterior = scipy_stats.beta(successes + 0.5, n - successes + 0.5)
    assert jeffreys(successes, n, confidence) == pytest.approx(posterior.interval(confidence), abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (1, 1), (0.5, 5000.5), (3, 700), (60_000, 40_000)])
def test_scipy_agrees_on_the_beta_distribution(a: float, b: float) -> None:
    special = pytest.importorskip("scipy.special")
    for x in np.linspace(0, 1, 41):
        assert beta_cdf(float(x), a, b) == pytest.approx(special.betainc(a, b, x), abs=1e-9)


@pytest.mark.parametrize("name", METHODS)
@given(case=counts, confidence=st.floats(0.5, 0.999))
def test_an_interval_lies_within_0_and_1_and_holds_the_rate(
    name: str, case: tuple[int, int], confidence: float
) -> None:
    successes, n = case
    low, high = METHODS[name](successes, n, confidence)
    assert 0.0 <= low < high <= 1.0
    if name != "jeffreys" or 0 < successes < n:
        assert low <= successes / n <= high


@pytest.mark.parametrize("name", METHODS)
@given(case=counts)
def test_success_and_failure_are_mirror_images(name: str, case: tuple[int, int]) -> None:
    successes, n = case
    low, high = METHODS[name](successes, n, 0.95)
    assert METHODS[name](n - successes, n, 0.95) == pytest.approx((1 - high, 1 - low), abs=1e-15)


@given(case=counts)
def test_more_confidence_is_a_wider_interval(case: tuple[int, int]) -> None:
    for method in METHODS.values():
        (low, high), (wide_low, wide_high) = method(*case, 0.8), method(*case, 0.95)
        assert wide_low <= low < high <= wide_high


@pytest.mark.parametrize("method", METHODS.values())
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0, 0.95), "at least one finished episode"),
        ((3, 2, 0.95), "between 0 and n = 2, got 3"),
        ((-1, 2, 0.95), "got -1"),
        ((1, 2, 95), "such as 0.95, got 95"),
    ],
)
def test_counts_that_cannot_be_are_refused(method: object, arguments: tuple[int, int, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method(*arguments)  # type: ignore[operator]


# -- suites


@given(case=counts)
def test_a_suite_of_one_task_has_that_tasks_wilson_interval(case: tuple[int, int]) -> None:
    successes, n = case
    assert suite_rate([case]) == pytest.approx((successes / n, *wilson(successes, n)), abs=1e-12)


@pytest.mark.parametrize("name", METHODS)
@given(case=counts)
def test_a_suite_of_one_task_has_that_tasks_interval_of_any_method(name: str, case: tuple[int, int]) -> None:
    _, *bounds = suite_rate([case], method=name)
    low, high = METHODS[name](*case, 0.95)
    rate = case[0] / case[1]
    assert bounds == pytest.approx([min(low, rate), max(high, rate)], abs=1e-9)  # Jeffreys leaves out 0 and 1


def test_the_exact_interval_of_a_suite_is_wider_than_wilsons() -> None:
    tasks = [(9, 10), (4, 10), (10, 10)]
    _, low, high = suite_rate(tasks)
    _, exact_low, exact_high = suite_rate(tasks, method="exact")
    assert exact_low < low < high < exact_high


@given(suite=suites)
@example(suite=[(0, 1), (60, 60)])
@example(suite=[(1, 1), (0, 1)])
def test_a_suites_interval_holds_its_mean_and_is_mirrored_by_failures(suite: list[tuple[int, int]]) -> None:
    mean, low, high = suite_rate(suite)
    assert 0.0 <= low <= mean <= high <= 1.0
    assert high - low > 0.0
    assert suite_rate([(n - k, n) for k, n in suite]) == pytest.approx((1 - mean, 1 - high, 1 - low), abs=1e-12)


def test_every_task_weighs_the_same_whatever_its_number_of_episodes() -> None:
    assert suite_rate([(1, 1), (0, 99)])[0] == 0.5


def test_tasks_without_a_finished_episode_are_left_out() -> None:
    assert suite_rate([(3, 4), (0, 0)]) == suite_rate([(3, 4)])
    with pytest.raises(ValueError, match="no task has a finished episode"):
        suite_rate([(0, 0)])


@pytest.mark.parametrize("successes", [0, 10])
def test_a_suite_where_all_tasks_fail_or_all_succeed_is_as_sure_as_all_its_episodes(successes: int) -> None:
    _, low, high = suite_rate([(successes, 10)] * 50)
    assert (low, high) == pytest.approx(wilson(50 * successes, 500), abs=1e-12)


def test_tasks_that_differ_make_a_narrower_interval_than_one_pool_of_their_episodes() -> None:
    # Half of 10 tasks always succeed, half never: each task's rate is sure, so is their mean.
    _, low, high = suite_rate([(50, 50)] * 5 + [(0, 50)] * 5)
    pool_low, pool_high = wilson(250, 500)
    assert high - low < 0.2 * (pool_high - pool_low)


def test_a_large_suite_has_the_interval_of_the_sum_of_variances() -> None:
    tasks = [(400, 500), (250, 500), (475, 500)]
    mean, low, high = suite_rate(tasks)
    half = 1.959964 * math.sqrt(sum(k / n * (1 - k / n) / n for k, n in tasks)) / 3
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=6e-4)


@pytest.mark.parametrize("rates", [[0.9] * 10, [0.999, 0.5] * 5, [0.3, 0.97, 0.97, 0.97, 0.97] * 2])
def test_95_of_100_intervals_hold_the_true_mean(rates: list[float]) -> None:
    rng = np.random.default_rng(7)
    runs = rng.binomial(10, rates, size=(2000, len(rates)))
    held = 0
    for run in runs:
        _, low, high = suite_rate([(int(k), 10) for k in run])
        held += bool(low <= np.mean(rates) <= high)
    assert 0.93 <= held / 2000 <= 0.985
