"""RoboCasa365: kitchen tasks of a mobile Panda arm. Not run here against the real simulator.

Written to the calls of ``robocasa.wrappers.gym_wrapper.RoboCasaGymEnv`` as LeRobot 0.6.1 makes them
(``lerobot/envs/robocasa.py``), with its keys and the order of its vectors. The scene is that of the episode's seed:
lerobot-eval adds the episode's place in the batch to a seed that is distinct already, so that scenes repeat.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.benchmarks.base import MAX_SIDE, Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.environments.installation import Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

CAMERAS = ("robot0_agentview_left", "robot0_eye_in_hand", "robot0_agentview_right")
IMAGES, STATE = "observation.images.", "observation.state"
CONTROL_HZ = 20.0

GROUPS = {
    "atomic_seen": "target",
    "composite_seen": "target",
    "composite_unseen": "target",
    "pretrain50": "pretrain",
    "pretrain100": "pretrain",
    "pretrain200": "pretrain",
    "pretrain300": "pretrain",
}
"""RoboCasa's groups of tasks, and the split that each is evaluated on."""

_STATE = (
    ("state.base_position", 3),
    ("state.base_rotation", 4),
    ("state.end_effector_position_relative", 3),
    ("state.end_effector_rotation_relative", 4),
    ("state.gripper_qpos", 2),
)
_ACTION = (
    ("action.base_motion", 4),
    ("action.control_mode", 1),
    ("action.end_effector_position", 3),
    ("action.end_effector_rotation", 3),
    ("action.gripper_close", 1),
)
STATE_DIM, ACTION_DIM = sum(n for _, n in _STATE), sum(n for _, n in _ACTION)


@dataclass(frozen=True)
class RoboCasaConfig(BenchmarkConfig):
    """``--env.*`` of RoboCasa."""

    task: str = option(
        "CloseFridge", "tasks, comma-separated, or one of RoboCasa's groups: atomic_seen, pretrain50, ..."
    )
    split: str | None = option(None, "all, pretrain or target; default: the group's, else all")
    camera_name: tuple[str, ...] = option(CAMERAS, "cameras, comma-separated")
    observation_width: int = option(256, "width of the images in pixels", least=1, most=MAX_SIDE)
    observation_height: int = option(256, "height of the images in pixels", least=1, most=MAX_SIDE)
    obj_registries: tuple[str, ...] = option(("lightwheel",), "sets of objects that are on this disk")
    episode_length: int = option(0, "step limit of an episode; 0: RoboCasa's horizon of the task", least=0)


class RoboCasa(Benchmark):
    """``--env.type=robocasa``."""

    name = "robocasa"
    extra = "robocasa"
    lists_tasks = False
    experts = False
    modules = ("robocasa", "robosuite")
    packages = ("robocasa", "robosuite", "mujoco", "gymnasium", "numpy")
    Config = RoboCasaConfig
    uses_gl = True
    installation = Installation(
        unavailable=(
            "no package index holds it with its kitchens: install the repositories robosuite (main branch) and "
            "robocasa, the latter without its dependencies (it asserts one numpy and pins an old lerobot), download "
            "its assets, install robotrials beside it, and name that interpreter: --env.python"
        )
    )

    def tasks(self) -> list[TaskSpec]:
        """As ``Benchmark.tasks``. Groups and horizons are RoboCasa's, asked of the interpreter that has it.

        Raises:
            ConfigError: no task; or a group or a horizon that RoboCasa does not name.
        """
        config = self.config
        asked = [name for part in config.task.split(",") if (name := part.strip())]
        if not asked:
            raise ConfigError(f"--env.task is needed: tasks such as CloseFridge, or a group: {', '.join(GROUPS)}")
        groups = [name for name in asked if name in GROUPS]
        if groups and len(asked) > 1:
            raise ConfigError(f"--env.task={config.task}: a group stands alone, because it decides the split")
        names, horizons = asked, dict.fromkeys(asked, config.episode_length)
        if groups or not config.episode_length:
            known = _registered(",".join(asked), self.python)
            names = known["tasks"]
            horizons = {name: config.episode_length or known["horizons"].get(name, 0) for name in names}
        for name in names:
            if not horizons[name]:
                raise ConfigError(f"RoboCasa names no horizon for {name}: give --env.episode_length")
        suite = groups[0] if groups else ""
        return [self._spec(suite or name, i if suite else 0, name, horizons[name]) for i, name in enumerate(names)]

    def make(self, task: TaskSpec) -> RoboCasaEnv:
        return RoboCasaEnv(task, self.config, self.config.split or GROUPS.get(task.suite, "all"))

    def _spec(self, suite: str, position: int, name: str, steps: int) -> TaskSpec:
        config = self.config
        image = Feature((config.observation_height, config.observation_width, 3), "uint8")
        return TaskSpec(
            suite=suite,
            name=name,
            id=position,
            instruction=_words(name),  # a policy is told the kitchen's own
            max_steps=steps,
            control_hz=CONTROL_HZ,
            observations={**{IMAGES + camera: image for camera in config.camera_name}, STATE: Feature((STATE_DIM,))},
            action=ActionSpec(ACTION_DIM, (-1.0,) * ACTION_DIM, (1.0,) * ACTION_DIM),
        )


class RoboCasaEnv(Env):
    """One task. RoboCasa draws its cameras with every step."""

    def __init__(self, task: TaskSpec, config: RoboCasaConfig, split: str) -> None:
        from robocasa.wrappers.gym_wrapper import RoboCasaGymEnv

        self._task = task
        self._sim = RoboCasaGymEnv(
            env_name=task.name,
            camera_widths=config.observation_width,
            camera_heights=config.observation_height,
            split=split,
            obj_registries=config.obj_registries,
        )
        self._raw: Mapping[str, Any] = {}
        self._sentence = ""

    def reset(self, episode: EpisodeSpec) -> None:
        self._raw, _ = self._sim.reset(seed=episode.seed)
        self._sentence = self._sim.env.get_ep_meta().get("lang", "")
        if not self._sentence:
            raise ContractError(f"{self._task.name}: RoboCasa gave no sentence (lang) for seed {episode.seed}")

    def observe(self, cameras: Sequence[str]) -> Observation:
        """Base pose (7), end effector in it (7), fingers (2): (16,); and images."""
        state = np.concatenate([_part(self._raw, key, n) for key, n in _STATE]).astype(np.float32)
        observation: Observation = {STATE: state, "task": self._sentence}
        for key in cameras:
            name = f"video.{key[len(IMAGES) :]}"
            if key not in self._task.images or name not in self._raw:
                has = [IMAGES + known[6:] for known in self._raw if known.startswith("video.")]
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(has)}")
            observation[key] = np.array(self._raw[name], dtype=np.uint8, order="C")
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply (12,): base motion (4), its mode (1), end effector (6), gripper (1). Success ends the episode."""
        parts: dict[str, np.ndarray] = {}
        begin = 0
        for key, n in _ACTION:
            parts[key] = np.asarray(action[begin : begin + n], dtype=np.float32)
            begin += n
        self._raw, reward, done, truncated, info = self._sim.step(parts)
        flag = info.get("success")
        success = None if flag is None else bool(flag)
        return StepOutcome(float(reward), bool(done or success), bool(truncated), success)

    def render(self) -> np.ndarray:
        return np.ascontiguousarray(self._sim.render())

    def close(self) -> None:
        sim, self._sim = self._sim, None
        if sim is not None:
            sim.close()


def _part(raw: Mapping[str, Any], key: str, n: int) -> np.ndarray:
    if key not in raw:
        raise ContractError(f"RoboCasa's observation has no {key}; it has: {', '.join(raw)}")
    part = np.asarray(raw[key]).reshape(-1)
    if part.size != n:
        raise ContractError(f"RoboCasa's {key} has {part.size} numbers; right is {n}")
    return part


@functools.lru_cache(maxsize=16)
def _registered(tasks: str, python: str | None) -> dict[str, Any]:
    """``tasks`` with groups resolved, and their horizons, as RoboCasa of that interpreter has them."""
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    command = [python or sys.executable, "-m", __name__, tasks]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": path}
        )
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        raise ConfigError(
            f"--env.task={tasks}: {command[0]} has no RoboCasa to ask for horizons; give --env.episode_length, or the "
            "interpreter that has it: --env.python"
        ) from None
    if "problem" in answer:
        raise ConfigError(answer["problem"])
    return answer


def _look_up(tasks: str) -> dict[str, Any]:
    from robocasa.utils.dataset_registry import PRETRAINING_TASKS, TARGET_TASKS
    from robocasa.utils.dataset_registry_utils import get_task_horizon

    groups = {**TARGET_TASKS, **PRETRAINING_TASKS}
    names = tasks.split(",")
    if tasks in GROUPS:
        if tasks not in groups:
            return {"problem": f"this RoboCasa has no group {tasks}; it has: {', '.join(sorted(groups))}"}
        names = list(groups[tasks])
    horizons: dict[str, int] = {}
    for name in names:
        try:
            horizons[name] = int(get_task_horizon(name))
        except ValueError:
            continue  # none is registered; the caller says what to give
    return {"tasks": names, "horizons": horizons}


def main() -> None:
    sys.stdout.write(json.dumps(_look_up(sys.argv[1])) + "\n")


def _words(name: str) -> str:
    """``CloseFridge`` as ``Close fridge.``"""
    return f"{re.sub(r'(?<=[a-z])(?=[A-Z])', ' ', name)}.".capitalize()


if __name__ == "__main__":
    main()
