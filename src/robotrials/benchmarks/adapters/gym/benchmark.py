"""Any Gymnasium environment: ``--env.type=gym --env.id=FetchReach-v4 --env.imports=gymnasium_robotics``.

Its spaces become LeRobot's names (``gym_layout``), its info or its rewards say what success is (``gym_success``), and
its shapes are asked once of the interpreter that has it (``gym_probe``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robotrials.benchmarks.adapters.gym.env import GymEnv, Recipe
from robotrials.benchmarks.adapters.gym.layout import IMAGE
from robotrials.benchmarks.adapters.gym.probe import ProbedEnv, look_at
from robotrials.benchmarks.adapters.gym.success import SUCCESS_HELP, parse
from robotrials.benchmarks.base import Benchmark, BenchmarkConfig, one_or_each
from robotrials.environments.installation import Installation
from robotrials.errors import ConfigError
from robotrials.plan.config import option
from robotrials.plan.task import TaskSpec

FALLBACK_HZ = 30.0
"""Control rate of an environment whose metadata names no ``render_fps``: only videos and datasets are timed by it."""


@dataclass(frozen=True)
class GymConfig(BenchmarkConfig):
    """``--env.*`` of a Gymnasium environment."""

    task: str = option("", "another way to write --env.id")
    id: str = option("", "registered ids, comma-separated: FetchReach-v4, gym_pusht/PushT-v0, module:Name-v0")
    imports: tuple[str, ...] = option((), "modules to import first, because they register the ids")
    kwargs: Mapping[str, Any] = option({}, "arguments of gymnasium.make, as {a: b}")
    success: str = option("", SUCCESS_HELP)
    end_on_success: bool = option(False, "end an episode at its first success, even if the environment goes on")
    state: tuple[str, ...] = option((), "entries joined to observation.state, a/b for b within a; default: all vectors")
    environment_state: tuple[str, ...] = option((), "entries joined to observation.environment_state")
    ignore: tuple[str, ...] = option((), "entries that are left out, such as a depth camera; a/b for b within a")
    image_from_render: bool = option(False, "observe what render() draws as observation.image, when it is looked at")
    max_steps: int = option(0, "step limit of an episode; 0: the one the id is registered with", least=0)
    instruction: str = option("", "the sentence that a language-conditioned policy is told")
    fps: float = option(0.0, "control rate in Hz; 0: the environment's render_fps", least=0)
    rebuild: bool = option(False, "make the environment anew for every episode")


class Gym(Benchmark):
    """``--env.type=gym``."""

    name = "gym"
    extra = "gym"
    lists_tasks = False
    modules = ("gymnasium",)
    # Those that are installed enter a run's identity; the package that an environment itself is from is in its task.
    packages = ("gymnasium", "gymnasium-robotics", "mujoco", "pybullet", "pymunk", "box2d", "numpy")
    Config = GymConfig
    uses_gl = True
    says_where_success_is = True
    installation = Installation(requirements=("gymnasium==1.4.0",))

    def __init__(self, config: GymConfig) -> None:
        super().__init__(config)
        self._rule = parse(config.success)

    def tasks(self) -> list[TaskSpec]:
        """As ``Benchmark.tasks``; the environment is built, once, in a process of its own.

        Raises:
            ConfigError: no id, and what ``look_at`` raises.
        """
        return [self._spec(name, look) for name, look in self._looks().items()]

    def code_version(self) -> str:
        return one_or_each({name: look.source for name, look in self._looks().items()})

    def _looks(self) -> dict[str, ProbedEnv]:
        ids = [name.strip() for name in (self.config.id or self.config.task).split(",") if name.strip()]
        if not ids:
            raise ConfigError("--env.id is needed: a registered Gymnasium id such as FetchReach-v4, or module:Name-v0")
        if len(set(ids)) < len(ids):
            raise ConfigError(f"--env.id={','.join(ids)} names an id twice")
        return {name: look_at(self._recipe(name), self.config.success, self.python) for name in ids}

    def make(self, task: TaskSpec) -> GymEnv:
        rule = self._rule or parse(task.extra["success"])
        assert rule is not None
        return GymEnv(task, self._recipe(task.name), rule, self.config.rebuild, self.config.end_on_success)

    def _recipe(self, name: str) -> Recipe:
        config = self.config
        return Recipe(
            id=name,
            imports=config.imports,
            kwargs=config.kwargs,
            max_steps=config.max_steps,
            state=config.state,
            environment_state=config.environment_state,
            draws=config.image_from_render,
            ignore=config.ignore,
        )

    def _spec(self, name: str, look: ProbedEnv) -> TaskSpec:
        config = self.config
        steps = config.max_steps or look.max_steps
        if not steps:
            raise ConfigError(f"--env.id={name} is registered without a step limit: give --env.max_steps")
        video = IMAGE if config.image_from_render else None
        if not look.draws:  # the video shows what is observed, if anything
            shown = look.observations.items()
            video = next((key for key, f in shown if f.is_image and f.shape[2] == 3), None)
        return TaskSpec(
            suite=name,
            name=name,
            id=0,
            instruction=config.instruction,
            max_steps=steps,
            control_hz=config.fps or look.fps or FALLBACK_HZ,
            observations=look.observations,
            action=look.action,
            record_key=video,
            extra={"success": look.success},
        )
