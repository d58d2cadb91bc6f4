"""A Gymnasium environment behind ``Env``: how it is made, observed, stepped and drawn."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.gym.action import ActionFitter
from robotrials.benchmarks.adapters.gym.answers import read_reset, read_step
from robotrials.benchmarks.adapters.gym.layout import IMAGE
from robotrials.benchmarks.adapters.gym.picture import DRAWS, FILM, picture_of
from robotrials.benchmarks.adapters.gym.reading import ObservationReader
from robotrials.benchmarks.adapters.gym.success import SuccessRule
from robotrials.benchmarks.base import Env, Observation, StepOutcome
from robotrials.benchmarks.mujoco_snapshot import data_arrays
from robotrials.benchmarks.quiet import keep_imports_quiet
from robotrials.errors import ConfigError, ContractError, NoPictureError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recipe:
    """What makes one environment and says how to look at it; all of it from ``--env.*``.

    ``imports`` are modules that register ids, ``kwargs`` goes to ``gymnasium.make``, ``max_steps`` of 0 leaves the step
    limit that the id is registered with. ``state``, ``environment_state`` and ``ignore`` as in ``lay_out``. ``draws``:
    what ``render()`` draws is observed as ``observation.image``.
    """

    id: str
    imports: tuple[str, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    max_steps: int = 0
    state: tuple[str, ...] = ()
    environment_state: tuple[str, ...] = ()
    draws: bool = False
    ignore: tuple[str, ...] = ()


def make_simulator(recipe: Recipe) -> Any:
    """The ``gymnasium.Env``, drawn to arrays where it can be; nothing checks it, and its step limit is the recipe's.

    Raises:
        ConfigError: an unknown id, a module that cannot be imported, or arguments that it does not take.
    """
    keep_imports_quiet()
    import gymnasium

    name = _register(recipe)
    try:
        spec = gymnasium.spec(name)
        kwargs: dict[str, Any] = dict(recipe.kwargs)
        modes = _render_modes(spec)
        drawn = next((mode for mode in DRAWS if mode in modes), None)
        if drawn:
            kwargs.setdefault("render_mode", drawn)
        if recipe.max_steps:
            kwargs["max_episode_steps"] = recipe.max_steps
        return gymnasium.make(name, disable_env_checker=True, **kwargs)
    except gymnasium.error.Error as error:
        where = "" if recipe.imports else " If a module registers it, name that: --env.imports=MODULE."
        raise ConfigError(f"--env.id={recipe.id}: {_sentence(str(error))}{where}") from error
    except (TypeError, ModuleNotFoundError) as error:
        raise ConfigError(f"--env.id={recipe.id} with --env.kwargs={dict(recipe.kwargs)}: {error}") from error


def _sentence(said: str) -> str:
    """With one stop at its end, which Gymnasium's guesses have: "Did you mean: `Hopper`?"."""
    said = said.strip().rstrip(".")
    return said if said.endswith(("?", "!")) else f"{said}."


def _register(recipe: Recipe) -> str:
    """Import what registers the id, and return the id without its module."""
    import gymnasium

    module, _, name = recipe.id.rpartition(":")
    for needed in (*recipe.imports, *([module] if module else [])):
        try:
            importlib.import_module(needed)
        except ImportError as error:
            raise ConfigError(f"--env.id={recipe.id}: importing {needed} failed: {error}") from error
    namespace = name.partition("/")[0]
    if name not in gymnasium.registry and namespace.isidentifier():
        # As lerobot-eval does: the namespace of an id is mostly the package that registers it.
        try:
            importlib.import_module(namespace)
        except ModuleNotFoundError as error:
            if error.name != namespace:
                raise ConfigError(f"--env.id={recipe.id}: importing {namespace} failed: {error}") from error
    return name


def _render_modes(spec: Any) -> Sequence[str]:
    from gymnasium.envs.registration import load_env_creator

    creator = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    metadata: Mapping[str, Any] = getattr(creator, "metadata", None) or {}
    return list(metadata.get("render_modes", ()))


def reader_of(simulator: Any, recipe: Recipe) -> ObservationReader:
    """What reads its observations, as the recipe says.

    Raises:
        ConfigError: as ``lay_out`` does.
    """
    try:
        return ObservationReader(
            simulator.observation_space, recipe.id, recipe.state, recipe.environment_state, recipe.ignore
        )
    except ConfigError as error:
        raise ConfigError(f"--env.id={recipe.id}: {error}") from None


class GymEnv(Env):
    """One environment. It is made once, or with ``rebuild`` for every episode.

    Whether an episode depends on its seed alone is the environment's doing as long as it is made once: all that
    Gymnasium offers is ``reset(seed=...)``. ``robotrials check-env gym`` finds out.
    """

    def __init__(
        self, task: TaskSpec, recipe: Recipe, success: SuccessRule, rebuild: bool = False, ends_on_success: bool = False
    ) -> None:
        self._task = task
        self._recipe = recipe
        self._success = success
        self._rebuild = rebuild
        self._ends_on_success = ends_on_success
        self._sim: Any = None
        self._raw: Any = None
        self._make()

    def _make(self) -> None:
        self._sim = make_simulator(self._recipe)
        self._reader = reader_of(self._sim, self._recipe)
        self._fit = ActionFitter(self._sim.action_space)
        self._still = StillPhysics(self._sim.unwrapped)
        self._fresh = True

    def reset(self, episode: EpisodeSpec) -> None:
        if self._rebuild and not self._fresh:
            self._close_forgiving()
        if self._sim is None:
            self._make()
        self._fresh = False
        # Some environments draw from their own spaces.
        self._sim.action_space.seed(episode.seed)
        self._sim.observation_space.seed(episode.seed)
        self._raw = read_reset(self._sim.reset(seed=episode.seed), self._task.name)

    def observe(self, cameras: Sequence[str]) -> Observation:
        """See ``Env.observe``. Only the image of ``Recipe.draws`` is drawn here: all others come with the step."""
        for key in cameras:
            if key not in self._task.images:
                raise ContractError(f"{self._task.name} has no camera {key}; it has: {', '.join(self._task.images)}")
        observation = self._reader.read(self._raw, cameras)
        observation["task"] = self._task.instruction
        if self._recipe.draws and IMAGE in cameras:
            observation[IMAGE] = self.render()
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply (A,), fitted to the environment's action space (``gym_action``)."""
        answer = self._sim.step(self._fit(action))
        self._raw, reward, terminated, truncated, info = read_step(answer, self._task.name)
        success = self._success.read(reward, terminated, truncated, info)
        ended = terminated or (self._ends_on_success and bool(success))
        return StepOutcome(reward, ended, truncated, success)

    def render(self) -> np.ndarray:
        """What the environment draws; where it draws nothing, the first image that it observes.

        Raises:
            NoPictureError: it has neither.
            ContractError: what it draws is no picture.
        """
        mode, picture = self._sim.render_mode, None
        if mode in DRAWS:
            picture = picture_of(self._draw(), self._task.name, mode == FILM)
        if picture is None:
            images = [*self._reader.layout.images][:1]
            seen = self._reader.read(self._raw, images)
            picture = picture_of(next((seen[key] for key in images), None), self._task.name)
        if picture is None:
            why = (
                f"render() returns nothing, though render_mode is {mode}" if mode in DRAWS else f"render_mode is {mode}"
            )
            raise NoPictureError(
                f"{self._task.name} draws nothing ({why}) and observes no image", by_design=mode is None
            )
        return picture

    def _draw(self) -> Any:
        from gymnasium.error import DependencyNotInstalled

        try:
            with self._still:
                return self._sim.render()
        except DependencyNotInstalled as error:
            raise ConfigError(
                f"{self._task.name} cannot be drawn: {error}; or do without: --eval.record=none"
            ) from error

    def close(self) -> None:
        if self._sim is None:
            return
        sim, self._sim = self._sim, None
        self._still = StillPhysics(None)
        sim.close()

    def _close_forgiving(self) -> None:
        """Before it is built anew: that it cannot be closed is for the log."""
        try:
            self.close()
        except Exception as error:  # noqa: BLE001  a simulator may raise anything on its way out
            log.warning("closing %s failed: %s: %s", self._task.name, type(error).__name__, error)


class StillPhysics:
    """Puts a MuJoCo environment's data and sites back after it has drawn; does nothing for others.

    Gymnasium-Robotics moves the goal's mark and runs the simulator forward in order to draw, which changes how the
    solver starts its next step: FetchPickAndPlace goes another way after it was looked at (measured with MuJoCo 3.8.1).
    """

    def __init__(self, unwrapped: Any) -> None:
        data = getattr(unwrapped, "data", None)
        model: Any = getattr(unwrapped, "model", None)
        self._is_mujoco = type(data).__name__ == "MjData" and type(model).__name__ == "MjModel"
        if self._is_mujoco:
            self._unwrapped = unwrapped
            self._arrays = [*data_arrays(data), model.site_pos]

    def __enter__(self) -> None:
        if self._is_mujoco:
            self._make_current()
            self._kept = [array.copy() for array in self._arrays]

    def __exit__(self, *exception: object) -> None:
        if self._is_mujoco:
            for array, value in zip(self._arrays, self._kept, strict=True):
                array[...] = value

    def _make_current(self) -> None:
        """Gymnasium makes its context current once: without this, two simulators would draw with each other's."""
        viewer = getattr(getattr(self._unwrapped, "mujoco_renderer", None), "viewer", None)
        if viewer is not None:
            viewer.make_context_current()
