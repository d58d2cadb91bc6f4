"""A benchmark of your own, complete: push a puck along a line until it stops in the goal.

robotrials check-env examples/own_benchmark.py:Curling
robotrials eval --policy.type=random --env.type=examples/own_benchmark.py:Curling --env.friction=0.1
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotrials.benchmarks.base import Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

IMAGE, STATE = "observation.image", "observation.state"


@dataclass(frozen=True)
class CurlingConfig(BenchmarkConfig):
    task: str = option("curling", "the one task")
    friction: float = option(0.2, "part of its speed that the puck loses in a step")


class Curling(Benchmark):
    name, extra, modules, packages, Config = "curling", "curling", ("numpy",), ("numpy",), CurlingConfig

    def tasks(self) -> list[TaskSpec]:
        shown = {IMAGE: Feature((32, 128, 3), "uint8"), STATE: Feature((3,))}
        words, action = "Stop the puck in the goal.", ActionSpec(1, (-1.0,), (1.0,))
        return [TaskSpec("curling", "curling", 0, words, 100, 10.0, shown, action, record_key=IMAGE)]

    def make(self, task: TaskSpec) -> Env:
        return CurlingEnv(self.config.friction)


class CurlingEnv(Env):
    def __init__(self, friction: float) -> None:
        self.friction, self.position, self.speed, self.goal = friction, 0.0, 0.0, 0.0

    def reset(self, episode: EpisodeSpec) -> None:
        self.position, self.speed = 0.0, 0.0  # all of it: nothing of the episode before may stay
        self.goal = float(episode.rng("goal").uniform(2.0, 9.0))

    def observe(self, cameras: Sequence[str]) -> Observation:
        state = np.array([self.position, self.speed, self.goal], np.float32)
        pictures: Observation = {camera: self.render() for camera in cameras}
        return {STATE: state, "task": "Stop the puck in the goal.", **pictures}

    def step(self, action: np.ndarray) -> StepOutcome:
        self.speed = (1 - self.friction) * self.speed + 0.1 * float(np.clip(action[0], -1, 1))
        self.position += self.speed
        success = abs(self.position - self.goal) < 0.2 and abs(self.speed) < 0.05
        return StepOutcome(-abs(self.position - self.goal), success, False, success)

    def render(self) -> np.ndarray:
        picture = np.full((32, 128, 3), 230, np.uint8)
        for place, colour in ((self.goal, (40, 160, 60)), (self.position, (200, 40, 40))):
            column = int(np.clip(place * 12, 2, 125))
            picture[12:20, column - 2 : column + 3] = colour
        return picture

    def close(self) -> None: ...
