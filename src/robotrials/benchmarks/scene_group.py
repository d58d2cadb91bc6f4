"""Simulators that step many scenes at once (Isaac Lab, ManiSkill on a GPU), in terms of episodes that do not.

A ``SceneGroup`` has slots. Each holds one scene, takes one episode after the other, and is reset alone; ``step`` moves
all of them by one control step. What plays an episode knows ``Env`` only: ``running.stage`` gives each slot a player
with an ``Env`` of its own and brings their steps together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from robotrials.benchmarks.base import Benchmark, Env, Observation, StepOutcome
from robotrials.errors import ConfigError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec


class SceneGroup(ABC):
    """``n_slots`` scenes of one task in this process. One thread uses it, the one that made it."""

    n_slots: int

    @abstractmethod
    def reset(self, slot: int, episode: EpisodeSpec) -> None:
        """Set the scene of one slot; the others stay as they are."""

    @abstractmethod
    def observe(self, slot: int, cameras: Sequence[str]) -> Observation:
        """As ``Env.observe``. A group that draws all scenes in one go keeps the others' pictures until it steps."""

    @abstractmethod
    def step(self, actions: Mapping[int, np.ndarray]) -> dict[int, StepOutcome | Exception]:
        """One control step of all scenes, with the actions (D,) of some; the outcomes of those.

        An exception in the place of an outcome is the error of that scene alone; one that is raised is everybody's, and
        all scenes are built anew. Scenes without an action may stand still or drift: nobody is playing there. None may
        be reset by this.
        """

    @abstractmethod
    def render(self, slot: int) -> np.ndarray:
        """As ``Env.render``."""

    @abstractmethod
    def close(self) -> None:
        """As ``Env.close``."""


class ManyScenes(Benchmark):
    """A benchmark with an option ``num_envs``: its simulator steps so many scenes at once in each worker's process.
    ``make`` gives a group of one as an ``Env``."""

    exact_together: ClassVar[bool] = False
    """An episode comes out the same in any slot and beside any others. Where it does not, which is the rule on a GPU,
    a run with several scenes in a process must be given ``--eval.exact=false``."""

    @property
    def scenes(self) -> int:
        """Slots that its options ask for in each process.

        Raises:
            ConfigError: fewer than one.
        """
        self.config.require_at_least_one("num_envs")
        number: int = self.config.num_envs
        return number

    @abstractmethod
    def make_group(self, task: TaskSpec, n_slots: int) -> SceneGroup:
        """Build the simulator of one task with ``n_slots`` scenes in this process."""

    def make(self, task: TaskSpec) -> Env:
        return OneScene(self.make_group(task, 1))


def scenes_of(benchmark: Benchmark) -> int:
    """Scenes in each worker's process."""
    return benchmark.scenes if isinstance(benchmark, ManyScenes) else 1


class EnvGroup(SceneGroup):
    """Scenes that do not know of each other, stepped in turn: any benchmark as a group.

    It saves what one process costs beside its scenes: imports of a simulator and of torch, some hundreds of megabytes.
    """

    def __init__(self, envs: Sequence[Env]) -> None:
        if not envs:
            raise ConfigError("a group has at least one scene")
        self._envs = tuple(envs)
        self.n_slots = len(self._envs)

    def reset(self, slot: int, episode: EpisodeSpec) -> None:
        self._envs[slot].reset(episode)

    def observe(self, slot: int, cameras: Sequence[str]) -> Observation:
        return self._envs[slot].observe(cameras)

    def step(self, actions: Mapping[int, np.ndarray]) -> dict[int, StepOutcome | Exception]:
        return {slot: self._step(slot, actions[slot]) for slot in sorted(actions)}

    def _step(self, slot: int, action: np.ndarray) -> StepOutcome | Exception:
        try:
            return self._envs[slot].step(action)
        except Exception as error:  # noqa: BLE001  a simulator may raise anything; it is raised where that scene is played
            return error

    def render(self, slot: int) -> np.ndarray:
        return self._envs[slot].render()

    def close(self) -> None:
        for env in self._envs:
            env.close()


class OneScene(Env):
    """A group of one slot, as the environment that it is."""

    def __init__(self, group: SceneGroup) -> None:
        self.group = group

    def reset(self, episode: EpisodeSpec) -> None:
        self.group.reset(0, episode)

    def observe(self, cameras: Sequence[str]) -> Observation:
        return self.group.observe(0, cameras)

    def step(self, action: np.ndarray) -> StepOutcome:
        outcome = self.group.step({0: action})[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def render(self) -> np.ndarray:
        return self.group.render(0)

    def close(self) -> None:
        self.group.close()
