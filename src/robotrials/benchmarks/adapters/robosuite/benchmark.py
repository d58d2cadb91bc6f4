"""robosuite 1.5.2: nineteen manipulation tasks of one or two Panda arms in MuJoCo.

The scene of an episode is the one that ``robosuite.make(NAME, robots="Panda", seed=episode.seed, hard_reset=False)``
shows after ``reset()``. An environment and its samplers keep generators from episode to episode, and some draw the
sizes of objects as they load the model: so it is made anew for every episode, in 0.5 CPU seconds with one arm. That is
less than robosuite's own (hard) reset, which loads the model too.
"""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.robosuite.tasks import GROUPS, TASKS
from robotrials.benchmarks.base import MAX_SIDE, Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.environments.installation import GL_LIBRARIES, Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import nearest
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

IMAGES, STATE, OBJECTS = "observation.images.", "observation.state", "observation.environment_state"
CONTROL_HZ = 20.0

_EEF = ("eef_pos", "eef_quat", "gripper_qpos")
_COLLISION_GEOMS, _VISUAL_GEOMS = 0, 1


@dataclass(frozen=True)
class RobosuiteConfig(BenchmarkConfig):
    """``--env.*`` of robosuite."""

    task: str = option("", f"tasks and groups, comma-separated: Lift, Stack, ..., {', '.join(GROUPS)}")
    camera_names: tuple[str, ...] = option(
        ("agentview", "robot0_eye_in_hand"), "cameras observed; the first is the video's: agentview, frontview, ..."
    )
    observation_width: int = option(256, "width of the images in pixels", least=1, most=MAX_SIDE)
    observation_height: int = option(256, "height of the images in pixels", least=1, most=MAX_SIDE)
    obs_type: str = option("pixels_agent_pos", "what is observed", choices=("pixels", "pixels_agent_pos", "state"))
    state: str = option(
        "eef", "observation.state: hand and gripper (eef), or all robosuite says (proprio)", choices=("eef", "proprio")
    )
    reward_shaping: bool = option(False, "dense rewards instead of 1 for success")
    episode_length: int = option(500, "step limit of an episode", least=1)
    fps: int = option(20, "control rate in Hz; taken for lerobot-eval's sake, this one only", least=1)


class Robosuite(Benchmark):
    """``--env.type=robosuite``."""

    name = "robosuite"
    extra = "robosuite"
    experts = False
    modules = ("robosuite", "mujoco")
    packages = ("robosuite", "mujoco", "numpy", "numba", "scipy")
    Config = RobosuiteConfig
    uses_gl = True
    installation = Installation(
        requirements=("robosuite==1.5.2", "mujoco==3.3.0", "numpy==1.26.4", "numba==0.68.1", "scipy==1.17.1"),
        python=">=3.11,<3.13",
        system=(*GL_LIBRARIES, "libglib2.0-0"),
    )

    def __init__(self, config: RobosuiteConfig) -> None:
        super().__init__(config)
        config.require_fps(CONTROL_HZ, "robosuite")
        if not config.camera_names:
            raise ConfigError("--env.camera_names needs a camera, such as agentview: videos are made of the first")

    @classmethod
    def conflict(cls, versions: Mapping[str, str]) -> str | None:
        """Measured: robosuite 1.5.2 builds its environments on MuJoCo 3.3.0, and none on MuJoCo 4.0.0."""
        major = versions.get("mujoco", "").split(".")[0]
        if major.isdigit() and int(major) >= 4:
            return (
                f"robosuite {versions.get('robosuite')} cannot build its tasks on mujoco {versions['mujoco']}: "
                'pip uninstall -y mujoco mujoco-core mujoco-studio && pip install "mujoco==3.3.0"'
            )
        return None

    def tasks(self) -> list[TaskSpec]:
        """As ``Benchmark.tasks``: every group in the order asked for."""
        asked = [name.strip() for name in self.config.task.split(",") if name.strip()]
        if not asked:
            raise ConfigError(f"--env.task is needed: {', '.join(TASKS)}, or groups: {', '.join(GROUPS)}")
        return [self._spec(suite, i, name) for suite in asked for i, name in enumerate(GROUPS.get(suite, (suite,)))]

    def make(self, task: TaskSpec) -> RobosuiteEnv:
        return RobosuiteEnv(task, self.config)

    def _spec(self, suite: str, position: int, name: str) -> TaskSpec:
        if name not in TASKS:
            known = [*GROUPS, *TASKS]
            raise ConfigError(f"robosuite has no task {name}{nearest(name, known)}; it has {', '.join(known)}")
        config, about = self.config, TASKS[name]
        image = Feature((config.observation_height, config.observation_width, 3), "uint8")
        observations: dict[str, Feature] = {}
        if config.obs_type != "state":
            observations.update({IMAGES + camera: image for camera in config.camera_names})
        if config.obs_type != "pixels":
            observations[STATE] = Feature((about.eef_dim if config.state == "eef" else about.arms * about.proprio,))
            observations[OBJECTS] = Feature((about.objects,))
        video = IMAGES + config.camera_names[0]
        return TaskSpec(
            suite=suite,
            name=name,
            id=position,
            instruction=about.instruction,
            max_steps=config.episode_length,
            control_hz=CONTROL_HZ,
            observations=observations,
            action=ActionSpec(about.action_dim, (-1.0,) * about.action_dim, (1.0,) * about.action_dim),
            record_key=video if video in observations else None,
        )


class RobosuiteEnv(Env):
    """One task. The simulator is made at every reset, its renderer when an episode's first picture is asked for."""

    def __init__(self, task: TaskSpec, config: RobosuiteConfig) -> None:
        _quiet()
        self._task = task
        self._config = config
        self._about = TASKS[task.name]
        self._sim: Any = None
        self._renderer: Any = None
        self._seen: dict[str, np.ndarray] = {}

    def reset(self, episode: EpisodeSpec) -> None:
        import robosuite

        self.close()
        with _one_model():
            self._sim = robosuite.make(
                self._task.name,
                robots=["Panda"] * self._about.arms,
                has_renderer=False,
                has_offscreen_renderer=False,
                use_camera_obs=False,
                reward_shaping=self._config.reward_shaping,
                control_freq=CONTROL_HZ,
                ignore_done=True,  # the step limit is the plan's
                hard_reset=False,
                seed=episode.seed,
            )
        self._check_cameras()
        self._seen = self._sim.reset()

    def observe(self, cameras: Sequence[str]) -> Observation:
        """See ``Env.observe``: state and objects as ``RobosuiteTask`` has them, and the images asked for."""
        observation: Observation = {"task": self._task.instruction}
        if STATE in self._task.observations:
            observation[STATE] = np.concatenate([self._seen[key] for key in self._state_keys()]).astype(np.float32)
            observation[OBJECTS] = self._seen["object-state"].astype(np.float32)
        for key in cameras:
            if key not in self._task.images:
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(self._task.images)}")
            observation[key] = self._draw(key.removeprefix(IMAGES))
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply per arm an offset of the hand (6,) and, with a gripper, an effort to close it (1,), each in [-1, 1].

        Success ends the episode; so does, in Wipe, an arm that hits the table."""
        self._seen, reward, ended, _ = self._sim.step(np.asarray(action, dtype=np.float64))
        success = bool(self._sim._check_success())
        return StepOutcome(float(reward), bool(ended or success), False, success)

    def render(self) -> np.ndarray:
        return self._draw(self._config.camera_names[0])

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        if self._sim is not None:
            self._sim.close()
            self._sim, self._seen = None, {}
            # Its parts refer to each other in circles: without this, two or three models of 70 MB stand at once.
            gc.collect()

    def _state_keys(self) -> list[str]:
        arms = range(self._about.arms)
        if self._config.state == "proprio":
            return [f"robot{arm}_proprio-state" for arm in arms]
        parts = _EEF if self._about.gripper else _EEF[:2]
        return [f"robot{arm}_{part}" for arm in arms for part in parts]

    def _draw(self, camera: str) -> np.ndarray:
        """The picture that robosuite's own camera observation holds, the right way up.

        Not by robosuite's render context: making one runs the simulator forward, which would let the moment of the
        first look into the physics.
        """
        model, data = self._sim.sim.model._model, self._sim.sim.data._data
        if self._renderer is None:
            import mujoco

            height, width = self._config.observation_height, self._config.observation_width
            model.vis.global_.offheight, model.vis.global_.offwidth = height, width
            self._renderer = mujoco.Renderer(model, height, width)
            self._shown = mujoco.MjvOption()
            self._shown.geomgroup[_COLLISION_GEOMS] = 0
            self._shown.geomgroup[_VISUAL_GEOMS] = 1
        self._renderer.update_scene(data, camera, self._shown)
        picture: np.ndarray = self._renderer.render()
        return picture

    def _check_cameras(self) -> None:
        known = list(self._sim.sim.model.camera_names)
        for camera in self._config.camera_names:
            if camera not in known:
                what = f"--env.camera_names={camera}: {self._task.name} has {', '.join(known)}"
                raise ConfigError(what + nearest(camera, known))


@contextlib.contextmanager
def _one_model() -> Iterator[None]:
    """Keep robosuite from compiling each robot once more by itself, for controllers (mink's) that are not used here:
    nothing else reads that model, and it takes a third of the time and 50 MB."""
    from robosuite.models.robots.robot_model import RobotModel

    compiled = RobotModel.set_mujoco_model
    RobotModel.set_mujoco_model = lambda self, mujoco_model=None: None
    try:
        yield
    finally:
        RobotModel.set_mujoco_model = compiled


def _quiet() -> None:
    """robosuite warns of optional parts it does not find, and tells at every reset which file it has read."""
    logging.getLogger("robosuite_logs").addFilter(_is_error)


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.ERROR
