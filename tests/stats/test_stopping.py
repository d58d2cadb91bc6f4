from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from robotrials.errors import ConfigError
from robotrials.stats.stopping import Until, VersusDecider, WidthDecider, parse_until


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("width<=0.06", Until("width<=0.06", width=0.06)),
        (" width < 6% ", Until("width<=0.06", width=0.06)),
        ("width=.1", Until("width<=0.1", width=0.1)),
        ("vs=runs/a b", Until("vs=runs/a b", versus="runs/a b")),
    ],
)
def test_a_rule_is_a_width_or_a_run(text: str, rule: Until) -> None:
    assert parse_until(text) == rule


@pytest.mark.parametrize("text", ["", "width", "width<=2", "width<=0", "width>=0.1", "width<=1.2.3", "vs=", "n>=3"])
def test_anything_else_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(ConfigError, match=r"width<=0\.06"):
        parse_until(text)


def episodes(outcomes: np.ndarray) -> Iterator[tuple[tuple[str, str, int], bool, bool]]:
    """(rounds, tasks) as a run gives them: the first of every task, then the second, ..."""
    rounds, tasks = outcomes.shape
    for index in range(rounds):
        for task in range(tasks):
            yield ("s", f"t{task}", index), bool(outcomes[index, task]), task == tasks - 1


def test_the_width_is_looked_at_after_whole_rounds_only() -> None:
    decider = WidthDecider(0.6)
    for key, success, ends in episodes(np.ones((10, 3), bool)):
        before = decider.decided
        decider.add(key, success, ends)
        assert before or not decider.decided or ends
        if decider.decided:
            break
    low, high = decider.interval
    assert high - low <= 0.6
    assert (decider.n % 3, decider.successes) == (0, decider.n)
    assert "points wide (asked for: 60)" in decider.words()


def test_a_round_in_which_an_episode_erred_is_passed_over() -> None:
    decider = WidthDecider(0.5)
    for success, ends in ((True, False), (None, True), (True, False), (True, True)):
        decider.add(("s", "t", 0), success, ends)
    assert (decider.successes, decider.n) == (2, 2)


@pytest.mark.parametrize("rates", [[0.5], [0.95, 0.7, 0.99]])
def test_a_run_that_stops_by_width_has_the_rate_in_its_interval(rates: list[float]) -> None:
    rng = np.random.default_rng(41)
    missed = 0
    for _ in range(150):
        decider = WidthDecider(0.35)
        for key, success, ends in episodes(rng.random((200, len(rates))) < rates):
            decider.add(key, success, ends)
            if decider.decided:
                break
        assert decider.decided
        low, high = decider.interval
        missed += not low <= np.mean(rates) <= high
    assert missed / 150 <= 0.05


def compare(first: np.ndarray, second: np.ndarray) -> VersusDecider:
    """Until it is decided, or at the end."""
    reference = {key: success for key, success, _ in episodes(second)}
    decider = VersusDecider(reference, "a")
    for key, success, ends in episodes(first):
        decider.add(key, success, ends)
        if decider.decided:
            break
    return decider


@pytest.mark.parametrize("rates", [[0.5], [0.9, 0.3, 0.6, 0.0]])
def test_equal_policies_stop_wrongly_in_at_most_5_of_100_runs(rates: list[float]) -> None:
    """They share the scene's difficulty half of the time, so that pairs are correlated as they are in practice."""
    rng = np.random.default_rng(43)
    wrong = 0
    for _ in range(800):
        shape = (200 // len(rates), len(rates))
        shared, own = rng.random(shape), rng.random(shape)
        same = rng.random(shape) < 0.5
        first, second = np.where(same, shared, own) < rates, np.where(same, shared, rng.random(shape)) < rates
        wrong += compare(first, second).decided
    assert wrong / 800 <= 0.05


def test_a_better_and_a_worse_policy_stop_early_on_the_right_side() -> None:
    rng = np.random.default_rng(47)
    used = []
    for _ in range(50):
        good, bad = rng.random((200, 2)) < 0.85, rng.random((200, 2)) < 0.5
        better, worse = compare(good, bad), compare(bad, good)
        assert better.words().startswith("better: won ")
        assert worse.words().startswith("worse: won ")
        used.append(better.pairs)
    assert np.mean(used) < 150  # of 400


def test_pairs_that_one_side_lacks_are_none() -> None:
    decider = VersusDecider({("s", "t", 0): True}, "a")
    decider.add(("s", "t", 0), None, True)
    decider.add(("s", "t", 1), True, True)
    assert (decider.pairs, decider.decided) == (0, False)
    decider.add(("s", "t", 0), False, True)
    assert decider.state() == pytest.approx({"wins": 0, "losses": 1, "pairs": 1, "anytime_p": 1.0})


def test_states_are_strict_json_even_when_the_evidence_is_endless() -> None:
    reference = {("s", "t", i): False for i in range(3000)}
    decider = VersusDecider(reference, "a")
    for key in reference:
        decider.add(key, True, True)
    json.dumps(decider.state(), allow_nan=False)
    assert WidthDecider(0.1).state() == {"successes": 0, "episodes": 0, "interval": [0.0, 1.0]}
