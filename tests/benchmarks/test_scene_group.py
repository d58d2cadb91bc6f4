"""Many scenes in one process, on a stand-in: a simulator that moves all its scenes whenever it steps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.base import Env, Observation, StepOutcome
from robotrials.benchmarks.scene_group import EnvGroup, OneScene, SceneGroup, SlotEnv, play_together
from robotrials.errors import ConfigError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import build_plan
from robotrials.results.record import EpisodeRecord, Timings
from robotrials.running.pulse import Pulse
from robotrials.running.rollout import Rollout
from tests import toy

TASK = toy.Toy(toy.ToyConfig(task="a")).tasks()[0]
PLAN = build_plan([TASK], 9, 1000)


class Drifting(SceneGroup):
    """Steps every scene whenever one is stepped: a scene that nobody plays goes on with zero actions."""

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self.envs = [toy.ToyEnv(toy.ToyConfig()) for _ in range(n_slots)]
        self.steps = 0
        self.sizes: list[int] = []
        self.threads: set[int] = set()
        self.fail_at = -1
        self._set: set[int] = set()

    def reset(self, slot: int, episode: EpisodeSpec) -> None:
        self.threads.add(threading.get_ident())
        self._set.add(slot)
        self.envs[slot].reset(episode)

    def observe(self, slot: int, cameras: Sequence[str]) -> Observation:
        self.threads.add(threading.get_ident())
        return self.envs[slot].observe(cameras)

    def step(self, actions: Mapping[int, np.ndarray]) -> dict[int, StepOutcome]:
        self.threads.add(threading.get_ident())
        self.steps += 1
        self.sizes.append(len(actions))
        if self.steps == self.fail_at:
            raise RuntimeError("the device is lost")
        outcomes = {slot: self.envs[slot].step(actions.get(slot, np.zeros(1))) for slot in self._set}
        return {slot: outcomes[slot] for slot in actions}

    def render(self, slot: int) -> np.ndarray:
        return self.envs[slot].render()

    def close(self) -> None:
        pass


def play(env: Env, episode: EpisodeSpec) -> EpisodeRecord:
    record = Rollout(env, toy.Seer(n=3), TASK, {}, Pulse()).run(episode, 1, "w", None)
    return replace(record, timings=Timings(), started_at=0.0)


def alone() -> list[EpisodeRecord]:
    return [play(toy.ToyEnv(toy.ToyConfig()), episode) for episode in PLAN]


def leases(n_players: int, records: dict[int, EpisodeRecord]) -> list[Callable[[SlotEnv], None]]:
    """Players that share one queue of episodes, as one worker with several leases."""
    pending, lock = list(PLAN), threading.Lock()

    def player(env: SlotEnv) -> None:
        while True:
            with lock:
                if not pending:
                    return
                episode = pending.pop(0)
            try:
                records[episode.id] = play(env, episode)
            finally:
                env.leave()

    return [player] * n_players


@pytest.mark.parametrize("group", [Drifting(4), EnvGroup([toy.ToyEnv(toy.ToyConfig()) for _ in range(4)])])
def test_each_episode_is_what_it_is_alone(group: SceneGroup) -> None:
    records: dict[int, EpisodeRecord] = {}
    play_together(group, leases(4, records))
    assert [records[k] for k in range(9)] == alone()


def test_the_group_steps_once_for_all_who_are_playing() -> None:
    group, records = Drifting(3), {}
    play_together(group, leases(3, records))
    played = sum(record.steps for record in records.values())
    assert sum(group.sizes) == played
    assert group.steps < played / 2
    assert max(group.sizes) == 3
    assert group.sizes[-1] == 1  # the last episode does not wait for slots that have left


def test_the_simulator_is_driven_by_the_thread_that_asked_for_it() -> None:
    group: Any = Drifting(2)
    play_together(group, leases(2, {}))
    assert group.threads == {threading.get_ident()}


def test_a_player_that_fails_holds_nobody_back_and_is_reported_at_the_end() -> None:
    group, records = Drifting(2), {}

    def fails(env: SlotEnv) -> None:
        env.reset(PLAN.episodes[8])
        env.step(np.zeros(1))
        raise ValueError("the policy has no answer")

    with pytest.raises(ValueError, match="the policy has no answer"):
        play_together(group, [fails, *leases(1, records)])
    assert [records[k] for k in range(9)] == alone()


def test_a_step_that_fails_is_an_error_of_every_episode_in_flight_and_of_all_that_follows() -> None:
    group = Drifting(3)
    group.fail_at = 2
    seen: list[str] = []

    def player(env: SlotEnv) -> None:
        for episode in PLAN.episodes[:2]:
            try:
                play(env, episode)
            except RuntimeError as error:
                seen.append(str(error))
            finally:
                env.leave()

    play_together(group, [player] * 3)
    assert seen == ["the device is lost"] * 6


def test_a_reset_that_fails_is_its_own_episodes_error() -> None:
    class Picky(Drifting):
        def reset(self, slot: int, episode: EpisodeSpec) -> None:
            if episode.id == 0:
                raise OSError("the scene file is missing")
            super().reset(slot, episode)

    records: dict[int, EpisodeRecord] = {}
    with pytest.raises(OSError, match="the scene file is missing"):
        play_together(Picky(2), leases(2, records))
    assert [records[k] for k in range(1, 9)] == alone()[1:]


def test_a_group_of_one_is_an_environment() -> None:
    assert [play(OneScene(Drifting(1)), episode) for episode in PLAN] == alone()


def test_more_players_than_slots_are_refused() -> None:
    with pytest.raises(ConfigError, match="3 players for a group of 2 scenes"):
        play_together(Drifting(2), leases(3, {}))
    with pytest.raises(ConfigError, match="at least one scene"):
        EnvGroup([])
