from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import pytest

from robotrials.benchmarks.adapters.maniskill.expert import ActionsOf


def test_actions_come_one_at_a_time_and_what_follows_sees_their_effect() -> None:
    world = [0]
    seen = []

    def play(step: Callable[[int], None]) -> None:
        for _ in range(3):
            seen.append(world[0])
            step(world[0] + 1)

    actions = ActionsOf(play)
    for expected in (1, 2, 3):
        assert actions.next() == expected
        world[0] = expected
    assert actions.next() is None
    assert actions.next() is None
    assert seen == [0, 1, 2]


def test_a_player_that_is_left_unwinds_and_its_thread_ends() -> None:
    unwound = []

    def play(step: Callable[[int], None]) -> None:
        try:
            while True:
                with contextlib.suppress(Exception):  # as a planner that tries again whatever went wrong
                    step(1)
        finally:
            unwound.append(True)

    before = threading.active_count()
    actions = ActionsOf(play)
    assert actions.next() == 1
    actions.close()
    actions.close()
    assert unwound == [True]
    assert threading.active_count() == before
    assert actions.next() is None


def test_one_that_never_began_is_closed_without_playing() -> None:
    began = []
    ActionsOf(lambda step: began.append(step)).close()
    assert began == []


def test_what_the_player_raises_is_raised_where_the_action_was_asked_for() -> None:
    def play(step: Callable[[int], None]) -> None:
        step(1)
        raise ValueError("no path")

    actions = ActionsOf(play)
    assert actions.next() == 1
    with pytest.raises(ValueError, match="no path"):
        actions.next()
    assert actions.next() is None
