"""Meta-World v3 (metaworld 3.0.0 and 3.1.1): fifty manipulation tasks of a Sawyer arm in MuJoCo.

Scenes, observations, rewards and success are those of lerobot-eval (LeRobot 0.6.1, ``lerobot/envs/metaworld.py``) in
a fresh environment, bit for bit. Tasks carry hidden state from one episode to the next (measured over all fifty: it
shows in the first picture of push-v3 and push-back-v3, where the goal's mark sits by up to 1e-5 m where the episode
before has left it); here every episode starts from that same fresh state, so its seed alone decides it.
"""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.metaworld.tasks import GROUPS, INSTRUCTION, canonical
from robotrials.benchmarks.base import MAX_SIDE, Benchmark, BenchmarkConfig, Env, Expert, Observation, StepOutcome
from robotrials.benchmarks.mujoco_snapshot import Snapshot
from robotrials.environments.installation import GL_LIBRARIES, Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import nearest
from robotrials.plan.task import ActionSpec, Feature, TaskSpec

IMAGE, STATE, FULL_STATE = "observation.image", "observation.state", "observation.environment_state"
MAX_STEPS = 500  # the simulator refuses to step on
CONTROL_HZ = 80.0
CAMERAS = ("topview", "corner", "corner2", "corner3", "corner4", "behindGripper", "gripperPOV")

_SHOWN = {"pixels": (IMAGE,), "pixels_agent_pos": (IMAGE, STATE, FULL_STATE), "state": (STATE, FULL_STATE)}

# LeRobot moves this camera nearer; metaworld 3.1.1 has the result as a camera of its own, corner4.
_CORNER2_POSITION = (0.75, 0.075, 0.7)

# LeRobot takes the goal of a fresh environment from MT1(seed=42), before it lets seeds draw it.
_WARM_UP_SEED = 42


@dataclass(frozen=True)
class MetaWorldConfig(BenchmarkConfig):
    """``--env.*`` of Meta-World."""

    task: str = option("", "tasks and groups, comma-separated: push-v3, easy, medium, hard, very_hard, all")
    camera_name: str = option("corner2", "camera of observation.image and of videos")
    observation_width: int = option(480, "width of observation.image in pixels", least=1, most=MAX_SIDE)
    observation_height: int = option(480, "height of observation.image in pixels", least=1, most=MAX_SIDE)
    obs_type: str = option("pixels_agent_pos", "what is observed; state includes the full one", choices=tuple(_SHOWN))
    episode_length: int = option(MAX_STEPS, "step limit of an episode, at most 500", least=1, most=MAX_STEPS)
    fps: int = option(80, "control rate in Hz; taken for lerobot-eval's sake, the simulator has this one only", least=1)


class MetaWorld(Benchmark):
    """``--env.type=metaworld``."""

    name = "metaworld"
    extra = "metaworld"
    modules = ("metaworld", "mujoco", "packaging", "PIL")
    packages = ("metaworld", "mujoco", "gymnasium", "numpy")
    Config = MetaWorldConfig
    uses_gl = True
    installation = Installation(
        requirements=("metaworld==3.1.1", "mujoco==3.3.0", "gymnasium==1.4.0", "packaging", "pillow"),
        system=GL_LIBRARIES,
    )

    def __init__(self, config: MetaWorldConfig) -> None:
        super().__init__(config)
        config.require_fps(CONTROL_HZ, "metaworld")

    @classmethod
    def conflict(cls, versions: Mapping[str, str]) -> str | None:
        """Measured: metaworld 3.0.0 and 3.1.1 build all tasks on MuJoCo 3.3 to 3.8, none on MuJoCo 4."""
        mujoco = versions.get("mujoco", "")
        if mujoco.split(".")[0].isdigit() and int(mujoco.split(".")[0]) >= 4:
            return (
                f"metaworld {versions.get('metaworld')} cannot build its tasks on mujoco {mujoco}: "
                'pip uninstall -y mujoco mujoco-core mujoco-studio && pip install "mujoco>=3.3.0,<3.9"'
            )
        return None

    def tasks(self) -> list[TaskSpec]:
        """As ``Benchmark.tasks``: every group in the order asked for, tasks within in LeRobot's order."""
        asked = [name for part in self.config.task.split(",") if (name := canonical(part))]
        if not asked:
            raise ConfigError(f"--env.task is needed: tasks such as push-v3, or groups: {', '.join(GROUPS)}")
        return [self._spec(suite, i, task) for suite in asked for i, task in enumerate(self._members(suite))]

    def make(self, task: TaskSpec) -> MetaWorldEnv:
        return MetaWorldEnv(task, self.config)

    @staticmethod
    def _members(suite: str) -> tuple[str, ...]:
        if suite in GROUPS:
            return GROUPS[suite]
        if suite in INSTRUCTION:
            return (suite,)
        hint = nearest(suite, [*GROUPS, *INSTRUCTION])
        raise ConfigError(
            f"metaworld has no task or group {suite}{hint}; groups: {', '.join(GROUPS)}; "
            f"tasks: {', '.join(sorted(INSTRUCTION))}"
        )

    def _spec(self, suite: str, position: int, name: str) -> TaskSpec:
        config = self.config
        _require_camera(config.camera_name, CAMERAS)
        features = {
            IMAGE: Feature((config.observation_height, config.observation_width, 3), "uint8"),
            STATE: Feature((4,)),
            FULL_STATE: Feature((39,)),
        }
        shown = _SHOWN[config.obs_type]
        return TaskSpec(
            suite=suite,
            name=name,
            id=position,
            instruction=INSTRUCTION[name],
            max_steps=config.episode_length,
            control_hz=CONTROL_HZ,
            observations={key: features[key] for key in shown},
            action=ActionSpec(4, (-1.0,) * 4, (1.0,) * 4),
            record_key=IMAGE if IMAGE in shown else None,
        )


class MetaWorldEnv(Env):
    """One task's simulator. No rendering context is made before the first picture is asked for."""

    def __init__(self, task: TaskSpec, config: MetaWorldConfig) -> None:
        self._task = task
        self._upside_down = config.camera_name.startswith("corner")  # Meta-World mounts these four on their heads
        self._sim = _fresh_simulator(task.name, config)
        # Every task's reset begins by moving the hand, 250 steps of physics. From one start they have one end: that is
        # where episodes start, and it halves the cost of a reset.
        self._sim._reset_hand()
        self._start = Snapshot(self._sim)
        self._raw = np.zeros(39)
        self._viewer: Any = None

    def reset(self, episode: EpisodeSpec) -> None:
        self._start.restore()
        self._sim.seed(episode.seed)
        attributes = vars(self._sim)
        # Hides the method until it is called once: the snapshot has been there already (see __init__).
        attributes["_reset_hand"] = lambda: attributes.pop("_reset_hand")
        self._raw, _ = self._sim.reset()

    def observe(self, cameras: Sequence[str]) -> Observation:
        """See ``Env.observe``: position (3,) and gripper opening; the full state (39,); the image if asked for."""
        # From the last answer of the simulator: asking it again would shift its stack of two frames.
        raw = self._raw.astype(np.float32)
        observation: Observation = {"task": self._task.instruction}
        if STATE in self._task.observations:
            observation[STATE] = raw[:4].copy()
            observation[FULL_STATE] = raw
        for key in cameras:
            if key not in self._task.images:
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(self._task.images)}")
            observation[key] = self.render()
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply (4,): an offset of the hand and a gripper effort, each in [-1, 1]. Success ends the episode."""
        # lerobot-eval steps with float32, and Meta-World scales an action in the precision it comes in.
        self._raw, reward, terminated, truncated, info = self._sim.step(np.asarray(action, dtype=np.float32))
        flag = info.get("success")
        success = None if flag is None else bool(flag)
        return StepOutcome(float(reward), bool(terminated or success), bool(truncated), success)

    def render(self) -> np.ndarray:
        if self._viewer is not None:
            # Gymnasium makes its context current once and for all, so two simulators in one process would draw with
            # each other's textures.
            self._viewer.make_context_current()
        pixels = self._sim.render()
        if self._viewer is None:
            self._viewer = self._sim.mujoco_renderer.viewer
            # Registered now because hooks run last in, first out, and MuJoCo registers the end of EGL as it makes its
            # first context: a context freed after that prints tracebacks.
            atexit.register(self.close)
        return np.ascontiguousarray(pixels[::-1, ::-1] if self._upside_down else pixels)

    def close(self) -> None:
        if self._viewer is None:
            return
        self._viewer.make_context_current()
        self._viewer.con.free()  # here, or the garbage collector frees it in whatever context is current by then
        self._viewer = None
        self._sim.close()
        atexit.unregister(self.close)

    def expert(self) -> Expert:
        return _ScriptedExpert(self, self._task.name)


class _ScriptedExpert(Expert):
    """Meta-World's scripted policy for a task. It reads the simulator's observation in full precision."""

    def __init__(self, env: MetaWorldEnv, task: str) -> None:
        from metaworld.policies import ENV_POLICY_MAP

        # These policies warn at nearly every step that their actions will be clipped, as they are meant to be.
        warnings.filterwarnings("ignore", message=r"Constant\(s\) may be too high")
        self._env = env
        self._policy = ENV_POLICY_MAP[task]()

    def act(self) -> np.ndarray:
        action: np.ndarray = np.clip(self._policy.get_action(self._env._raw), -1.0, 1.0)
        return action


def _fresh_simulator(name: str, config: MetaWorldConfig) -> Any:
    """The simulator as LeRobot has it before the first seeded reset: with the goal in view, and reset once to the
    first goal of ``metaworld.MT1(name, seed=42)``.

    MT1 itself is not built: it builds the simulator once more and resets it 50 times, 0.8 CPU seconds for one goal.
    """
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS

    sim = ALL_V3_ENVIRONMENTS[name](
        render_mode="rgb_array",
        camera_name=config.camera_name,
        width=config.observation_width,
        height=config.observation_height,
    )
    _place_camera(sim, config.camera_name)
    as_built = Snapshot(sim)
    sim._set_task_called = True
    goal = _first_goal(sim)
    as_built.restore()
    # What set_task does with an MT1 task, which holds the goal as a pickle.
    sim._set_task_called = True
    sim._last_rand_vec = goal
    sim._partially_observable = False
    del sim.sawyer_observation_space  # cached; its bounds depend on whether the goal is in view
    sim.sawyer_observation_space  # noqa: B018  (cached anew, here and not in every episode)
    sim.reset()
    # From here on reset draws, from the generator that seed() sets.
    sim._freeze_rand_vec = False
    sim.seeded_rand_vec = True
    return sim


def _first_goal(sim: Any) -> np.ndarray:
    """The vector that MT1(seed=42) draws first, from numpy's global generator, which is left as it was."""
    state = np.random.get_state()
    np.random.seed(_WARM_UP_SEED)
    sim._freeze_rand_vec = False
    sim.reset()
    np.random.set_state(state)
    return np.array(sim._last_rand_vec)


def _place_camera(sim: Any, name: str) -> None:
    """Check that the camera exists (MuJoCo would show a free camera's view instead), and move corner2."""
    cameras = [sim.model.camera(i).name for i in range(sim.model.ncam)]
    _require_camera(name, cameras)
    if name == "corner2":
        sim.model.cam_pos[cameras.index(name)] = _CORNER2_POSITION


def _require_camera(name: str, cameras: Sequence[str]) -> None:
    if name not in cameras:
        raise ConfigError(f"--env.camera_name={name}: metaworld has {', '.join(cameras)}{nearest(name, cameras)}")
