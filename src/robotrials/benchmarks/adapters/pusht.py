"""PushT (gym-pusht 0.1.8): push a T-shaped block onto its outline, in two dimensions.

Scenes, observations, rewards and success are those of ``gym.make("gym_pusht/PushT-v0", obs_type="pixels_agent_pos")``,
which is what lerobot-eval (LeRobot 0.6.1) runs. Here a picture is drawn only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.benchmarks.base import MAX_SIDE, Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.benchmarks.quiet import keep_imports_quiet
from robotrials.environments.installation import OPENCV_LIBRARIES, Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import nearest
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

TASK = "PushT-v0"
IMAGE, STATE, FULL_STATE = "observation.image", "observation.state", "observation.environment_state"
CONTROL_HZ = 10.0

# lerobot-eval tells a policy nothing here (""): the environment has neither `task_description` nor `task`. This is the
# sentence of the dataset lerobot/pusht, on which a language-conditioned policy was trained.
INSTRUCTION = "Push the T-shaped block onto the T-shaped target."

_SHOWN = {
    "pixels": (IMAGE,),
    "pixels_agent_pos": (IMAGE, STATE, FULL_STATE),
    "environment_state_agent_pos": (STATE, FULL_STATE),
}


@dataclass(frozen=True)
class PushTConfig(BenchmarkConfig):
    """``--env.*`` of PushT."""

    task: str = option(TASK, f"the one task, {TASK}")
    obs_type: str = option("pixels_agent_pos", "what is observed; agent_pos includes the block", choices=tuple(_SHOWN))
    observation_width: int = option(96, "width of observation.image in pixels", least=1, most=MAX_SIDE)
    observation_height: int = option(96, "height of observation.image in pixels", least=1, most=MAX_SIDE)
    visualization_width: int = option(384, "width of the video in pixels", least=1, most=MAX_SIDE)
    visualization_height: int = option(384, "height of the video in pixels", least=1, most=MAX_SIDE)
    episode_length: int = option(300, "step limit of an episode", least=1)
    fps: int = option(10, "control rate in Hz; taken for lerobot-eval's sake, the simulator has this one only", least=1)


class PushT(Benchmark):
    """``--env.type=pusht``."""

    name = "pusht"
    extra = "pusht"
    experts = False
    modules = ("gym_pusht", "pymunk")
    packages = (
        "gym-pusht",
        "pymunk",
        "gymnasium",
        "numpy",
        "shapely",
        "pygame",
        "opencv-python",
        "opencv-python-headless",
    )
    Config = PushTConfig
    installation = Installation(
        requirements=("gym-pusht==0.1.8", "pymunk==6.11.1", "gymnasium==1.4.0"), system=OPENCV_LIBRARIES
    )

    def __init__(self, config: PushTConfig) -> None:
        super().__init__(config)
        config.require_fps(CONTROL_HZ, "pusht")

    def tasks(self) -> list[TaskSpec]:
        config = self.config
        if config.task.strip() not in (TASK, "pusht", "all"):
            raise ConfigError(f"pusht has no task {config.task}{nearest(config.task, [TASK])}; it has {TASK}")
        features = {
            IMAGE: Feature((config.observation_height, config.observation_width, 3), "uint8"),
            STATE: Feature((2,)),
            FULL_STATE: Feature((16,)),
        }
        spec = TaskSpec(
            suite=self.name,
            name=TASK,
            id=0,
            instruction=INSTRUCTION,
            max_steps=config.episode_length,
            control_hz=CONTROL_HZ,
            observations={key: features[key] for key in _SHOWN[config.obs_type]},
            action=ActionSpec(2, (0.0, 0.0), (512.0, 512.0)),
            record_key=None,  # the video is larger, and marks the last action
        )
        return [spec]

    def make(self, task: TaskSpec) -> PushTEnv:
        return PushTEnv(task, self.config)


_BGRX = (0xFF0000, 0xFF00, 0xFF)
"""Masks of red, green and blue where a pixel lies in memory as blue, green, red and one idle byte."""


class PushTEnv(Env):
    """One PushT scene."""

    def __init__(self, task: TaskSpec, config: PushTConfig) -> None:
        keep_imports_quiet()
        import cv2
        from gym_pusht.envs.pusht import PushTEnv as Simulator
        from gym_pusht.envs.pusht import pymunk_to_shapely

        cv2.setNumThreads(1)  # it heeds no environment variable, and would start a thread per core for 96 x 96 pixels
        self._task = task
        self._sim = Simulator(
            obs_type="environment_state_agent_pos",  # one that draws nothing by itself
            render_mode="rgb_array",
            observation_width=config.observation_width,
            observation_height=config.observation_height,
            visualization_width=config.visualization_width,
            visualization_height=config.visualization_height,
        )
        self._sim._get_coverage = self._coverage
        self._drawn_slowly = self._sim._get_img
        self._sim._get_img = self._picture
        self._cv2 = cv2
        self._outline = pymunk_to_shapely
        self._goal: Any = None
        self._seen: dict[str, np.ndarray] = {}

    def reset(self, episode: EpisodeSpec) -> None:
        self._sim._last_action = None  # else the first picture of the video marks an action of the episode before
        self._goal = None
        self._seen, _ = self._sim.reset(seed=episode.seed)

    def _coverage(self) -> float:
        """The part of the goal that the block covers, as the simulator computes it, but the same in every process.

        The simulator takes the block's two bars from a set, hence in the order of their addresses, and that order
        decides the last bit of the sum. Here it is the order in which they are made; the goal, which stays where it
        is, is outlined once an episode.
        """
        sim = self._sim
        if self._goal is None:
            self._goal = self._outline(sim.get_goal_pose_body(sim.goal_pose), sim._block_shapes)
        covered = self._goal.intersection(self._outline(sim.block, sim._block_shapes)).area
        return float(covered / self._goal.area)

    def _picture(self, screen: Any, width: int, height: int, render_action: bool = False) -> np.ndarray:
        """The drawn plane as (height, width, 3), the last action marked if asked for: what the simulator makes of it,
        pixel for pixel, at a third of the cost, most of which went into copying bytes one by one."""
        if screen.get_bitsize() != 32 or screen.get_masks()[:3] != _BGRX:
            slow: np.ndarray = self._drawn_slowly(screen, width, height, render_action)
            return slow
        cv2 = self._cv2
        memory = np.asarray(screen.get_view("2")).T  # (H, W) uint32, the layout of the screen
        picture: np.ndarray = cv2.cvtColor(memory.view(np.uint8).reshape(*memory.shape, 4), cv2.COLOR_BGRA2RGB)
        picture = cv2.resize(picture, (width, height))
        if render_action and self._sim._last_action is not None:
            side = min(width, height)
            at = (np.array(self._sim._last_action) / 512 * [height, width]).astype(np.int32)
            cv2.drawMarker(picture, at, (255, 0, 0), cv2.MARKER_CROSS, int(8 / 96 * side), max(1, int(side / 96)))
        return picture

    def observe(self, cameras: Sequence[str]) -> Observation:
        """See ``Env.observe``: position of the agent (2,), corners of the block (16,), and the image if asked for."""
        observation: Observation = {"task": self._task.instruction}
        if STATE in self._task.observations:
            observation[STATE] = self._seen["agent_pos"].astype(np.float32)
            observation[FULL_STATE] = self._seen["environment_state"].astype(np.float32)
        for key in cameras:
            if key not in self._task.images:
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(self._task.images)}")
            observation[key] = self._sim._render()
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply (2,): where the agent shall go, in pixels of a 512 x 512 plane. Success ends the episode."""
        # lerobot-eval steps with float32: the same here, in whatever precision an action comes.
        self._seen, reward, terminated, truncated, info = self._sim.step(np.asarray(action, dtype=np.float32))
        flag = info.get("is_success")
        return StepOutcome(float(reward), bool(terminated), bool(truncated), None if flag is None else bool(flag))

    def render(self) -> np.ndarray:
        picture: np.ndarray = self._sim.render()
        return picture

    def close(self) -> None:
        self._sim.close()
