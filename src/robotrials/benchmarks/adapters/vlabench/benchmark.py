"""VLABench: language-conditioned manipulation on dm_control. Not run here against the real simulator.

Written to the calls of ``VLABench.envs.load_env`` and its dm_control environment as LeRobot 0.6.1 makes them
(``lerobot/envs/vlabench.py``), with its keys, frames and gripper. VLABench draws layouts from global generators while
it builds, so every episode builds its scene anew, with these generators seeded from the episode: the scene depends on
the seed alone, where lerobot-eval takes whatever was built first, and the system's entropy when that diverges.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.vlabench.tasks import SUITES, TASKS
from robotrials.benchmarks.base import MAX_SIDE, Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.environments.installation import GL_LIBRARIES, Installation
from robotrials.errors import ConfigError, ContractError, RobotrialsError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import nearest
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

# In the order in which VLABench stacks its pictures.
CAMERAS = ("observation.images.image", "observation.images.second_image", "observation.images.wrist_image")
STATE = "observation.state"
CONTROL_HZ = 10.0

_FINGER_OPEN = 0.04
"""Position of a finger of the open gripper, in metres; 0 is closed."""

_BUILDS = 20
"""So many layouts of one episode are tried: of some, MuJoCo's integrator diverges while they settle."""


@dataclass(frozen=True)
class VLABenchConfig(BenchmarkConfig):
    """``--env.*`` of VLABench."""

    task: str = option("", "tasks and suites, comma-separated: select_fruit, primitive, composite, all")
    robot: str = option("franka", "VLABench's name of the robot")
    observation_width: int = option(480, "width of the images in pixels", least=1, most=MAX_SIDE)
    observation_height: int = option(480, "height of the images in pixels", least=1, most=MAX_SIDE)
    episode_length: int = option(500, "step limit of an episode", least=1)


class VLABench(Benchmark):
    """``--env.type=vlabench``."""

    name = "vlabench"
    extra = "vlabench"
    experts = False
    modules = ("VLABench", "dm_control", "scipy")
    packages = ("VLABench", "dm-control", "mujoco", "scipy", "numpy")
    Config = VLABenchConfig
    uses_gl = True
    installation = Installation(
        system=GL_LIBRARIES,
        unavailable=(
            "no package index holds it: install the repository OpenMOSS/VLABench, download its assets, install "
            "robotrials beside it, and name that interpreter: --env.python"
        ),
    )

    def tasks(self) -> list[TaskSpec]:
        asked = [name for part in self.config.task.split(",") if (name := part.strip())]
        if not asked:
            raise ConfigError(f"--env.task is needed: tasks such as select_fruit, or suites: {', '.join(SUITES)}")
        return [self._spec(suite, i, name) for suite in asked for i, name in enumerate(_members(suite))]

    def make(self, task: TaskSpec) -> VLABenchEnv:
        return VLABenchEnv(task, self.config)

    def _spec(self, suite: str, position: int, name: str) -> TaskSpec:
        image = Feature((self.config.observation_height, self.config.observation_width, 3), "uint8")
        return TaskSpec(
            suite=suite,
            name=name,
            id=position,
            instruction=f"{name.replace('_', ' ')}.".capitalize(),  # a policy is told the scene's own
            max_steps=self.config.episode_length,
            control_hz=CONTROL_HZ,
            observations={**dict.fromkeys(CAMERAS, image), STATE: Feature((7,))},
            action=ActionSpec(7, (-1.0,) * 6 + (0.0,), (1.0,) * 7),
            record_key=CAMERAS[0],
        )


def _members(suite: str) -> tuple[str, ...]:
    if suite == "all":
        return TASKS
    if suite in SUITES:
        return SUITES[suite]
    if suite in TASKS:
        return (suite,)
    hint = nearest(suite, [*SUITES, *TASKS])
    raise ConfigError(f"vlabench has no task or suite {suite}{hint}; it has: {', '.join([*SUITES, *TASKS])}")


class VLABenchEnv(Env):
    """One task. Pictures are drawn with each look, all together: VLABench has no other way."""

    def __init__(self, task: TaskSpec, config: VLABenchConfig) -> None:
        self._task = task
        self._config = config
        self._sim: Any = None
        self._seen: dict[str, Any] | None = None
        self._sentence = ""
        self._base = np.zeros(3)

    def reset(self, episode: EpisodeSpec) -> None:
        self.close()
        self._sim = self._build(episode)
        self._seen = None
        self._sentence = _sentence(self._sim.task)
        self._base = np.asarray(self._sim.get_robot_frame_position(), dtype=float).reshape(3)

    def _build(self, episode: EpisodeSpec) -> Any:
        """The first layout of the episode's that MuJoCo can settle."""
        import VLABench.robots
        import VLABench.tasks
        from dm_control.rl.control import PhysicsError
        from VLABench.envs import load_env

        assert VLABench.robots  # these two are imported for their registrations
        assert VLABench.tasks
        words = episode.rng("layout")
        size = (self._config.observation_height, self._config.observation_width)
        said = ""
        for _ in range(_BUILDS):
            word = int(words.integers(2**32))
            random.seed(word)
            np.random.seed(word)
            try:
                sim = load_env(task=self._task.name, robot=self._config.robot, render_resolution=size)
                draws: Any
                for draws in (getattr(sim.task, "random", None), getattr(sim, "_random_state", None)):
                    if hasattr(draws, "seed"):
                        draws.seed(word)
                sim.reset()
                return sim
            except PhysicsError as error:
                said = str(error)
        raise RobotrialsError(f"{episode.name}: MuJoCo diverged in {_BUILDS} layouts of seed {episode.seed}: {said}")

    def observe(self, cameras: Sequence[str]) -> Observation:
        """Position in the robot's frame (3), Euler angles xyz (3), gripper (1): (7,); and images."""
        observation: Observation = {STATE: self._state(), "task": self._sentence}
        for key in cameras:
            observation[key] = self._picture(key)
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply (7,): a pose of the end effector as in the state, and the gripper (1 open). Success ends the episode.

        A step in which MuJoCo diverges ends it too, as a failure: lerobot-eval's rule.
        """
        from dm_control.rl.control import PhysicsError

        self._seen = None
        try:
            timestep = self._sim.step(self._control(np.asarray(action, dtype=float)))
        except PhysicsError:
            return StepOutcome(0.0, True, False, False)
        task = self._sim.task
        success: bool | None = None
        if hasattr(task, "should_terminate_episode"):
            success = bool(task.should_terminate_episode(self._sim.physics))
        return StepOutcome(float(timestep.reward or 0.0), bool(success), False, success)

    def render(self) -> np.ndarray:
        return self._picture(CAMERAS[0])

    def close(self) -> None:
        sim, self._sim = self._sim, None
        if sim is not None:
            sim.close()

    def _look(self) -> dict[str, Any]:
        if self._seen is None:
            self._seen = self._sim.get_observation()
        return self._seen

    def _state(self) -> np.ndarray:
        from scipy.spatial.transform import Rotation

        raw = np.asarray(self._look()["ee_state"], dtype=float).reshape(-1)
        if raw.size != 8:
            raise ContractError(f"{self._task.name}: VLABench's ee_state has {raw.size} numbers; right is 8")
        angles = Rotation.from_quat(np.roll(raw[3:7], -1)).as_euler("xyz")  # (w, x, y, z) there, (x, y, z, w) here
        return np.concatenate([raw[:3] - self._base, angles, raw[7:]]).astype(np.float32)

    def _picture(self, key: str) -> np.ndarray:
        if key not in CAMERAS:
            raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(CAMERAS)}")
        stack, number = np.asarray(self._look()["rgb"]), CAMERAS.index(key)
        if number >= len(stack):
            raise ContractError(f"{self._task.name}: VLABench drew {len(stack)} pictures; {key} is number {number + 1}")
        picture = stack[number]
        if picture.shape[0] in (3, 4) and picture.shape[-1] not in (3, 4):
            picture = np.moveaxis(picture, 0, -1)
        return np.array(picture[..., :3], dtype=np.uint8, order="C")

    def _control(self, action: np.ndarray) -> np.ndarray:
        """Joint positions for a pose, by dm_control's inverse kinematics on a copy of the scene, and both fingers."""
        from dm_control.utils.inverse_kinematics import qpos_from_site_pose
        from scipy.spatial.transform import Rotation

        # Asked for anew each time: dm_control hands out a proxy that a reset makes stale.
        physics, robot = self._sim.physics, self._sim.task.robot
        found = qpos_from_site_pose(
            physics,
            site_name=robot.end_effector_site.full_identifier,
            target_pos=action[:3] + self._base,
            target_quat=np.roll(Rotation.from_euler("xyz", action[3:6]).as_quat(), 1),
            inplace=False,
            max_steps=100,
        )
        control = np.full(physics.data.ctrl.shape[0], _FINGER_OPEN * float(np.clip(action[6], 0.0, 1.0)))
        control[: robot.n_dof] = found.qpos[: robot.n_dof]
        return control


def _sentence(task: Any) -> str:
    for name in ("task_description", "language_instruction"):
        said = getattr(task, name, None)
        if isinstance(said, (list, tuple)) and said:
            said = said[0]
        if isinstance(said, str) and said:
            return said
    raise ContractError("VLABench's task has neither task_description nor language_instruction")
