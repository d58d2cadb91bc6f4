"""Benchmarks whose tasks are known only by building them: Hub environments, and LeRobot's through a bridge.

The coordinator imports nobody's code: ``foreign_probe`` asks a process of the interpreter that workers will use.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from robotrials.benchmarks.base import Benchmark, Env, Observation, StepOutcome, one_or_each
from robotrials.benchmarks.foreign_probe import Scene, ask
from robotrials.benchmarks.gym_layout import Layout
from robotrials.benchmarks.gym_success import KNOWN_KEYS, truth
from robotrials.benchmarks.quiet import keep_imports_quiet
from robotrials.benchmarks.single_env import SingleEnv
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec

_BLANK = (240, 320, 3)


class Reader(Protocol):
    """From what one environment shows, and the sentence of its task, to an observation under LeRobot's names."""

    def __call__(self, raw: Any, sentence: str, cameras: Sequence[str] | None) -> Observation:
        """All vectors, and the images of ``cameras`` (None: all)."""

    def action(self, action: np.ndarray) -> np.ndarray:
        """The policy's action (A,) as the environment takes it."""


class PlainReader:
    """By the layout that ``--env.type=gym`` uses (``gym_layout``)."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def __call__(self, raw: Any, sentence: str, cameras: Sequence[str] | None) -> Observation:
        return self._layout.read(raw, tuple(self._layout.images) if cameras is None else cameras)

    def action(self, action: np.ndarray) -> np.ndarray:
        return action


class ForeignBenchmark(Benchmark):
    """Its ``Config`` has ``max_steps``, ``fps`` and ``rebuild`` besides its own options."""

    uses_gl = True

    @abstractmethod
    def build(self) -> Mapping[str, Mapping[int, Any]]:
        """Suite to task number to environment (one, or a vector of one), in the process that plays it."""

    @abstractmethod
    def reader(self, sim: SingleEnv) -> Reader:
        """How its observations are read."""

    @abstractmethod
    def source(self) -> str:
        """Version of what makes the environments, for a run's identity; a hash of code in no package is added to it."""

    def tasks(self) -> list[TaskSpec]:
        """As ``Benchmark.tasks``; every environment is built, once, in a process of its own.

        Raises:
            ConfigError: one cannot be built or says nothing of a step limit; the message is the environment's own.
        """
        return [self._spec(scene) for scene in self._scenes()]

    def code_version(self) -> str:
        return one_or_each({scene.name: scene.source for scene in self._scenes()})

    def _scenes(self) -> tuple[Scene, ...]:
        return ask(self.name, asdict(self.config), self.python)

    def make(self, task: TaskSpec) -> ForeignEnv:
        return ForeignEnv(self, task)

    def single(self, task: TaskSpec) -> SingleEnv:
        """Build, and keep the one environment of ``task``."""
        keep_imports_quiet()
        built = self.build()
        kept = built[task.suite][task.id]
        for suite, environments in built.items():
            for number, environment in environments.items():
                if (suite, number) != (task.suite, task.id):
                    environment.close()
        return SingleEnv(kept)

    def _spec(self, scene: Scene) -> TaskSpec:
        steps = self.config.max_steps or scene.max_steps
        if not steps:
            raise ConfigError(f"{scene.name} names no step limit: give --env.max_steps")
        return TaskSpec(
            suite=scene.suite,
            name=scene.name,
            id=scene.id,
            instruction=scene.instruction,
            max_steps=steps,
            control_hz=self.config.fps or scene.fps or 30.0,
            observations=scene.observations,
            action=scene.action,
            record_key=None,
        )


class ForeignEnv(Env):
    """One environment of a ``ForeignBenchmark``. All its cameras are drawn by its own ``step``: that is its nature."""

    def __init__(self, benchmark: ForeignBenchmark, task: TaskSpec) -> None:
        self._benchmark = benchmark
        self._task = task
        self._sim: SingleEnv | None = None
        self._raw: Any = None
        self._build()

    def _build(self) -> SingleEnv:
        self._sim = self._benchmark.single(self._task)
        self._reader = self._benchmark.reader(self._sim)
        self._fresh = True
        return self._sim

    def reset(self, episode: EpisodeSpec) -> None:
        if self._benchmark.config.rebuild and not self._fresh:
            self.close()
        sim = self._sim or self._build()
        self._fresh = False
        self._raw = sim.reset(episode.seed)
        self._sentence = sim.sentence()

    def observe(self, cameras: Sequence[str]) -> Observation:
        for key in cameras:
            if key not in self._task.images:
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(self._task.images)}")
        observation = self._reader(self._raw, self._sentence, cameras)
        observation["task"] = self._sentence or self._task.instruction
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        sim = self._require()
        self._raw, reward, terminated, truncated, info = sim.step(self._reader.action(action))
        return StepOutcome(reward, terminated, truncated, success_of(info, terminated or truncated))

    def render(self) -> np.ndarray:
        frame = self._require().render()
        if frame is None:
            seen = self._reader(self._raw, self._sentence, self._task.images[:1])
            drawn = [seen[key] for key in self._task.images if key in seen]
            frame = np.asarray(drawn[0])[..., :3] if drawn else np.zeros(_BLANK, np.uint8)
        return np.ascontiguousarray(frame)

    def close(self) -> None:
        sim, self._sim = self._sim, None
        if sim is not None:
            sim.close()

    def _require(self) -> SingleEnv:
        if self._sim is None:
            raise ContractError(f"{self._task.name} is closed")
        return self._sim


def success_of(info: Mapping[str, Any], ended: bool) -> bool | None:
    """What one step's info says: LeRobot's ``is_success``, in it or in its ``final_info``; other known names too.

    Before the end, saying nothing means not yet; at the end it is None: nobody said.

    Raises:
        ConfigError: what it says is no truth value.
    """
    final = info.get("final_info")
    for place in (info, final if isinstance(final, Mapping) else {}):
        for key in KNOWN_KEYS:
            if key in place:
                return truth(place[key], f"{key} in the environment's info")
    return None if ended else False
