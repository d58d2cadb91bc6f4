"""Isaac Lab-Arena: scenes that one GPU steps together. Not run here against the real simulator.

Its environments are an ``env.py`` of a Hub repository with ``make_env(n_envs, use_async_envs, cfg)``, as LeRobot 0.6.1
calls it (``IsaaclabArenaEnv`` in ``lerobot/envs/configs.py``). Observations are batches: ``policy`` (states by name)
and ``camera_obs`` (pictures by name). A slot is reset through Isaac Lab's own ``reset(seed=..., env_ids=[slot])``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.foreign.single_env import final_observation
from robotrials.benchmarks.adapters.gym.answers import as_numpy
from robotrials.benchmarks.adapters.hub import load_make_env, parse_repo, require_trust
from robotrials.benchmarks.base import MAX_SIDE, BenchmarkConfig, Observation, StepOutcome
from robotrials.benchmarks.scene_group import ManyScenes, SceneGroup
from robotrials.environments.installation import Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

IMAGES, STATE = "observation.images.", "observation.state"


@dataclass(frozen=True)
class IsaacLabArenaConfig(BenchmarkConfig):
    """``--env.*`` of Isaac Lab-Arena; the names are LeRobot's."""

    task: str = option("Reach out to the microwave and open it.", "the sentence that a policy is told")
    repo: str = option("nvidia/isaaclab-arena-envs", "Hub repository, org/name@revision, or a folder with an env.py")
    environment: str = option("gr1_microwave", "which environment of that repository")
    embodiment: str = option("gr1_pink", "which robot")
    object: str = option("power_drill", "which object, where the environment has one")
    num_envs: int = option(1, "scenes in each worker's process; more than 1 needs --eval.exact=false", least=1)
    state_keys: tuple[str, ...] = option(("robot_joint_pos",), "states joined to observation.state")
    camera_keys: tuple[str, ...] = option((), "cameras, comma-separated: robot_pov_cam_rgb")
    state_dim: int = option(54, "numbers in observation.state", least=1)
    action_dim: int = option(36, "numbers in an action", least=1)
    camera_height: int = option(512, "height of the images in pixels", least=1, most=MAX_SIDE)
    camera_width: int = option(512, "width of the images in pixels", least=1, most=MAX_SIDE)
    episode_length: int = option(300, "step limit of an episode", least=1)
    fps: float = option(30.0, "control rate in Hz", above=0)
    device: str = option("cuda:0", "the GPU that simulates")
    kwargs: Mapping[str, Any] = option({}, "further settings of that environment, as {a: b}")
    trust_remote_code: bool = option(False, "run the code of that repository: --trust_remote_code=true is the same")


class IsaacLabArena(ManyScenes):
    """``--env.type=isaaclab_arena``."""

    name = "isaaclab_arena"
    extra = "isaaclab_arena"
    lists_tasks = False
    experts = False
    modules = ("isaaclab", "torch")
    packages = ("isaaclab", "isaacsim", "isaaclab-arena", "torch", "gymnasium", "numpy")
    Config = IsaacLabArenaConfig
    installation = Installation(
        unavailable=(
            "it needs Isaac Sim and an NVIDIA GPU: follow Isaac Lab-Arena's installation guide, install robotrials "
            "into that Python, and name it: --env.python"
        )
    )

    def __init__(self, config: IsaacLabArenaConfig) -> None:
        super().__init__(config)
        if not config.state_keys and not config.camera_keys:
            raise ConfigError("nothing would be observed: give --env.state_keys or --env.camera_keys")
        self._repo = parse_repo(config.repo)
        require_trust(self._repo, config.repo, config.trust_remote_code)

    def tasks(self) -> list[TaskSpec]:
        config = self.config
        image = Feature((config.camera_height, config.camera_width, 3), "uint8")
        observations = {IMAGES + camera: image for camera in config.camera_keys}
        if config.state_keys:
            observations[STATE] = Feature((config.state_dim,))
        spec = TaskSpec(
            suite=self.name,
            name=config.environment,
            id=0,
            instruction=config.task,
            max_steps=config.episode_length,
            control_hz=config.fps,
            observations=observations,
            action=ActionSpec(config.action_dim, (-1.0,) * config.action_dim, (1.0,) * config.action_dim),
            record_key=IMAGES + config.camera_keys[0] if config.camera_keys else None,
        )
        return [spec]

    def make_group(self, task: TaskSpec, n_slots: int) -> ArenaGroup:
        return ArenaGroup(task, self.config, self._make(n_slots), n_slots)

    def _make(self, n_slots: int) -> Any:
        config = self.config
        settings = SimpleNamespace(
            hub_path=config.repo,
            task=config.task,
            environment=config.environment,
            embodiment=config.embodiment,
            object=config.object,
            num_envs=n_slots,
            seed=None,  # each slot's reset brings its own
            device=config.device,
            enable_cameras=bool(config.camera_keys),
            headless=True,
            state_keys=",".join(config.state_keys),
            camera_keys=",".join(config.camera_keys),
            state_dim=config.state_dim,
            action_dim=config.action_dim,
            camera_height=config.camera_height,
            camera_width=config.camera_width,
            episode_length=config.episode_length,
            mimic=False,
            teleop_device=None,
            disable_fabric=False,
            enable_pinocchio=True,
            video=False,
        )
        vars(settings).update(config.kwargs)
        made = load_make_env(self._repo, config.repo)(n_envs=n_slots, use_async_envs=False, cfg=settings)
        while isinstance(made, Mapping):  # {suite: {task number: vector environment}}
            made = next(iter(made.values()))
        return made


class ArenaGroup(SceneGroup):
    """The slots of one vector environment. Whatever another slot does, physics on a GPU is not the same to the bit."""

    def __init__(self, task: TaskSpec, config: IsaacLabArenaConfig, sim: Any, n_slots: int) -> None:
        if sim.num_envs != n_slots:
            raise ContractError(f"Isaac Lab-Arena made {sim.num_envs} scenes; asked for were {n_slots}")
        self.n_slots = n_slots
        self._task = task
        self._config = config
        self._sim = sim
        self._raw: Mapping[str, Mapping[str, Any]] = {}
        self._last: dict[int, Mapping[str, Any]] = {}

    def reset(self, slot: int, episode: EpisodeSpec) -> None:
        self._last.pop(slot, None)
        self._raw, _ = self._sim.unwrapped.reset(seed=episode.seed, env_ids=self._ids(slot))

    def observe(self, slot: int, cameras: Sequence[str]) -> Observation:
        observation: Observation = {"task": self._task.instruction}
        if self._config.state_keys:
            states = self._last.get(slot, self._raw)["policy"]
            parts = [_entry(states, key)[slot].reshape(-1) for key in self._config.state_keys]
            observation[STATE] = np.concatenate(parts).astype(np.float32)
        for key in cameras:
            if key not in self._task.images:
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(self._task.images)}")
            observation[key] = self._picture(slot, key)
        return observation

    def step(self, actions: Mapping[int, np.ndarray]) -> dict[int, StepOutcome | Exception]:
        """Slots without an action get zeros, and drift: nobody is playing there."""
        every = np.zeros((self.n_slots, self._config.action_dim), dtype=np.float32)
        for slot, action in actions.items():
            every[slot] = action
        before = self._raw
        self._raw, reward, terminated, truncated, info = self._sim.step(self._on_device(every))
        rewards, ends, cuts = (np.asarray(as_numpy(part)).reshape(-1) for part in (reward, terminated, truncated))
        success = self._success(info)
        for slot in actions:
            if ends[slot] or cuts[slot]:
                self._last[slot] = _of_the_episode(info, before)
        return {
            slot: StepOutcome(
                float(rewards[slot]),
                bool(ends[slot]),
                bool(cuts[slot]),
                None if success is None else bool(success[slot]),
            )
            for slot in actions
        }

    def render(self, slot: int) -> np.ndarray:
        if not self._task.images:
            return np.zeros((240, 320, 3), np.uint8)
        return self._picture(slot, self._task.images[0])

    def close(self) -> None:
        sim, self._sim = self._sim, None
        if sim is not None:
            sim.close()

    def _picture(self, slot: int, key: str) -> np.ndarray:
        seen = self._last.get(slot, self._raw)
        picture = _entry(seen["camera_obs"], key[len(IMAGES) :])[slot][..., :3]
        if picture.dtype != np.uint8:
            raise ContractError(f"{self._task.name} draws {key} as {picture.dtype}; right is uint8")
        return np.array(picture, order="C")

    def _success(self, info: Mapping[str, Any]) -> np.ndarray | None:
        """``is_success`` of all slots, in the ``final_info`` of info, which is of the episode that ended where info is
        of the next, or in info itself; else Isaac Lab's termination named success."""
        final = info.get("final_info")
        for place in (final if isinstance(final, Mapping) else {}, info):
            if "is_success" in place:
                return np.broadcast_to(np.asarray(as_numpy(place["is_success"])).reshape(-1), (self.n_slots,))
        manager = getattr(self._sim.unwrapped, "termination_manager", None)
        if manager is not None and "success" in manager.active_terms:
            return np.asarray(as_numpy(manager.get_term("success"))).reshape(-1)
        return None

    def _ids(self, slot: int) -> Any:
        return self._on_device(np.array([slot]))

    def _on_device(self, array: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(array).to(self._config.device)


def _of_the_episode(info: Mapping[str, Any], before: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is shown of an episode that has just ended. Isaac Lab resets its scene in the same step and returns the next
    one: what is shown is the step before, unless info has the last observation."""
    final = final_observation(info)
    return final if isinstance(final, Mapping) else before


def _entry(entries: Mapping[str, Any], key: str) -> np.ndarray:
    if key not in entries:
        raise ContractError(f"Isaac Lab-Arena's observation has no {key}; it has: {', '.join(entries)}")
    return np.asarray(as_numpy(entries[key]))
