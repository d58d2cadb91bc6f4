"""Benchmarks that break one promise each, for the tests of check-env. ``--env.fault`` names the promise."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robotrials.benchmarks.base import Env, Observation, StepOutcome
from robotrials.errors import ContractError, NoPictureError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from tests.toy import Toy, ToyConfig, ToyEnv


class OutOfReach(Exception):  # noqa: N818  as a simulator calls it
    """What a benchmark means as a failure."""


_LEAK: list[bytearray] = []
_ENTROPY = random.SystemRandom()


@dataclass(frozen=True)
class FaultyConfig(ToyConfig):
    fault: str = option("", "the promise to break; empty: none")


class Faulty(Toy):
    """``tests.benchmarks.broken:Faulty``."""

    Config = FaultyConfig
    calls = 0

    def tasks(self) -> list[TaskSpec]:
        fault = self.config.fault
        tasks = super().tasks()
        if fault == "tasks":
            Faulty.calls += 1
            return [replace(task, max_steps=50 + Faulty.calls) for task in tasks]
        if fault in ("picture", "no picture", "no picture by design"):
            return [replace(task, record_key=None) for task in tasks]
        if fault == "instruction":
            return [replace(task, instruction=" ") for task in tasks]
        return tasks

    def make(self, task: TaskSpec) -> Env:
        if self.config.fault == "clean output":
            sys.stderr.write("EGL: cannot be torn down\n")
        return FaultyEnv(self.config)


class FaultyEnv(ToyEnv):
    config: FaultyConfig
    built = 0

    def __init__(self, config: FaultyConfig) -> None:
        super().__init__(config)
        self.fault = config.fault
        self.episodes = self.closed = 0
        self.observes = False
        FaultyEnv.built += 1
        self.buffer = np.zeros(2, np.float32)

    def reset(self, episode: EpisodeSpec) -> None:
        super().reset(episode)
        if self.fault == "children":
            subprocess.Popen(["sleep", "60"])
        self.episodes += 1
        if self.fault == "same seed":
            self.goal += _ENTROPY.random()
        if self.fault == "own seed":
            self.goal, self.slip = 5.0, np.random.default_rng(0)
        if self.fault == "other episodes" and self.episodes > 1:
            self.position = 1e-3 * (episode.seed - self.before)
        if self.fault == "rebuilt" and FaultyEnv.built > 1:
            self.goal += 0.5
        if self.fault == "fresh process":
            self.goal += os.getpid() / 1e6
        if self.fault == "memory":
            _LEAK.append(bytearray(b"x" * 1_000_000))
        if self.fault == "crash":
            os.abort()
        self.before = episode.seed

    def observe(self, cameras: Sequence[str]) -> Observation:
        if self.fault == "looking":
            self.position += 1e-6
        self.observes = True
        seen = super().observe(cameras)
        self.observes = False
        if self.fault == "shapes":
            seen["observation.state"] = np.zeros(3, np.float32)
        if self.fault == "shapes later" and self._step > 4:
            seen["observation.state"] = seen["observation.state"].astype(np.float64)  # type: ignore[union-attr]
        if self.fault == "nan" and self._step > 4:
            seen["observation.state"] = np.full(2, np.nan, np.float32)
        if self.fault == "infinity":
            seen["observation.state"] = np.array([np.inf, self.goal], np.float32)
        if self.fault == "nan at once":
            seen["observation.state"] = np.array([np.nan, self.goal], np.float32)
        if self.fault == "own arrays":
            self.buffer[:] = (self.position, self.goal)
            seen["observation.state"] = self.buffer
        return seen

    def step(self, action: np.ndarray) -> StepOutcome:
        outcome = super().step(action)
        if self.fault == "success" and self._step > 7:
            return outcome._replace(success=None)
        if self.fault == "share":
            return outcome._replace(success=0.3)  # type: ignore[arg-type]
        if self.fault == "start" or (self.fault == "ends soon" and self._step == 2):
            return outcome._replace(terminated=True, success=False)
        if self.fault == "solved at once":
            return outcome._replace(terminated=True, success=True)
        if self.fault == "lost":
            return outcome._replace(terminated=self._step > 5, success=self._step == 3)
        if self.fault == "ending" and self._step == 6:
            self.position, self._step = 0.0, 0
            return outcome._replace(terminated=True, success=False)
        if self.fault == "raises" and self._step == 3:
            raise OutOfReach("no path to the target")
        if self.fault == "step limit" and self._step == 9:
            return outcome._replace(terminated=False, truncated=True)
        return outcome

    def render(self) -> np.ndarray:
        if self.fault.startswith("no picture") and not self.observes:
            raise NoPictureError("Faulty draws nothing", by_design=self.fault.endswith("by design"))
        picture = super().render()
        return np.zeros_like(picture) if self.fault == "picture" else picture

    def close(self) -> None:
        self.closed += 1
        if self.fault == "leaves":
            os._exit(0)
        if self.fault == "close" and self.closed > 1:
            raise ContractError("the context was freed already")
