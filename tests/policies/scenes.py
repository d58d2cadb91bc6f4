"""A task and episodes for tests of policies that need no simulator."""

from __future__ import annotations

from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, Feature, TaskSpec


def a_task(low: tuple[float, ...] = (-1.0, 0.0), high: tuple[float, ...] = (1.0, 10.0)) -> TaskSpec:
    return TaskSpec(
        suite="toys",
        name="spin",
        id=0,
        instruction="Spin the top",
        max_steps=60,
        control_hz=20.0,
        observations={"observation.state": Feature((3,)), "observation.image": Feature((4, 5, 3), "uint8")},
        action=ActionSpec(len(low), low, high),
    )


def an_episode(index: int = 0) -> EpisodeSpec:
    return EpisodeSpec(index, "toys", "spin", index, 1000 + index, None, 60)
