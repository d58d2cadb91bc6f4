"""Benchmarks whose tasks are known only by building them: Hub environments, and LeRobot's through a bridge.

The coordinator imports nobody's code: ``foreign_probe`` asks a process of the interpreter that workers will use.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.foreign.probe import ProbedTask, ask
from robotrials.benchmarks.adapters.foreign.readers import Reader
from robotrials.benchmarks.adapters.foreign.single_env import SingleEnv
from robotrials.benchmarks.adapters.gym.picture import DRAWS, picture_of
from robotrials.benchmarks.adapters.gym.success import SuccessRule, known_success, parse
from robotrials.benchmarks.base import Benchmark, Env, Observation, StepOutcome, one_or_each
from robotrials.benchmarks.quiet import keep_imports_quiet
from robotrials.errors import ConfigError, ContractError, NoPictureError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec

log = logging.getLogger(__name__)


class ForeignBenchmark(Benchmark):
    """Its ``Config`` has ``max_steps``, ``fps`` and ``rebuild`` besides its own options."""

    uses_gl = True
    says_where_success_is = True

    @property
    def success_rule(self) -> SuccessRule | None:
        """Where success is; None: under a known key of info.

        Raises:
            ConfigError: ``--env.success`` is none of its forms.
        """
        return parse(self.config.success)

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

    def _scenes(self) -> tuple[ProbedTask, ...]:
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
                    close_forgiving(environment)
        return SingleEnv(kept)

    def _spec(self, scene: ProbedTask) -> TaskSpec:
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
        self._rule = benchmark.success_rule
        self._raw: Any = None
        self._build()

    def _build(self) -> SingleEnv:
        self._sim = self._benchmark.single(self._task)
        self._reader = self._benchmark.reader(self._sim)
        self._fresh, self._draws = True, False
        return self._sim

    def reset(self, episode: EpisodeSpec) -> None:
        if self._benchmark.config.rebuild and not self._fresh:
            close_forgiving(self)
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
        step = sim.step(self._reader.action(action))
        self._raw = step.observation
        ends = (step.terminated, step.truncated)
        if self._rule is None:
            success = known_success(step.info, any(ends))
        else:
            success = self._rule.read(step.reward, *ends, step.info)
        return StepOutcome(step.reward, *ends, success)

    def render(self) -> np.ndarray:
        """What the environment draws; where it draws nothing, the first image that it observes.

        Raises:
            NoPictureError: it has neither.
        """
        sim = self._require()
        frame = sim.render()
        self._draws = self._draws or frame is not None
        if frame is None and self._draws and sim.shows_the_next:
            raise NoPictureError(f"{self._task.name} has reset itself, and would draw the next episode", by_design=True)
        if frame is None:
            seen = self._reader(self._raw, self._sentence, self._task.images[:1])
            frame = picture_of(next((seen[key] for key in self._task.images if key in seen), None), self._task.name)
        if frame is None:
            mode = sim.attribute("render_mode")
            why = f"render_mode is {mode}" if mode not in DRAWS else f"render() returns nothing, though it is {mode}"
            raise NoPictureError(
                f"{self._task.name} draws nothing ({why}) and observes no image", by_design=mode is None
            )
        return np.ascontiguousarray(frame)

    def close(self) -> None:
        sim, self._sim = self._sim, None
        if sim is not None:
            sim.close()

    def _require(self) -> SingleEnv:
        if self._sim is None:
            raise ContractError(f"{self._task.name} is closed")
        return self._sim


def close_forgiving(environment: Any) -> None:
    """Close one that is no longer needed; a failure is for the log, since no outcome depends on it."""
    try:
        environment.close()
    except Exception as error:  # noqa: BLE001  a simulator may raise anything on its way out
        log.warning("closing %s failed: %s: %s", type(environment).__name__, type(error).__name__, error)
