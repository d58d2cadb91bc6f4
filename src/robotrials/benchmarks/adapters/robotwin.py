"""RoboTwin 2.0: fifty tasks of two arms. Not run here against the real simulator.

Written to the calls of RoboTwin's task classes as LeRobot 0.6.1 makes them (``lerobot/envs/robotwin.py``):
``setup_demo``, ``get_obs``, ``take_action``, ``check_success``, ``close_env``, with the settings of
``task_config/<config>.yml``. Every episode has a simulator of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robotrials.benchmarks.base import MAX_SIDE, Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.environments.installation import Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import nearest
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

TASKS = (
    "adjust_bottle",
    "beat_block_hammer",
    "blocks_ranking_rgb",
    "blocks_ranking_size",
    "click_alarmclock",
    "click_bell",
    "dump_bin_bigbin",
    "grab_roller",
    "handover_block",
    "handover_mic",
    "hanging_mug",
    "lift_pot",
    "move_can_pot",
    "move_pillbottle_pad",
    "move_playingcard_away",
    "move_stapler_pad",
    "open_laptop",
    "open_microwave",
    "pick_diverse_bottles",
    "pick_dual_bottles",
    "place_a2b_left",
    "place_a2b_right",
    "place_bread_basket",
    "place_bread_skillet",
    "place_burger_fries",
    "place_can_basket",
    "place_cans_plasticbox",
    "place_container_plate",
    "place_dual_shoes",
    "place_empty_cup",
    "place_fan",
    "place_mouse_pad",
    "place_object_basket",
    "place_object_scale",
    "place_object_stand",
    "place_phone_stand",
    "place_shoe",
    "press_stapler",
    "put_bottles_dustbin",
    "put_object_cabinet",
    "rotate_qrcode",
    "scan_object",
    "shake_bottle",
    "shake_bottle_horizontally",
    "stack_blocks_three",
    "stack_blocks_two",
    "stack_bowls_three",
    "stack_bowls_two",
    "stamp_seal",
    "turn_switch",
)
CAMERAS = ("head_camera", "left_camera", "right_camera")
IMAGES, STATE = "observation.images.", "observation.state"
DIM = 14
CONTROL_HZ = 25.0


@dataclass(frozen=True)
class RoboTwinConfig(BenchmarkConfig):
    """``--env.*`` of RoboTwin."""

    task: str = option("", "tasks, comma-separated, or all")
    task_config: str = option("demo_clean", "which of RoboTwin's task_config/*.yml: demo_clean or demo_randomized")
    camera_names: tuple[str, ...] = option(CAMERAS, "cameras, comma-separated")
    observation_width: int = option(320, "width of the images, as that config draws them", least=1, most=MAX_SIDE)
    observation_height: int = option(240, "height of the images, as that config draws them", least=1, most=MAX_SIDE)
    episode_length: int = option(1200, "step limit of an episode", least=1)


class RoboTwin(Benchmark):
    """``--env.type=robotwin``."""

    name = "robotwin"
    extra = "robotwin"
    experts = False
    modules = ("envs", "sapien")
    packages = ("sapien", "mplib", "torch", "numpy")
    Config = RoboTwinConfig
    installation = Installation(
        unavailable=(
            "no package index holds it: follow RoboTwin's installation guide (SAPIEN, CuRobo, its assets), install "
            "robotrials beside it, run from its repository so that its envs folder is importable, and name that "
            "interpreter: --env.python"
        )
    )

    def tasks(self) -> list[TaskSpec]:
        asked = [name for part in self.config.task.split(",") if (name := part.strip())]
        if not asked:
            raise ConfigError("--env.task is needed: tasks such as beat_block_hammer, or all")
        for name in asked:
            if name not in TASKS and name != "all":
                hint = nearest(name, TASKS)
                raise ConfigError(f"robotwin has no task {name}{hint}; it has: {', '.join(TASKS)}")
        members = [(name, TASKS if name == "all" else (name,)) for name in asked]
        return [self._spec(suite, i, name) for suite, names in members for i, name in enumerate(names)]

    def make(self, task: TaskSpec) -> RoboTwinEnv:
        return RoboTwinEnv(task, self.config)

    def _spec(self, suite: str, position: int, name: str) -> TaskSpec:
        config = self.config
        image = Feature((config.observation_height, config.observation_width, 3), "uint8")
        head = IMAGES + config.camera_names[0]
        return TaskSpec(
            suite=suite,
            name=name,
            id=position,
            instruction=f"{name.replace('_', ' ')}.".capitalize(),
            max_steps=config.episode_length,
            control_hz=CONTROL_HZ,
            observations={**{IMAGES + camera: image for camera in config.camera_names}, STATE: Feature((DIM,))},
            action=ActionSpec(DIM, (-1.0,) * DIM, (1.0,) * DIM),
            record_key=head,
        )


class RoboTwinEnv(Env):
    """One task. RoboTwin draws all cameras in ``get_obs``, which is asked when somebody looks, once a step."""

    def __init__(self, task: TaskSpec, config: RoboTwinConfig) -> None:
        try:
            module = importlib.import_module(f"envs.{task.name}")
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"RoboTwin's envs/{task.name}.py cannot be imported ({error}): run in its repository"
            ) from None
        self._task = task
        self._class = getattr(module, task.name)
        self._settings = setup_settings(task.name, config.task_config)
        self._sim: Any = None
        self._seen: Mapping[str, Any] | None = None

    def reset(self, episode: EpisodeSpec) -> None:
        self.close()
        self._seen = None
        self._sim = self._class()
        with _gradients():
            self._sim.setup_demo(**{**self._settings, "seed": episode.seed, "is_test": True})

    def observe(self, cameras: Sequence[str]) -> Observation:
        """Two arms of six joints and a gripper each, (14,); and images."""
        raw = self._look()
        vector = np.asarray((raw.get("joint_action") or {}).get("vector", ()), dtype=np.float32).reshape(-1)
        if vector.size != DIM:
            raise ContractError(f"{self._task.name}: RoboTwin gave {vector.size} joint values; right is {DIM}")
        observation: Observation = {
            STATE: vector.copy(),
            "task": self._task.instruction,
        }
        for key in cameras:
            observation[key] = self._picture(key)
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply (14,) joint positions. Success ends the episode; it is also the reward."""
        with _gradients():
            self._sim.take_action(np.asarray(action, dtype=np.float32))
        self._seen = None
        success: bool | None = None
        if hasattr(self._sim, "check_success"):
            success = bool(getattr(self._sim, "eval_success", False) or self._sim.check_success())
        return StepOutcome(float(bool(success)), bool(success), False, success)

    def render(self) -> np.ndarray:
        return self._picture(self._task.images[0])

    def close(self) -> None:
        sim, self._sim = self._sim, None
        if sim is not None:
            sim.close_env()

    def _look(self) -> Mapping[str, Any]:
        if self._seen is None:
            self._seen = self._sim.get_obs()
        return self._seen

    def _picture(self, key: str) -> np.ndarray:
        drawn = self._look().get("observation", {})
        image = (drawn.get(key[len(IMAGES) :]) or {}).get("rgb") if key in self._task.images else None
        if image is None:
            raise ContractError(
                f"{self._task.name} has no camera {key}; it has: {', '.join(IMAGES + k for k in drawn)}"
            )
        return np.array(np.asarray(image)[..., :3], dtype=np.uint8, order="C")


def setup_settings(task: str, task_config: str) -> dict[str, Any]:
    """What ``setup_demo`` takes, from RoboTwin's own files: the task's config, its robots and its cameras.

    Raises:
        ConfigError: no such config.
    """
    import yaml
    from envs import CONFIGS_PATH

    def read(path: Path) -> Any:
        return yaml.safe_load(path.read_text(encoding="utf-8"))

    folder = Path(CONFIGS_PATH)
    file = folder / f"{task_config}.yml"
    if not file.is_file():
        known = sorted(path.stem for path in folder.glob("[!_]*.yml"))
        raise ConfigError(f"--env.task_config={task_config}: RoboTwin has {', '.join(known)}")
    settings: dict[str, Any] = read(file)
    robots = read(folder / "_embodiment_config.yml")
    chosen = settings.get("embodiment", ["aloha-agilex"])
    if len(chosen) not in (1, 3):
        raise ConfigError(
            f"{file}: embodiment names {len(chosen)} entries; right is one robot, or two and their distance"
        )
    left, right = (robots[name]["file_path"] for name in (chosen[0], chosen[-1] if len(chosen) == 1 else chosen[1]))
    settings.update(left_robot_file=left, right_robot_file=right, dual_arm_embodied=len(chosen) == 1)
    if len(chosen) == 3:
        settings["embodiment_dis"] = chosen[2]
    settings["left_embodiment_config"] = read(Path(left) / "config.yml")
    settings["right_embodiment_config"] = read(Path(right) / "config.yml")
    camera = read(folder / "_camera_config.yml")[settings["camera"]["head_camera_type"]]
    settings.update(head_camera_h=camera["h"], head_camera_w=camera["w"])
    settings.update(render_freq=0, task_name=task, task_config=task_config)
    return settings


def _gradients() -> Any:
    """RoboTwin plans by gradient descent in torch: a caller's no_grad must not reach it."""
    import torch

    return torch.enable_grad()
