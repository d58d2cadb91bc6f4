"""ManiSkill 3 (mani-skill 3.0.1): manipulation with a Panda arm in SAPIEN's PhysX on the CPU.

Scenes, rewards and success are those of ``gym.make(task, sim_backend="physx_cpu")``. Here states are put together and
pictures drawn only when somebody looks, and nothing survives from one episode to the next. LeRobot has no ManiSkill, so
the keys are ours, on its pattern: joint positions are ``observation.state``, ManiSkill's flat state (of
``obs_mode="state"``, which holds what only a simulator knows) is ``observation.environment_state``, and each of its
cameras ``observation.images.<name>``.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.maniskill.tasks import (
    CONTROL_HZ,
    CONTROL_MODES,
    EXPERT_CONTROL,
    GROUPS,
    TASKS,
    action_spec,
    canonical,
)
from robotrials.benchmarks.base import MAX_SIDE, BenchmarkConfig, Env, Expert, Observation, StepOutcome
from robotrials.benchmarks.scene_group import EnvGroup, ManyScenes
from robotrials.environments.installation import Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import nearest
from robotrials.plan.task import Feature, TaskSpec
from robotrials.rendering.lavapipe import use_lavapipe

IMAGES, STATE, FULL_STATE = "observation.images.", "observation.state", "observation.environment_state"

_SHOWN = ("pixels", "pixels_agent_pos", "state")
_REWARDS = ("auto", "normalized_dense", "dense", "sparse", "none")


@dataclass(frozen=True)
class ManiSkillConfig(BenchmarkConfig):
    """``--env.*`` of ManiSkill."""

    task: str = option("", "tasks, comma-separated (PickCube, PushCube, ...), or groups: all, experts")
    control_mode: str = option(
        "pd_joint_delta_pos", "meaning of actions; experts need pd_joint_pos", choices=CONTROL_MODES
    )
    obs_type: str = option("pixels_agent_pos", "what is observed; all but pixels include states", choices=_SHOWN)
    observation_width: int = option(128, "width of the cameras' images in pixels", least=1, most=MAX_SIDE)
    observation_height: int = option(128, "height of the cameras' images in pixels", least=1, most=MAX_SIDE)
    visualization_width: int = option(512, "width of the video in pixels", least=1, most=MAX_SIDE)
    visualization_height: int = option(512, "height of the video in pixels", least=1, most=MAX_SIDE)
    reward_mode: str = option("auto", "auto: normalized_dense, or sparse where a task has no dense", choices=_REWARDS)
    episode_length: int = option(0, "step limit of an episode; 0: ManiSkill's own, 50 to 250 by task", least=0)
    num_envs: int = option(1, "scenes in each worker's process, which then needs less memory for each", least=1)
    render_backend: str = option("cpu", "which Vulkan device draws", choices=("cpu", "gpu"))


class ManiSkill(ManyScenes):
    """``--env.type=maniskill``. On the CPU every scene has a PhysX of its own, so that they do not meet."""

    name = "maniskill"
    extra = "maniskill"
    modules = ("mani_skill", "sapien", "torch")
    packages = ("mani-skill", "sapien", "mplib", "torch", "gymnasium", "numpy")
    Config = ManiSkillConfig
    exact_together = True
    installation = Installation(
        requirements=(
            "mani-skill==3.0.1",
            "sapien==3.0.3",
            "mplib==0.1.1",
            "torch==2.13.0",
            "gymnasium==1.4.0",
            "numpy==1.26.4",
            "opencv-python==4.11.0.86",
        ),
        python=">=3.10,<3.13",
        prepare="lavapipe.sh",
    )

    @classmethod
    def conflict(cls, versions: Mapping[str, str]) -> str | None:
        """Measured: mplib 0.1.1, with which mani-skill 3.0.1 plans, ends the process by a segfault on NumPy 2."""
        numpy, mplib = versions.get("numpy", ""), versions.get("mplib", "")
        if numpy.split(".")[0].isdigit() and int(numpy.split(".")[0]) >= 2 and mplib.startswith("0.1."):
            return f'mplib {mplib} crashes on numpy {numpy}: pip install "numpy<2" "opencv-python<4.12"'
        return None

    def tasks(self) -> list[TaskSpec]:
        """As ``Benchmark.tasks``: tasks and groups in the order asked for."""
        asked = [name for part in self.config.task.split(",") if (name := canonical(part))]
        if not asked:
            raise ConfigError(f"--env.task is needed: tasks such as PickCube, or groups: {', '.join(GROUPS)}")
        return [self._spec(suite, i, name) for suite in asked for i, name in enumerate(self._members(suite))]

    def make(self, task: TaskSpec) -> ManiSkillEnv:
        return ManiSkillEnv(task, self.config)

    def make_group(self, task: TaskSpec, n_slots: int) -> EnvGroup:
        return EnvGroup([self.make(task) for _ in range(n_slots)])

    def check_expert(self, task: TaskSpec) -> None:
        if not TASKS[task.name].expert:
            having = ", ".join(GROUPS["experts"])
            raise ConfigError(f"{task.name} has no scripted expert; tasks that have one: {having}")
        if self.config.control_mode != EXPERT_CONTROL:
            raise ConfigError(f"experts of maniskill act in joint positions: add --env.control_mode={EXPERT_CONTROL}")

    @staticmethod
    def _members(suite: str) -> tuple[str, ...]:
        if suite in GROUPS:
            return GROUPS[suite]
        if suite in TASKS:
            return (suite,)
        raise ConfigError(
            f"maniskill has no task or group {suite}{nearest(suite, [*GROUPS, *TASKS])}; groups: {', '.join(GROUPS)}; "
            f"tasks: {', '.join(TASKS)}. Tasks of ManiSkill that download objects first are not among them"
        )

    def _spec(self, suite: str, position: int, name: str) -> TaskSpec:
        config, task = self.config, TASKS[name]
        if config.reward_mode in ("normalized_dense", "dense") and task.reward == "sparse":
            raise ConfigError(f"--env.reward_mode={config.reward_mode}: {name} has sparse and none only")
        image = Feature((config.observation_height, config.observation_width, 3), "uint8")
        observations = {IMAGES + camera: image for camera in task.cameras} if config.obs_type != "state" else {}
        if config.obs_type != "pixels":
            observations[STATE] = Feature((task.qpos,))
            observations[FULL_STATE] = Feature((task.state,))
        return TaskSpec(
            suite=suite,
            name=name,
            id=position,
            instruction=task.instruction,
            max_steps=config.episode_length or task.max_steps,
            control_hz=CONTROL_HZ,
            observations=observations,
            action=action_spec(config.control_mode, task.gripper),
            record_key=None,  # the video has a larger view of its own, in which goals are shown
        )


class ManiSkillEnv(Env):
    """One scene of one task."""

    def __init__(self, task: TaskSpec, config: ManiSkillConfig) -> None:
        self._task = task
        self._config = config
        self._sim = _simulator(task.name, config)
        self._info: dict[str, Any] = {}
        self._expert: Any = None

    def reset(self, episode: EpisodeSpec) -> None:
        self._end_expert()
        _, self._info = self._sim.reset(seed=episode.seed, options={"reconfigure": True})

    def observe(self, cameras: Sequence[str]) -> Observation:
        """See ``Env.observe``: joint positions (9,), or (7,) without a gripper; ManiSkill's flat state; images."""
        observation: Observation = {"task": self._task.instruction}
        if STATE in self._task.observations:
            observation[STATE] = _numpy(self._sim.agent.robot.get_qpos()).astype(np.float32)
            observation[FULL_STATE] = self._full_state()
        for key in cameras:
            if key not in self._task.images:
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(self._task.images)}")
        if cameras:
            self._show_goals(False)
            self._sim.scene.update_render(update_sensors=True, update_human_render_cameras=False)
        for key in cameras:
            observation[key] = _picture(self._sim.scene.sensors[key[len(IMAGES) :]])
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply an action of the task's control mode, (D,); numbers outside its bounds are clipped. Success ends the
        episode, and so does what a task calls a failure."""
        _, reward, terminated, _, self._info = self._sim.step(np.asarray(action, dtype=np.float32))
        flag = self._info.get("success")
        return StepOutcome(float(reward), bool(terminated), False, None if flag is None else bool(flag))

    def render(self) -> np.ndarray:
        """From the task's own view for people, with the marks of goals that cameras do not see."""
        self._show_goals(True)
        self._sim.scene.update_render(update_sensors=False, update_human_render_cameras=True)
        return _picture(next(iter(self._sim.scene.human_render_cameras.values())))

    def close(self) -> None:
        self._end_expert()
        if self._sim is not None:
            self._sim.close()
            self._sim = None

    def expert(self) -> Expert:
        """ManiSkill's motion planner for the task; it acts in the control mode pd_joint_pos only."""
        from robotrials.benchmarks.adapters.maniskill.expert import PlannerExpert

        ManiSkill(self._config).check_expert(self._task)
        self._end_expert()
        expert = self._expert = PlannerExpert(self._sim, TASKS[self._task.name].expert)
        return expert

    def _end_expert(self) -> None:
        expert, self._expert = self._expert, None
        if expert is not None:
            expert.close()

    def _full_state(self) -> np.ndarray:
        from mani_skill.utils.common import flatten_state_dict

        raw = self._sim._get_obs_state_dict(self._info)
        return _numpy(flatten_state_dict(raw, use_torch=True)).astype(np.float32)

    def _show_goals(self, shown: bool) -> None:
        for mark in self._sim._hidden_objects:
            mark.show_visual() if shown else mark.hide_visual()


def _simulator(name: str, config: ManiSkillConfig) -> Any:
    """ManiSkill's environment without Gymnasium's wrappers: the step limit is the rollout's."""
    if config.render_backend == "cpu":
        use_lavapipe()
    with warnings.catch_warnings():
        # SAPIEN brings a Vulkan loader for where the system has none, and warns that it uses it.
        warnings.filterwarnings("ignore", message="Failed to find system libvulkan")
        import mani_skill.envs
        import torch
        from mani_skill.utils.registration import REGISTERED_ENVS

    assert mani_skill.envs  # imported for its registrations
    mani_skill.logger.setLevel(logging.ERROR)  # it warns of its own tasks' missing initial poses
    torch.set_num_threads(1)  # tensors of a few numbers; and its results must not depend on the number of cores
    reward = TASKS[name].reward if config.reward_mode == "auto" else config.reward_mode
    sim = REGISTERED_ENVS[name].cls(
        obs_mode="state",
        reward_mode=reward,
        control_mode=config.control_mode,
        sim_backend="physx_cpu",
        render_backend=config.render_backend,
        sensor_configs={"width": config.observation_width, "height": config.observation_height},
        human_render_camera_configs={"width": config.visualization_width, "height": config.visualization_height},
    )
    # Hides the methods: what nobody looks at is not put together. No task's reward reads it (3.0.1).
    sim.get_obs = lambda info=None, unflattened=False: {}
    sim._flatten_raw_obs = lambda obs: obs
    return sim


def _picture(camera: Any) -> np.ndarray:
    """(H, W, 3) uint8 of one camera, of the scene as it was last given to the renderer."""
    camera.capture()
    textures = camera.get_obs(rgb=True, depth=False, position=False, segmentation=False)
    return np.ascontiguousarray(_numpy(textures["rgb"]))


def _numpy(batch: Any) -> np.ndarray:
    """The one row of a batch of one."""
    row: np.ndarray = batch[0].cpu().numpy()
    return row
