from __future__ import annotations

import pytest

from robotrials.engine.time_left import Playing, TimeLeft
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan, build_plan
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.results.record import Timings


def plan(n: int, **limits: int) -> Plan:
    action = ActionSpec(1, (-1.0,), (1.0,))
    tasks = [TaskSpec("s", name, i, "", limit, 20.0, {}, action) for i, (name, limit) in enumerate(limits.items())]
    return build_plan(tasks, n, 0)


def first_are_filmed(n: int):  # type: ignore[no-untyped-def]
    def is_filmed(episode: EpisodeSpec) -> bool:
        return episode.index < n

    return is_filmed


def played(left: TimeLeft, ids: range, seconds: float, film_s: float = 0.0) -> None:
    for episode in ids:
        left.learn(episode, Timings(film=film_s, total=seconds), kept_s=seconds)
        left.settled(episode)


def test_before_anything_has_ended_nothing_is_guessed() -> None:
    assert TimeLeft(plan(4, a=100), first_are_filmed(0)).estimate([], 1) is None


def test_films_at_the_beginning_do_not_make_the_rest_look_long() -> None:
    left = TimeLeft(plan(50, a=100), first_are_filmed(10))
    played(left, range(10), 10.0, film_s=9.0)
    assert left.estimate([], 1) == pytest.approx(40 * 1.0)  # by the mean of all it would be 400
    assert left.estimate([], 4) == pytest.approx(10.0)


def test_a_task_not_yet_played_is_guessed_by_its_step_limit() -> None:
    left = TimeLeft(plan(10, long=500, short=50), first_are_filmed(0))
    played(left, range(10), 5.0)
    assert left.estimate([], 1) == pytest.approx(10 * 0.5)


def test_films_to_come_are_counted() -> None:
    left = TimeLeft(plan(4, a=100, b=100), first_are_filmed(2))
    played(left, range(2), 10.0, film_s=8.0)
    played(left, range(2, 4), 2.0)
    played(left, range(6, 8), 3.0)  # of b, without film
    assert left.estimate([], 1) == pytest.approx(2 * (3.0 + 8.0))


def test_what_has_been_played_of_an_episode_is_not_to_come() -> None:
    left = TimeLeft(plan(4, a=100), first_are_filmed(0))
    played(left, range(2), 10.0)
    assert left.estimate([Playing(2, 4.0, 40), Playing(3, 6.0, 60)], 2) == pytest.approx(6.0)


def test_an_episode_longer_than_usual_goes_on_as_long_again_or_to_its_step_limit() -> None:
    left = TimeLeft(plan(2, a=500), first_are_filmed(0))
    played(left, range(1), 1.0)
    assert left.estimate([Playing(1, 4.0, 200)], 1) == pytest.approx(4.0)
    assert left.estimate([Playing(1, 8.0, 400)], 1) == pytest.approx(2.0)


def test_a_scene_is_built_once_for_each_task_and_not_for_each_episode() -> None:
    left = TimeLeft(plan(10, a=100, b=100), first_are_filmed(0))
    left.learn(0, Timings(total=1.0), kept_s=6.0)
    left.settled(0)
    assert left.estimate([], 1) == pytest.approx(9 * 1.0 + 5.0 + 10 * 1.0)
