"""ALOHA (gym-aloha 0.1.5): two ViperX arms insert a peg into a socket, or hand a cube over, in MuJoCo.

Scenes, states, rewards and success are those of ``gym.make("gym_aloha/...", obs_type="pixels_agent_pos")``, which
lerobot-eval (LeRobot 0.6.1) runs, bit for bit. That environment draws three cameras at every step and hands out one;
here a camera is drawn when it is asked for.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotrials.benchmarks.base import MAX_SIDE, Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.environments.installation import GL_LIBRARIES, Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import nearest
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

IMAGES, STATE = "observation.images.", "observation.state"
CONTROL_HZ = 50.0
CAMERAS = ("top", "angle", "front_close", "left_pillar", "right_pillar")
VIDEO_CAMERA = "top"
DIM = 14  # of state and action: six joints and a gripper, left arm first

# The simulator's name of each task, and the sentence of the dataset lerobot/aloha_sim_<task>_human. lerobot-eval tells
# a policy nothing here (""), as for PushT.
TASKS = {
    "AlohaInsertion-v0": ("insertion", "Insert the peg into the socket."),
    "AlohaTransferCube-v0": (
        "transfer_cube",
        "Pick up the cube with the right arm and transfer it to the left arm.",
    ),
}


@dataclass(frozen=True)
class AlohaConfig(BenchmarkConfig):
    """``--env.*`` of ALOHA."""

    task: str = option("AlohaInsertion-v0", f"tasks, comma-separated: {', '.join(TASKS)}; or all")
    obs_type: str = option("pixels_agent_pos", "what is observed", choices=("pixels", "pixels_agent_pos", "agent_pos"))
    camera_names: tuple[str, ...] = option(("top",), f"cameras observed, of {', '.join(CAMERAS)}; LeRobot's is top")
    observation_width: int = option(640, "width of the images in pixels", least=1, most=MAX_SIDE)
    observation_height: int = option(480, "height of the images in pixels", least=1, most=MAX_SIDE)
    episode_length: int = option(400, "step limit of an episode", least=1)
    fps: int = option(50, "control rate in Hz; taken for lerobot-eval's sake, the simulator has this one only", least=1)


class Aloha(Benchmark):
    """``--env.type=aloha``."""

    name = "aloha"
    extra = "aloha"
    experts = False
    modules = ("gym_aloha", "dm_control", "mujoco")
    packages = ("gym-aloha", "dm-control", "mujoco", "gymnasium", "numpy")
    Config = AlohaConfig
    uses_gl = True
    installation = Installation(
        requirements=("gym-aloha==0.1.5", "dm-control==1.0.41", "mujoco==3.8.1", "gymnasium==1.4.0", "numpy==2.4.6"),
        python=">=3.11,<3.13",
        system=GL_LIBRARIES,
    )

    def __init__(self, config: AlohaConfig) -> None:
        super().__init__(config)
        config.require_fps(CONTROL_HZ, "aloha")
        for camera in config.camera_names:
            if camera not in CAMERAS:
                raise ConfigError(
                    f"--env.camera_names={camera}: aloha has {', '.join(CAMERAS)}{nearest(camera, CAMERAS)}"
                )

    def tasks(self) -> list[TaskSpec]:
        asked = [name.strip() for name in self.config.task.split(",") if name.strip()]
        if not asked:
            raise ConfigError(f"--env.task is needed: {', '.join(TASKS)}")
        return [self._spec(name) for part in asked for name in (TASKS if part == "all" else (part,))]

    def make(self, task: TaskSpec) -> AlohaEnv:
        return AlohaEnv(task, self.config)

    def _spec(self, name: str) -> TaskSpec:
        if name not in TASKS:
            raise ConfigError(f"aloha has no task {name}{nearest(name, TASKS)}; it has {', '.join(TASKS)}, or all")
        config = self.config
        observations: dict[str, Feature] = {}
        if config.obs_type.startswith("pixels"):
            image = Feature((config.observation_height, config.observation_width, 3), "uint8")
            observations.update({IMAGES + camera: image for camera in config.camera_names})
        if config.obs_type.endswith("agent_pos"):
            observations[STATE] = Feature((DIM,))
        video = IMAGES + VIDEO_CAMERA
        return TaskSpec(
            suite=name,
            name=name,
            id=0,
            instruction=TASKS[name][1],
            max_steps=config.episode_length,
            control_hz=CONTROL_HZ,
            observations=observations,
            # As gym-aloha declares it. Joints are in radians and may leave it, as in its datasets; nothing clips.
            action=ActionSpec(DIM, (-1.0,) * DIM, (1.0,) * DIM),
            record_key=video if video in observations else None,
        )


class AlohaEnv(Env):
    """One ALOHA scene. No rendering context is made before the first picture is asked for."""

    def __init__(self, task: TaskSpec, config: AlohaConfig) -> None:
        from gym_aloha.env import AlohaEnv as Simulator

        self._task = task
        self._size = {"height": config.observation_height, "width": config.observation_width}
        self._sim = Simulator(TASKS[task.name][0], obs_type="pixels_agent_pos")
        inner = self._sim._env
        # The place where three cameras are drawn at every step and reset.
        inner.task.get_observation = inner.task.get_qpos
        self._sim._format_raw_obs = lambda qpos: qpos
        self._qpos = np.zeros(DIM)
        # The renderer's frame buffer is made for the model's largest picture, 640 x 480 as it comes.
        inner.physics.model.vis.global_.offwidth = config.observation_width
        inner.physics.model.vis.global_.offheight = config.observation_height

    def reset(self, episode: EpisodeSpec) -> None:
        self._qpos, _ = self._sim.reset(seed=episode.seed)

    def observe(self, cameras: Sequence[str]) -> Observation:
        """See ``Env.observe``: joints and grippers (14,), left arm first, and the images asked for."""
        observation: Observation = {"task": self._task.instruction}
        if STATE in self._task.observations:
            observation[STATE] = self._qpos.astype(np.float32)
        for key in cameras:
            if key not in self._task.images:
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(self._task.images)}")
            observation[key] = self._draw(key.removeprefix(IMAGES))
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply (14,): joint angles in radians and gripper openings (0 closed, 1 open). Success ends the episode."""
        # lerobot-eval steps with float32: the same here, in whatever precision an action comes.
        self._qpos, reward, terminated, truncated, info = self._sim.step(np.asarray(action, dtype=np.float32))
        flag = info.get("is_success")
        return StepOutcome(float(reward), bool(terminated), bool(truncated), None if flag is None else bool(flag))

    def render(self) -> np.ndarray:
        return self._draw(VIDEO_CAMERA)

    def _draw(self, camera: str) -> np.ndarray:
        picture: np.ndarray = self._sim._env.physics.render(**self._size, camera_id=camera)
        return picture

    def close(self) -> None:
        if self._sim is None:
            return
        # AlohaEnv.close() does nothing, and leaves its context (130 MB) to the garbage collector, which at the end of
        # the process comes too late: dm_control's render thread is gone by then, and it prints tracebacks.
        self._sim._env.physics.free()
        self._sim = None
        gc.collect()
