"""LIBERO's simulator (robosuite 1.4.0 on MuJoCo), made to start every episode alike and to render on demand.

What LeRobot 0.6.1 runs (``OffScreenRenderEnv`` with ``hard_reset=True``) compiles the model anew for every episode, and
renders every camera at every step. This does neither, and shows the same states, rewards and pixels, bit for bit, as
that does in the first episode of a fresh environment. Three traps are behind the rest of this file:

- A reset draws from NumPy's global generator once for every initializer of a drawer or a stove, and each load of the
  model appends those initializers again. So where fixtures stand depends on how often the environment was reset.
  Here it is always as in LeRobot's first episode, which comes after three loads.
- robosuite's sensors have a clock of their own, which sums up floating-point time steps. What an observation shows is
  the state not after the 25th substep of a step but after the one, usually the 24th, at which that clock struck, and
  positions in it are those before that substep. ``_tick`` keeps the same clock, and keeps aside what a picture needs.
- The contact solver starts from its last solution, so even a call of ``mj_forward`` too many shows in the last bits.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

LOADS_BEFORE_FIRST_EPISODE = 3
"""Of the model, in LeRobot: by the constructor, by the reset that follows it, and by the first seeded reset."""

NO_OP = (0, 0, 0, 0, 0, 0, -1)
"""The action with which objects settle: no motion, gripper open."""

# What mjv_updateScene reads of the data. All of it is computed from the positions before a substep.
_SHOWN = (
    "qpos",
    "xpos",
    "xquat",
    "xmat",
    "xipos",
    "ximat",
    "geom_xpos",
    "geom_xmat",
    "site_xpos",
    "site_xmat",
    "cam_xpos",
    "cam_xmat",
    "light_xpos",
    "light_xdir",
)


class LiberoScene:
    """One task's simulator.

    ``kwargs`` go to the constructor of the problem, the robosuite environment that a BDDL file names.
    """

    def __init__(self, bddl_file: Path, control_hz: float, kwargs: Mapping[str, Any] | None = None) -> None:
        import mujoco

        with _without_warnings():
            import robosuite
        from libero.libero.envs import TASK_MAPPING
        from libero.libero.envs.bddl_utils import get_problem_info
        from robosuite.utils.errors import RandomizationError

        self._mujoco = mujoco
        self._randomization_error = RandomizationError
        problem = TASK_MAPPING[get_problem_info(str(bddl_file))["problem_name"]]
        self._env = _keeping_the_model(problem)(
            str(bddl_file),
            # The defaults of LIBERO's ControlEnv, but for rendering, and for a horizon of 1000 steps.
            **{
                "robots": ["Panda"],
                "controller_configs": robosuite.load_controller_config(default_controller="OSC_POSE"),
                "initialization_noise": None,
                "use_camera_obs": False,
                "has_renderer": False,
                "has_offscreen_renderer": False,
                "control_freq": control_hz,
                "ignore_done": True,
                "hard_reset": False,
                **(kwargs or {}),
            },
        )
        self._model = self._env.sim.model._model
        self._data = self._env.sim.data._data
        self._as_built: ModelValues = self._env.as_built
        self._initializers = list(self._env.object_property_initializers)
        self._look = LiberoView(self._model, self._data)
        self._substep = Substep(self._env.sim)
        self._period = 1.0 / control_hz
        self._since_sample = 0.0
        self._sampled = False
        self.eef_pos = np.zeros(3)
        self.eef_quat = np.zeros(4)
        self.gripper_qpos = np.zeros(2)
        # robosuite's own would ask sixty sensors at each of the 25 substeps.
        self._env._update_observables = self._tick
        self._env._get_observations = lambda force_update=False: {}

    @property
    def state_size(self) -> int:
        """The length of an initial state: time, positions, velocities."""
        return int(1 + self._model.nq + self._model.nv)

    @property
    def controller_rotation(self) -> np.ndarray:
        """The gripper's rotation (3, 3) as its controller last saw it."""
        return np.array(self._env.robots[0].controller.ee_ori_mat)

    @property
    def cameras(self) -> list[str]:
        return list(self._env.sim.model.camera_names)

    @property
    def state(self) -> np.ndarray:
        """Time, positions and velocities now, (1 + nq + nv,) float64."""
        flat: np.ndarray = self._env.sim.get_state().flatten()
        return flat

    def reset(self, seed: int, init_state: np.ndarray | None, settling_steps: int, absolute: bool) -> None:
        """To the start of an episode: the seed places the fixtures, ``init_state`` all that moves.

        Then ``settling_steps`` steps without motion. ``absolute``: from here on actions are poses, not offsets.
        """
        np.random.seed(seed)
        loads = LOADS_BEFORE_FIRST_EPISODE
        while True:
            try:
                self._hard_reset(loads)
                break
            except self._randomization_error:  # no room found for an object; LIBERO tries again, from a new model
                loads += 1
        if init_state is not None:
            env = self._env
            env.sim.set_state_from_flattened(init_state)
            env.sim.forward()
            env._check_success()
            env._post_process()
            self._tick(force=True)
        for _ in range(settling_steps):
            with self._substep:
                self._env.step(list(NO_OP))
        for robot in self._env.robots:
            robot.controller.use_delta = not absolute

    def step(self, action: np.ndarray) -> tuple[float, bool]:
        """Apply (7,): reward, and whether the task is done."""
        with self._substep:
            _, reward, done, _ = self._env.step(action)
        return float(reward), bool(done)

    def render(self, camera: str, width: int, height: int) -> np.ndarray:
        """What ``camera`` saw when the last observation was due: (H, W, 3) uint8, the first row at the bottom."""
        return self._look.render(self._env.sim.model.camera_name2id(camera), width, height)

    def close(self) -> None:
        self._look.close()

    def _hard_reset(self, loads: int) -> None:
        """``env.reset()`` as it goes when it has loaded the model for the ``loads``-th time, without the loading."""
        env = self._env
        self._as_built.restore()
        env.object_property_initializers = self._initializers * loads
        for robot in env.robots:
            robot.gripper.current_action = np.zeros(robot.gripper.dof)
        for thing in (*env.objects, *env.fixtures):
            _switch_off(thing)
        env.sim.reset()
        env.sim.forward()  # in _initialize_sim
        env.sim.forward()  # in the constructor of its rendering context
        self._since_sample = 0.0
        env._reset_internal()
        env.sim.forward()
        env.visualize(vis_settings=dict.fromkeys(env._visualizations, False))
        self._tick(force=True)

    def _tick(self, force: bool = False) -> None:
        """robosuite's ``Observable.update`` for all sensors at once, called after every substep."""
        self._since_sample += self._env.model_timestep
        if force or (not self._sampled and self._period >= self._since_sample):
            self._sample()
            self._sampled = True
        if self._since_sample >= self._period:
            if not self._sampled:
                self._sample()
            self._since_sample %= self._period
            self._sampled = False

    def _sample(self) -> None:
        data, robot = self._data, self._env.robots[0]
        self._look.remember()
        self.eef_pos = np.array(data.site_xpos[robot.eef_site_id])
        # MuJoCo's order is wxyz, robosuite's xyzw.
        self.eef_quat = np.array(self._env.sim.data.get_body_xquat(robot.robot_model.eef_name))[[1, 2, 3, 0]]
        self.gripper_qpos = np.array([data.qpos[i] for i in robot._ref_gripper_joint_pos_indexes])


@contextmanager
def _without_warnings() -> Iterator[None]:
    """robosuite warns on import that a file of macros is missing, which nobody needs, through handlers of its own."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


class Substep:
    """Within a ``with``, a simulation that computes once what robosuite has it compute three times a substep.

    robosuite calls ``mj_forward``, ``mj_forward`` again in its controller, sets the controls, and calls ``mj_step``.
    All three find the same positions and velocities, so contacts and inertia are the same: only the first computes
    them. The rest is done each time, for the solver starts from its last solution. No bit differs.
    """

    def __init__(self, sim: Any) -> None:
        import mujoco

        self._mujoco = mujoco
        self._sim = sim
        self._model, self._data = sim.model._model, sim.data._data
        self._applies = self._model.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4
        self._current = False

    def __enter__(self) -> None:
        if self._applies:
            self._current = False
            self._sim.forward, self._sim.step = self._forward, self._step

    def __exit__(self, *raised: object) -> None:
        if self._applies:
            del self._sim.forward, self._sim.step

    def _forward(self) -> None:
        if self._current:
            self._mujoco.mj_forwardSkip(self._model, self._data, self._mujoco.mjtStage.mjSTAGE_VEL, 0)
        else:
            self._mujoco.mj_forward(self._model, self._data)
            self._current = True

    def _step(self, with_udd: bool = True) -> None:
        data = self._data
        # mj_step begins with a check that resets the simulation when these are out of bounds, or no numbers.
        if self._current and np.abs(data.qpos).max() < 1e10 and np.abs(data.qvel).max() < 1e10:
            self._mujoco.mj_step2(self._model, data)
        else:
            self._mujoco.mj_step(self._model, data)
        self._current = False


class ModelValues:
    """The numbers of a compiled model that a task can change; those of meshes and textures it does not."""

    _CONSTANT = ("bvh_", "hfield_", "mesh_", "oct_", "skin_", "tex_", "names", "paths", "text", "_")

    def __init__(self, model: Any) -> None:
        names = [name for name in dir(model) if not name.startswith(self._CONSTANT)]
        arrays = [value for name in names if isinstance(value := getattr(model, name), np.ndarray) and value.size]
        self._kept = [(array, array.copy()) for array in arrays]

    def restore(self) -> None:
        for array, value in self._kept:
            array[...] = value


class LiberoView:
    """What there was to see when an observation was due, and the camera to see it with, made when first asked for."""

    def __init__(self, model: Any, data: Any) -> None:
        import mujoco

        self._model = model
        self._then = mujoco.MjData(model)
        self._pairs = [(getattr(self._then, name), getattr(data, name)) for name in _SHOWN if getattr(data, name).size]
        # Lamps and the like are switched on by making a site visible, which takes effect after the observation.
        self._site_rgba = model.site_rgba.copy()
        self._context: Any = None

    def remember(self) -> None:
        for then, now in self._pairs:
            np.copyto(then, now)
        np.copyto(self._site_rgba, self._model.site_rgba)

    def render(self, camera: int, width: int, height: int) -> np.ndarray:
        if self._context is None:
            self._context = self._make_context()
        self._context.gl_ctx.make_current()
        now = self._model.site_rgba.copy()
        self._model.site_rgba[:] = self._site_rgba
        self._context.render(width=width, height=height, camera_id=camera)
        self._model.site_rgba[:] = now
        pixels: np.ndarray = self._context.read_pixels(width, height)
        return pixels

    def close(self) -> None:
        if self._context is None:
            return
        self._context.gl_ctx.make_current()
        self._context = None  # frees it, in the right context
        atexit.unregister(self.close)

    def _make_context(self) -> Any:
        from robosuite.utils.binding_utils import MjRenderContextOffscreen

        # robosuite's context, so that pictures are its own; of a simulation that it cannot step.
        seen = SimpleNamespace(
            model=_Wrapped(_model=self._model, vis=self._model.vis),
            data=_Wrapped(_data=self._then),
            forward=lambda: None,
            add_render_context=lambda context: None,
        )
        context = MjRenderContextOffscreen(seen, device_id=-1)
        context.vopt.geomgroup[0] = 0  # collision shapes
        context.vopt.geomgroup[1] = 1
        # Registered now because hooks run last in, first out: a context freed after EGL has ended prints tracebacks.
        atexit.register(self.close)
        return context


class _Wrapped(SimpleNamespace):
    """robosuite wraps MuJoCo's model and data in objects that hold them as ``_model`` and ``_data``."""


def _keeping_the_model(problem: type) -> type:
    """``problem`` with an attribute ``as_built``: the model as compiled, before the first reset moves its fixtures."""

    class Keeping(problem):  # type: ignore[misc]
        def _initialize_sim(self, xml_string: str | None = None) -> None:
            super()._initialize_sim(xml_string)
            self.as_built = ModelValues(self.sim.model._model)

    Keeping.__name__ = problem.__name__  # LIBERO checks it against the BDDL file
    return Keeping


def _switch_off(thing: Any) -> None:
    """Undo what a task has switched on: an object keeps which of its marks are visible."""
    sites = thing.object_properties.get("vis_site_names") if hasattr(thing, "object_properties") else None
    if sites:
        for name, (site, _) in sites.items():
            sites[name] = (site, False)


def quaternion_to_axis_angle(quat: np.ndarray) -> np.ndarray:
    """(4,) xyzw to (3,) float32 axis times angle, as LeRobot's LiberoProcessorStep, in float32.

    Its angle runs to 2 pi, where the shorter way round would be the other: checkpoints were trained on that.
    """
    x = np.asarray(quat, dtype=np.float32)
    w = np.clip(x[3], np.float32(-1.0), np.float32(1.0))
    length = np.sqrt(np.maximum(np.float32(1.0) - w * w, np.float32(0.0)))
    if length <= np.float32(1e-10):
        return np.zeros(3, dtype=np.float32)
    angle = np.float32(2.0) * np.arccos(w)
    axis_angle: np.ndarray = x[:3] / length * angle
    return axis_angle
