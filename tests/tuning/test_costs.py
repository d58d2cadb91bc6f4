from __future__ import annotations

import random

import pytest

from robotrials.tuning.costs import ServerCost, cost_of, draw_lengths, expected_steps
from robotrials.tuning.protocol import Played


def played(steps: int = 100, cut: bool = False, filmed: bool = False, **more: float) -> Played:
    """100 steps of 10 ms, a look every ten of 20 ms, all of it computing."""
    looks = steps // 10
    times = {
        "reset_s": 0.5,
        "simulate_s": 0.01 * steps,
        "render_s": 0.02 * looks,
        "infer_s": 0.03 * looks,
        "wait_s": 0.0,
        "film_s": 0.0,
        "queued_s": 0.0,
        "build_s": 1.0,
    } | more
    total = sum(times[name] for name in ("reset_s", "simulate_s", "render_s", "infer_s", "wait_s", "film_s"))
    times = {"total_s": total, "cpu_s": total - times["wait_s"]} | times
    return Played(task="t", steps=steps, looks=looks, cut=cut, filmed=filmed, **times)


def test_each_part_is_measured_by_what_it_happens_for() -> None:
    cost = cost_of([played(100), played(200)], 500)
    assert (cost.reset, cost.step, cost.render, cost.infer) == pytest.approx((0.5, 0.01, 0.02, 0.03))
    assert (cost.steps, cost.steps_a_look, cost.busy) == pytest.approx((150, 10, 1.0))
    assert cost.own_s == pytest.approx(0.5 + 150 * 0.01 + 15 * 0.02)
    assert cost.lengths == (100, 200)


def test_a_film_is_what_filmed_episodes_take_more() -> None:
    cost = cost_of([played(100), played(100, filmed=True, render_s=0.2 + 100 * 0.004, film_s=0.1)], 500)
    assert cost.render == pytest.approx(0.02)
    assert cost.film == pytest.approx(0.004 + 0.001)


def test_a_simulator_that_sleeps_does_not_want_a_core_all_the_time() -> None:
    one = played(100)
    half = played(100, cpu_s=one.total_s * 0.4, queued_s=one.total_s * 0.1)
    assert cost_of([half], 500).busy == pytest.approx(0.5)


def test_waiting_for_a_policy_server_is_nobody_s_own_time() -> None:
    one = played(100, wait_s=10.0, cpu_s=0.5 + 1.0 + 0.2)
    cost = cost_of([one, played(100, wait_s=2.0, cpu_s=0.5 + 1.0 + 0.2)], 500, served=True)
    assert (cost.busy, cost.infer, cost.transfer) == pytest.approx((1.0, 0.0, 0.2))


def test_episodes_that_were_cut_count_as_at_least_so_long() -> None:
    assert expected_steps([(100, False), (200, False)], 500) == 150
    assert expected_steps([(100, True), (100, True)], 500) == 500
    # Half end at 100, the other half was seen to outlast that, and is taken to go on.
    assert expected_steps([(100, False), (300, True)], 500) == 100 + 0.5 * 400
    # Cut before anything ended, an episode says nothing.
    assert expected_steps([(100, False), (200, False), (20, True)], 500) == 150
    assert expected_steps([(300, False)] * 5 + [(20, True)], 300) == 300


def test_lengths_are_drawn_from_what_was_seen_if_that_is_enough() -> None:
    cost = cost_of([played(100), played(200), played(300)], 500)
    drawn = draw_lengths(cost, 50, random.Random(0))
    assert set(drawn) == {100.0, 200.0, 300.0}
    few = cost_of([played(100), played(200)], 500)
    assert draw_lengths(few, 3, random.Random(0)) == [150.0] * 3


def test_a_pass_between_two_timed_sizes_is_in_proportion() -> None:
    server = ServerCost(1.0, {1: 0.01, 2: 0.012, 4: 0.02}, {8: 0.05}, 4, False, 0.0)
    assert server.pass_s(2, None) == 0.012
    assert server.pass_s(3, None) == pytest.approx(0.016)
    assert server.pass_s(8, None) == pytest.approx(0.036)
    assert server.pass_s(3, 8) == 0.05, "padded to the other batch"
