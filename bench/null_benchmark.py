"""An environment whose step costs nothing, so that what is measured is the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotrials.benchmarks.base import Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session


@dataclass(frozen=True)
class NullConfig(BenchmarkConfig):
    task: str = option("null", "its one task")
    steps: int = option(1, "length of every episode")


class NullBenchmark(Benchmark):
    name = "null"
    extra = "dev"
    modules = ()
    packages = ()
    Config = NullConfig

    def tasks(self) -> list[TaskSpec]:
        action = ActionSpec(4, (-1.0,) * 4, (1.0,) * 4)
        return [TaskSpec("null", self.config.task, 0, "do nothing", self.config.steps, 80.0, {}, action)]

    def make(self, task: TaskSpec) -> Env:
        return NullEnv()


class NullEnv(Env):
    _outcome = StepOutcome(0.0, False, False, False)

    def reset(self, episode: EpisodeSpec) -> None:
        pass

    def observe(self, cameras: Sequence[str]) -> Observation:
        return {}

    def step(self, action: np.ndarray) -> StepOutcome:
        return self._outcome

    def render(self) -> np.ndarray:
        return np.zeros((16, 16, 3), np.uint8)

    def close(self) -> None:
        pass


class NullPolicy(Policy):
    def __init__(self, chunk: int = 1) -> None:
        self._chunk = chunk
        self._actions = np.zeros((1, chunk, 4))

    def spec(self) -> PolicySpec:
        return PolicySpec("null", n_action_steps=self._chunk)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        return self._actions
