"""Players that share one simulator: each episode is what it is alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from robotrials.benchmarks.base import Env
from robotrials.benchmarks.scene_group import EnvGroup, SceneGroup
from robotrials.control.heartbeat import Heartbeat
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import build_plan
from robotrials.plan.task import TaskSpec
from robotrials.results.record import EpisodeRecord, Timings
from robotrials.worker.many_scenes import SceneHost, SceneSlot
from robotrials.worker.rollout import Rollout
from tests import toy
from tests.toy_scenes import Drifting, ToyScenes, ToyScenesConfig


class Scenes(ToyScenes):
    """Keeps the groups it has made. ``fail_at``: the step at which the first one breaks."""

    def __init__(self, tasks: str = "a", fail_at: int = -1) -> None:
        super().__init__(ToyScenesConfig(task=tasks))
        self.fail_at = fail_at
        self.made: list[Drifting] = []

    def make_group(self, task: TaskSpec, n_slots: int) -> Drifting:
        group = super().make_group(task, n_slots)
        group.fail_at = self.fail_at if not self.made else -1
        self.made.append(group)
        return group


TASKS = {task.name: task for task in Scenes("a,b").tasks()}
PLAN = build_plan(Scenes("a").tasks(), 9, 1000)


def play(env: Env, episode: EpisodeSpec) -> EpisodeRecord:
    record = Rollout(env, toy.Seer(n=3), TASKS[episode.task], {}, Heartbeat(), False).run(episode, 1, "w", None)
    return replace(record, timings=Timings(), started_at=0.0)


def alone(episodes: tuple[EpisodeSpec, ...] = PLAN.episodes) -> list[EpisodeRecord]:
    return [play(toy.ToyEnv(toy.ToyConfig()), episode) for episode in episodes]


def sharing(
    benchmark: ToyScenes, records: dict[int, EpisodeRecord], episodes: tuple[EpisodeSpec, ...] = PLAN.episodes
) -> Callable[[SceneSlot], None]:
    """What every player does who takes the next episode of the same queue."""
    pending, lock = list(episodes), threading.Lock()

    def player(place: SceneSlot) -> None:
        while True:
            with lock:
                if not pending:
                    return
                episode = pending.pop(0)
            try:
                records[episode.id] = play(place.take(benchmark, TASKS[episode.task]), episode)
            finally:
                place.leave()

    return player


class Apart(ToyScenes):
    def make_group(self, task: TaskSpec, n_slots: int) -> SceneGroup:  # type: ignore[override]
        return EnvGroup([toy.ToyEnv(toy.ToyConfig()) for _ in range(n_slots)])


@pytest.mark.parametrize("benchmark", [Scenes(), Apart(ToyScenesConfig())], ids=["drifting", "apart"])
def test_each_episode_is_what_it_is_alone(benchmark: ToyScenes) -> None:
    records: dict[int, EpisodeRecord] = {}
    SceneHost(4).run([sharing(benchmark, records)] * 4)
    assert [records[k] for k in range(9)] == alone()


def test_the_simulator_steps_once_for_all_who_are_playing() -> None:
    benchmark, records = Scenes(), {}
    SceneHost(3).run([sharing(benchmark, records)] * 3)
    (group,) = benchmark.made
    played = sum(record.steps for record in records.values())
    assert sum(group.sizes) == played
    assert group.steps < played / 2
    assert max(group.sizes) == 3
    assert group.sizes[-1] == 1  # the last episode does not wait for slots that have left
    assert group.is_closed


def test_a_player_that_fails_holds_nobody_back_and_is_reported_at_the_end() -> None:
    benchmark, records = Scenes(), {}

    def fails(place: SceneSlot) -> None:
        env = place.take(benchmark, TASKS["a"])
        env.reset(PLAN.episodes[8])
        env.step(np.zeros(1))
        raise ValueError("the policy has no answer")

    with pytest.raises(ValueError, match="the policy has no answer"):
        SceneHost(2).run([fails, sharing(benchmark, records)])
    assert [records[k] for k in range(9)] == alone()


def test_a_step_that_fails_is_an_error_of_every_episode_in_flight_and_the_next_get_new_scenes() -> None:
    benchmark, records, seen = Scenes(fail_at=2), {}, []

    def player(place: SceneSlot) -> None:
        """Two episodes at a time in each slot; the first ones meet the failure."""
        for episode in PLAN.episodes[place.slot :: 3]:
            try:
                records[episode.id] = play(place.take(benchmark, TASKS["a"]), episode)
            except RuntimeError as error:
                seen.append(str(error))
            finally:
                place.leave()

    SceneHost(3).run([player] * 3)
    assert seen == ["the device is lost"] * 3
    assert [group.is_closed for group in benchmark.made] == [True, True]
    assert [records[k] for k in range(3, 9)] == alone()[3:]


def test_a_reset_that_fails_is_its_own_episodes_error() -> None:
    class Picky(Drifting):
        def reset(self, slot: int, episode: EpisodeSpec) -> None:
            if episode.id == 0:
                raise OSError("the scene file is missing")
            super().reset(slot, episode)

    class PickyScenes(ToyScenes):
        def make_group(self, task: TaskSpec, n_slots: int) -> Drifting:
            return Picky(n_slots)

    records: dict[int, EpisodeRecord] = {}
    with pytest.raises(OSError, match="the scene file is missing"):
        SceneHost(2).run([sharing(PickyScenes(ToyScenesConfig()), records)] * 2)
    assert [records[k] for k in range(1, 9)] == alone()[1:]


def test_another_tasks_scenes_are_built_when_nobody_plays_in_those_that_stand() -> None:
    benchmark, records = Scenes("a,b"), {}
    episodes = build_plan(benchmark.tasks(), 6, 1000).episodes
    mixed = tuple(episodes[k] for k in (0, 6, 1, 7, 8, 9, 2, 3, 10, 4, 5, 11))
    SceneHost(3).run([sharing(benchmark, records, mixed)] * 3)
    assert [records[k] for k in range(12)] == alone(episodes)
    assert all(group.is_closed for group in benchmark.made)
    assert 2 <= len(benchmark.made) <= 12


def test_scenes_that_cannot_be_built_are_the_error_of_who_wanted_them() -> None:
    benchmark, records = ToyScenes(ToyScenesConfig(task="a,b", trouble="build@b")), {}

    def wants_b(place: SceneSlot) -> None:
        place.take(benchmark, TASKS["b"])

    with pytest.raises(OSError, match="the scene file is missing"):
        SceneHost(2).run([wants_b, sharing(benchmark, records)])
    assert [records[k] for k in range(9)] == alone()


def test_who_waits_for_others_is_seen_to_wait_and_who_waits_for_nothing_is_not() -> None:
    """The watchdog counts these: a slot whose neighbours go on is no hang, one whose neighbour hangs is."""
    benchmark = Scenes("a,b")
    waited: list[float] = []
    quiet = threading.Event()

    def slow(place: SceneSlot) -> None:
        env = place.take(benchmark, TASKS["a"])
        env.reset(PLAN.episodes[0])
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            env.step(np.zeros(1))
            time.sleep(0.01)
        quiet.set()
        stood = len(waited)
        time.sleep(2.5)  # as a policy that hangs
        assert len(waited) - stood <= 1
        place.leave()

    def waits(place: SceneSlot) -> None:
        place.is_waiting = lambda: waited.append(time.monotonic())
        place.take(benchmark, TASKS["b"])
        assert quiet.is_set()
        place.leave()

    SceneHost(2).run([slow, waits])
    assert len(waited) >= 2
