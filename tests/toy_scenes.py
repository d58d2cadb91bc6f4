"""The toy benchmark as a simulator that moves all its scenes whenever it steps, for tests of several in one process."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robotrials.benchmarks.base import Observation, StepOutcome
from robotrials.benchmarks.scene_group import ManyScenes, SceneGroup
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from tests import toy


class Drifting(SceneGroup):
    """A scene that nobody plays goes on with zero actions. All of it happens in one thread, or it is an error."""

    def __init__(self, n_slots: int, config: toy.ToyConfig | None = None) -> None:
        self.n_slots = n_slots
        self.envs = [toy.ToyEnv(config or toy.ToyConfig()) for _ in range(n_slots)]
        self.steps = 0
        self.sizes: list[int] = []
        self.fail_at = -1
        self.is_closed = False
        self._thread = threading.get_ident()
        self._set: set[int] = set()

    def reset(self, slot: int, episode: EpisodeSpec) -> None:
        self._check()
        self._set.add(slot)
        self.envs[slot].reset(episode)

    def observe(self, slot: int, cameras: Sequence[str]) -> Observation:
        self._check()
        return self.envs[slot].observe(cameras)

    def step(self, actions: Mapping[int, np.ndarray]) -> dict[int, StepOutcome | Exception]:
        self._check()
        self.steps += 1
        self.sizes.append(len(actions))
        if self.steps == self.fail_at:
            raise RuntimeError("the device is lost")
        outcomes = {slot: self.envs[slot].step(actions.get(slot, np.zeros(1))) for slot in sorted(self._set)}
        return {slot: outcomes[slot] for slot in actions}

    def render(self, slot: int) -> np.ndarray:
        self._check()
        return self.envs[slot].render()

    def close(self) -> None:
        self._check()
        self.is_closed = True

    def _check(self) -> None:
        assert threading.get_ident() == self._thread, "driven by another thread than the one that made it"


@dataclass(frozen=True)
class ToyScenesConfig(toy.ToyConfig):
    num_envs: int = option(3, "scenes in each process")


class ToyScenes(ManyScenes, toy.Toy):
    Config = ToyScenesConfig
    exact_together = True

    def make_group(self, task: TaskSpec, n_slots: int) -> Drifting:
        if f"build@{task.name}" in self.config.trouble.split("+"):
            raise OSError("the scene file is missing")
        return Drifting(n_slots, self.config)


class OnAGpu(ToyScenes):
    """As most are: not the same to the bit beside others."""

    exact_together = False
