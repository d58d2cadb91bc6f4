"""RoboMME: sixteen tasks that need memory, in four suites. Of the real simulator two tasks were reset and stepped here,
with ManiSkill 3.0.1 in the place of its fork; no whole episode was played.

Written to the calls of ``robomme.env_record_wrapper.BenchmarkEnvBuilder`` as LeRobot 0.6.1 makes them
(``lerobot/envs/robomme.py``). An episode of RoboMME is one of a stored set: here its number is the episode's seed
modulo the size of the set, so that other seeds are other scenes (lerobot-eval ignores the seed and repeats episodes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.environments.installation import Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import nearest
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

SUITES = {
    "counting": ("BinFill", "PickXtimes", "SwingXtimes", "StopCube"),
    "permanence": ("VideoUnmask", "VideoUnmaskSwap", "ButtonUnmask", "ButtonUnmaskSwap"),
    "reference": ("PickHighlight", "VideoRepick", "VideoPlaceButton", "VideoPlaceOrder"),
    "imitation": ("MoveCube", "InsertPeg", "PatternLock", "RouteStick"),
}
TASKS = tuple(task for tasks in SUITES.values() for task in tasks)

STATE = "observation.state"
_CAMERAS = {"observation.images.image": "front_rgb_list", "observation.images.wrist_image": "wrist_rgb_list"}
_ACTIONS = {"joint_angle": 8, "ee_pose": 7}
_SIDE = 256
CONTROL_HZ = 10.0


@dataclass(frozen=True)
class RoboMMEConfig(BenchmarkConfig):
    """``--env.*`` of RoboMME."""

    task: str = option(
        "PickXtimes", "tasks and suites, comma-separated: counting, permanence, reference, imitation, all"
    )
    action_space: str = option("joint_angle", "joint_angle (8 numbers) or ee_pose (7)", choices=tuple(_ACTIONS))
    dataset: str = option("test", "RoboMME's set of episodes")
    n_stored: int = option(50, "episodes of each task in that set; episode seed modulo it is the one played", least=1)
    episode_length: int = option(300, "step limit of an episode", least=1)


class RoboMME(Benchmark):
    """``--env.type=robomme``."""

    name = "robomme"
    extra = "robomme"
    experts = False
    modules = ("robomme",)
    packages = ("robomme", "mani-skill", "sapien", "gymnasium", "numpy")
    Config = RoboMMEConfig
    installation = Installation(
        python=">=3.10,<3.12",
        unavailable=(
            "no package index holds it: install the repository RoboMME/robomme_benchmark (it pins gymnasium 0.29 and "
            "numpy 1.26) and robotrials in an environment of their own, and name that: --env.python"
        ),
    )

    def tasks(self) -> list[TaskSpec]:
        asked = [name for part in self.config.task.split(",") if (name := part.strip())]
        return [self._spec(suite, i, task) for suite in asked for i, task in enumerate(_members(suite))]

    def make(self, task: TaskSpec) -> RoboMMEEnv:
        return RoboMMEEnv(task, self.config)

    def _spec(self, suite: str, position: int, name: str) -> TaskSpec:
        dim = _ACTIONS[self.config.action_space]
        return TaskSpec(
            suite=suite,
            name=name,
            id=position,
            instruction=_words(name),  # a policy is told the episode's own
            max_steps=self.config.episode_length,
            control_hz=CONTROL_HZ,
            observations={**{key: Feature((_SIDE, _SIDE, 3), "uint8") for key in _CAMERAS}, STATE: Feature((8,))},
            action=ActionSpec(dim, (-1.0,) * dim, (1.0,) * dim),
            record_key="observation.images.image",
        )


def _members(suite: str) -> tuple[str, ...]:
    if suite == "all":
        return TASKS
    if suite in SUITES:
        return SUITES[suite]
    if suite in TASKS:
        return (suite,)
    hint = nearest(suite, ["all", *SUITES, *TASKS])
    raise ConfigError(
        f"robomme has no task or suite {suite}{hint}; suites: {', '.join(SUITES)}; tasks: {', '.join(TASKS)}"
    )


class RoboMMEEnv(Env):
    """One task. Every episode has a simulator of its own, as RoboMME's builder makes it."""

    def __init__(self, task: TaskSpec, config: RoboMMEConfig) -> None:
        from robomme.env_record_wrapper import BenchmarkEnvBuilder

        self._task = task
        self._config = config
        self._builder = BenchmarkEnvBuilder(
            env_id=task.name,
            dataset=config.dataset,
            action_space=config.action_space,
            gui_render=False,
            max_steps=config.episode_length,
        )
        self._sim: Any = None
        self._raw: Mapping[str, Any] = {}
        self._goal = ""

    def reset(self, episode: EpisodeSpec) -> None:
        self.close()
        number = episode.seed % self._config.n_stored
        self._sim = self._builder.make_env_for_episode(episode_idx=number, max_steps=self._config.episode_length)
        self._raw, info = self._sim.reset()
        self._goal = _sentence(info.get("task_goal", ""))
        if not self._goal:
            raise ContractError(
                f"{self._task.name}: RoboMME named no task_goal for episode {number} of {self._config.dataset}"
            )

    def observe(self, cameras: Sequence[str]) -> Observation:
        """Seven joints and the gripper (8,), and images: RoboMME has drawn both with the step."""
        joints, gripper = (self._vector(key) for key in ("joint_state_list", "gripper_state_list"))
        observation: Observation = {STATE: np.concatenate([joints[:7], gripper[:1]]), "task": self._goal}
        for key in cameras:
            if key not in _CAMERAS:
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(_CAMERAS)}")
            observation[key] = self._picture(_CAMERAS[key])
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Success is RoboMME's status ``success``; no status is no signal.

        A pose out of the arm's reach ends the episode as a failure, without an observation: the last one stays.

        Raises:
            RuntimeError: its simulator failed, which RoboMME answers with the same status, and the exception's name.
        """
        raw, reward, terminated, truncated, info = self._sim.step(np.asarray(action, dtype=np.float32))
        status = info.get("status")
        if status == "error" and "exception_type" in info:
            raise RuntimeError(f"{self._task.name}: {info['exception_type']}: {info.get('error_message', '')}")
        self._raw = raw or self._raw
        success = None if status is None else status == "success"
        return StepOutcome(float(reward), bool(terminated), bool(truncated), success)

    def render(self) -> np.ndarray:
        return self._picture("front_rgb_list")

    def close(self) -> None:
        sim, self._sim = self._sim, None
        if sim is not None:
            sim.close()

    def _now(self, key: str) -> Any:
        """Observations hold all since the last step; the present is at the end."""
        value = self._raw[key]
        return value[-1] if isinstance(value, (list, tuple)) else value

    def _vector(self, key: str) -> np.ndarray:
        return np.asarray(_to_numpy(self._now(key)), dtype=np.float32).reshape(-1)

    def _picture(self, key: str) -> np.ndarray:
        return np.array(_to_numpy(self._now(key)), dtype=np.uint8, order="C")


def _to_numpy(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _sentence(goal: Any) -> str:
    """RoboMME gives one sentence, or a list of ways to say it."""
    if isinstance(goal, (list, tuple)):
        goal = goal[0] if goal else ""
    return str(goal)


def _words(name: str) -> str:
    """``CloseFridge`` as ``Close fridge.``"""
    return f"{re.sub(r'(?<=[a-z])(?=[A-Z])', ' ', name)}.".capitalize()
