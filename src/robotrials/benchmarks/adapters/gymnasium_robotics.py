"""Gymnasium-Robotics 1.4.2: the four tasks of the Fetch arm, as named tasks on the generic adapter (``gym_env``).

Scenes, rewards and success are those of ``gymnasium.make(NAME)`` after ``reset(seed=...)``. Success may come and go:
an episode succeeds if any of its steps does, as lerobot-eval counts, and runs to its step limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from robotrials.benchmarks.adapters.gym.env import GymEnv, Recipe
from robotrials.benchmarks.adapters.gym.layout import FULL_STATE, IMAGE, STATE
from robotrials.benchmarks.adapters.gym.success import SuccessRule
from robotrials.benchmarks.base import MAX_SIDE, Benchmark, BenchmarkConfig
from robotrials.environments.installation import GL_LIBRARIES, Installation
from robotrials.errors import ConfigError
from robotrials.plan.config import option
from robotrials.plan.options import nearest
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

CONTROL_HZ = 25.0

# Size of `observation`, and what is asked for: the package has no sentences.
TASKS = {
    "FetchReach-v4": (10, "Move the gripper to the target."),
    "FetchPush-v4": (25, "Push the block to the target."),
    "FetchSlide-v4": (25, "Hit the puck so that it slides to the target."),
    "FetchPickAndPlace-v4": (25, "Pick up the block and hold it at the target."),
}


@dataclass(frozen=True)
class GymnasiumRoboticsConfig(BenchmarkConfig):
    """``--env.*`` of Gymnasium-Robotics."""

    task: str = option("", f"tasks, comma-separated, or all: {', '.join(TASKS)}")
    obs_type: str = option("pixels_agent_pos", "what is observed", choices=("pixels", "pixels_agent_pos", "state"))
    observation_width: int = option(480, "width of observation.image in pixels", least=1, most=MAX_SIDE)
    observation_height: int = option(480, "height of observation.image in pixels", least=1, most=MAX_SIDE)
    reward_type: str = option("sparse", "reward of a step", choices=("sparse", "dense"))
    episode_length: int = option(50, "step limit of an episode", least=1)
    fps: int = option(25, "control rate in Hz; taken for lerobot-eval's sake, the simulator has this one only", least=1)


class GymnasiumRobotics(Benchmark):
    """``--env.type=gymnasium_robotics``."""

    name = "gymnasium_robotics"
    extra = "gymnasium-robotics"
    experts = False
    modules = ("gymnasium_robotics", "mujoco", "packaging")
    packages = ("gymnasium-robotics", "gymnasium", "mujoco", "numpy")
    Config = GymnasiumRoboticsConfig
    uses_gl = True
    installation = Installation(
        requirements=(
            "gymnasium-robotics==1.4.2",
            "gymnasium==1.4.0",
            "mujoco==3.8.1",
            "numpy==2.4.6",
            "imageio==2.38.1",
            "packaging",
        ),
        python=">=3.11",
        system=GL_LIBRARIES,
    )

    def __init__(self, config: GymnasiumRoboticsConfig) -> None:
        super().__init__(config)
        config.require_fps(CONTROL_HZ, "Fetch")

    @classmethod
    def conflict(cls, versions: Mapping[str, str]) -> str | None:
        """Measured: Fetch is built on MuJoCo 3.3.0, 3.8.1 and 3.10.0, not on 3.17.0 and 4.0.0."""
        parts = versions.get("mujoco", "").split(".")
        if len(parts) >= 2 and all(part.isdigit() for part in parts[:2]) and (int(parts[0]), int(parts[1])) >= (3, 17):
            return (
                f"gymnasium-robotics {versions.get('gymnasium-robotics')} cannot build Fetch on mujoco "
                f"{versions['mujoco']}: pip uninstall -y mujoco mujoco-core mujoco-studio && "
                'pip install "mujoco>=3.3.0,<3.11"'
            )
        return None

    def tasks(self) -> list[TaskSpec]:
        asked = [name.strip() for name in self.config.task.split(",") if name.strip()]
        if not asked:
            raise ConfigError(f"--env.task is needed: all, or {', '.join(TASKS)}")
        groups = {"fetch": tuple(TASKS), "all": tuple(TASKS)}
        return [self._spec(suite, i, name) for suite in asked for i, name in enumerate(groups.get(suite, (suite,)))]

    def make(self, task: TaskSpec) -> GymEnv:
        config = self.config
        recipe = Recipe(
            task.name,
            imports=("gymnasium_robotics",),
            kwargs={
                "width": config.observation_width,
                "height": config.observation_height,
                "reward_type": config.reward_type,
            },
            max_steps=config.episode_length,
            state=("observation",),
            environment_state=("desired_goal",),
            draws=True,
        )
        return GymEnv(task, recipe, SuccessRule(key="is_success"))

    def _spec(self, suite: str, position: int, name: str) -> TaskSpec:
        if name not in TASKS:
            hint = nearest(name, TASKS)
            raise ConfigError(f"gymnasium_robotics has no task {name}{hint}; it has fetch, {', '.join(TASKS)}")
        config, (size, instruction) = self.config, TASKS[name]
        features = {
            IMAGE: Feature((config.observation_height, config.observation_width, 3), "uint8"),
            STATE: Feature((size,)),
            FULL_STATE: Feature((3,)),
        }
        shown = {"pixels": (IMAGE,), "state": (STATE, FULL_STATE)}.get(config.obs_type, tuple(features))
        return TaskSpec(
            suite=suite,
            name=name,
            id=position,
            instruction=instruction,
            max_steps=config.episode_length,
            control_hz=CONTROL_HZ,
            observations={key: features[key] for key in shown},
            action=ActionSpec(4, (-1.0,) * 4, (1.0,) * 4),
            record_key=IMAGE if IMAGE in shown else None,
        )
