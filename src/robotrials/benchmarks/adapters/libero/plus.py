"""LIBERO-plus: ten thousand variants of LIBERO's tasks, each perturbed in one of seven dimensions.

It comes as a repository, named by ``--env.root``, and about 6 GB of assets that belong at ``libero/libero/assets``
there. Success is reported by dimension, which is each task's group. Scenes start and are rendered as in
``benchmarks/adapters/libero/benchmark.py``; sensor noise is LIBERO-plus's own, drawn from episode and step instead of
from whatever ran before, so that a step looks the same whether or not the one before it was looked at.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.libero import files, plus_tasks
from robotrials.benchmarks.adapters.libero.benchmark import LiberoConfig, LiberoEnv, check, conflict, task_spec
from robotrials.benchmarks.adapters.libero.scene import LiberoScene
from robotrials.benchmarks.adapters.libero.tasks import LiberoTask, asked_suites, select
from robotrials.benchmarks.base import Benchmark, StepOutcome
from robotrials.environments.installation import GL_LIBRARIES, Installation
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec

log = logging.getLogger(__name__)

_NOISY_CAMERA = "agentview"
_NOISES = ("motion_blur", "gaussian_blur", "zoom_blur", "fog", "glass_blur")
_MOST_SHOWN = 10  # of tasks in a message
_FOG_SIZE = 256  # the pattern's; LIBERO-plus cannot lay it over larger images

# The view as it is and the arm where it always starts: what a name without these numbers means.
_UNCHANGED = {
    "horizon_view": 0,
    "vertical_view": 0,
    "scale_factor": 1.0,
    "end_point_rot": 0,
    "end_point_vertical": 0,
    "init_state": 0,
}


@dataclass(frozen=True)
class LiberoPlusConfig(LiberoConfig):
    """``--env.*`` of LIBERO-plus."""

    task: str = option("libero_spatial", "suites, comma-separated: " + ", ".join((*plus_tasks.SUITES, "all")))
    root: Path | None = option(None, "folder of the LIBERO-plus checkout, with its assets in libero/libero/assets")
    perturbation: str = option("", "only these dimensions: " + ", ".join(plus_tasks.DIMENSIONS.values()))


class LiberoPlus(Benchmark):
    """``--env.type=libero_plus``."""

    name = "libero_plus"
    extra = "libero-plus"
    experts = False
    modules = ("robosuite", "bddl", "mujoco", "skimage", "cv2")
    packages = ("robosuite", "mujoco", "numpy", "numba", "scipy", "scikit-image", "Wand")
    Config = LiberoPlusConfig
    uses_gl = True
    installation = Installation(
        requirements=(
            "robosuite==1.4.0",
            "mujoco==3.8.1",
            "numpy==1.26.4",
            "bddl==1.0.1",
            "opencv-python-headless==4.11.0.86",
            "scikit-image==0.26.0",
            "scipy==1.17.1",
            "numba==0.68.1",
            "wand==0.7.2",
            "gymnasium==1.4.0",
            "easydict==1.14",
            "cloudpickle==3.1.3",
            "future==1.0.0",
            "matplotlib==3.11.2",
            "termcolor==3.3.0",
        ),
        python=">=3.11,<3.12",
        system=(*GL_LIBRARIES, "libglib2.0-0", "libmagickwand-6.q16-6"),
    )

    def __init__(self, config: LiberoPlusConfig) -> None:
        super().__init__(config)
        check(config)
        known = plus_tasks.DIMENSIONS.values()
        for dimension in self._dimensions:
            if dimension not in known:
                raise ConfigError(f"--env.perturbation={dimension}: known are {', '.join(known)}")

    @classmethod
    def conflict(cls, versions: Mapping[str, str]) -> str | None:
        """As for LIBERO; its noise is written for NumPy 1."""
        numpy = versions.get("numpy", "1")
        if numpy.split(".")[0] != "1":
            return f'LIBERO-plus needs numpy below 2, but {numpy} is installed: pip install "numpy==1.26.4"'
        return conflict(versions)

    @property
    def _dimensions(self) -> list[str]:
        return [name.strip() for name in self.config.perturbation.split(",") if name.strip()]

    @property
    def _folder(self) -> Path:
        if self.config.root is None:
            raise ConfigError("--env.root is needed: the folder of a checkout of sylvestf/LIBERO-plus")
        return plus_tasks.library(self.config.root)

    def tasks(self) -> list[TaskSpec]:
        """As ``Benchmark.tasks``: suites in the order asked for, tasks in the checkout's order."""
        suites = asked_suites(self.config.task, plus_tasks.SUITES)
        if not suites:
            raise ConfigError(f"--env.task is needed: one or more of {', '.join(plus_tasks.SUITES)}")
        chosen = [task for suite in suites for task in self._chosen(plus_tasks.members(self._folder, suite), suite)]
        if not chosen:
            wanted = f" that --env.perturbation={self.config.perturbation} leaves" if self._dimensions else ""
            ids = f" in --env.task_ids={self.config.task_ids}" if self.config.numbers is not None else ""
            raise ConfigError(f"{', '.join(suites)} has no task{wanted}{ids}")
        return [task_spec(task, self.config, {}) for task in chosen]

    def _chosen(self, members: Sequence[LiberoTask], suite: str) -> list[LiberoTask]:
        """Those of a suite that both ``task_ids`` and ``perturbation`` choose.

        Raises:
            ConfigError: a number of ``task_ids`` that ``perturbation`` leaves out.
        """
        wanted = self._dimensions
        named = select(members, self.config.numbers, suite)
        dropped = [task for task in named if wanted and task.group not in wanted]
        if dropped and self.config.numbers is not None:
            shown = [f"{task.id} ({task.group})" for task in dropped[:_MOST_SHOWN]]
            more = f" and {len(dropped) - _MOST_SHOWN} more" if len(dropped) > _MOST_SHOWN else ""
            raise ConfigError(
                f"--env.task_ids names tasks of {suite} that --env.perturbation={self.config.perturbation} leaves "
                f"out: {', '.join(shown)}{more}; leave them or --env.perturbation out"
            )
        return [task for task in named if not wanted or task.group in wanted]

    def make(self, task: TaskSpec) -> LiberoPlusEnv:
        folder = self._folder
        files.configure(folder)
        _import_checkout(folder)
        numbers = scene_numbers(task.name)
        noise = numbers.pop("noise")
        if 31 <= noise <= 40 and max(self.config.observation_width, self.config.observation_height) > _FOG_SIZE:
            raise ConfigError(
                f"{task.name} adds fog, which LIBERO-plus can do to images of at most {_FOG_SIZE} pixels a side: "
                f"--env.observation_width={_FOG_SIZE} --env.observation_height={_FOG_SIZE}"
            )
        if noise:
            _require_wand(task.name)
        start = int(numbers["init_state"])
        kwargs = {**numbers, "robots": [f"Panda{start}" if start else "Panda"]}
        scene = LiberoScene(plus_tasks.bddl_file(folder, task.suite, task.name), self.config.fps, kwargs)
        return LiberoPlusEnv(task, self.config, scene, self._states(folder, task, scene), noise)

    def _states(self, folder: Path, task: TaskSpec, scene: LiberoScene) -> np.ndarray | None:
        if not self.config.init_states:
            return None
        path = plus_tasks.states_file(folder, task.suite, task.name)
        states = np.atleast_2d(files.load_states(path))
        if states.shape[1] != scene.state_size:
            # A layout may add objects to the scene that its states were stored for.
            log.warning(
                "%s: %s holds states of %d numbers, the scene has %d; its episodes start where the seed places things",
                *(task.name, path.name, states.shape[1], scene.state_size),
            )
            return None
        return states


class LiberoPlusEnv(LiberoEnv):
    """A LIBERO scene whose outer camera may be noisy: ``noise`` is LIBERO-plus's number, ten severities of a kind."""

    def __init__(
        self, task: TaskSpec, config: LiberoPlusConfig, scene: LiberoScene, states: np.ndarray | None, noise: int
    ) -> None:
        super().__init__(task, config, scene, states)
        self._noise = noise
        self._episode: EpisodeSpec | None = None
        self._step = 0

    def reset(self, episode: EpisodeSpec) -> None:
        super().reset(episode)
        self._episode, self._step = episode, 0

    def step(self, action: np.ndarray) -> StepOutcome:
        self._step += 1
        return super().step(action)

    def _picture(self, key: str) -> np.ndarray:
        picture = super()._picture(key)
        if not self._noise or self._cameras[key] != _NOISY_CAMERA or self._episode is None:
            return picture
        from PIL import Image

        kind, severity = divmod(self._noise - 1, 10)
        spoil = getattr(sys.modules["libero.libero.envs.env_wrapper"], _NOISES[kind])
        before = np.random.get_state()
        # LIBERO-plus draws from the global generator.
        np.random.seed(int(self._episode.rng(f"noise/{self._step}").integers(2**32)))
        try:
            raw = np.ascontiguousarray(picture[::-1, ::-1])  # as the simulator has it, and LIBERO-plus gets it
            spoiled = np.asarray(spoil(Image.fromarray(raw), severity=severity + 1)).astype(np.uint8)
        finally:
            np.random.set_state(before)
        return np.ascontiguousarray(spoiled[::-1, ::-1])


def scene_numbers(name: str) -> dict[str, Any]:
    """What a task's name says of view, start and noise, as LIBERO-plus's environments take it.

    ``..._view_<horizontal>_<vertical>_<scale in percent>_<rotation>_<tilt>_initstate_<start>[_noise_<noise>]``
    """
    found = re.search(r"_view_(\d+)_(\d+)_(\d+)_(\d+)_(\d+)_initstate_(\d+)(?:_noise_(\d+))?$", name)
    if not found:
        return {**_UNCHANGED, "noise": 0}
    horizontal, vertical, scale, rotation, tilt, start, noise = found.groups()
    return {
        "horizon_view": horizontal,
        "vertical_view": vertical,
        "scale_factor": int(scale) / 100,
        "end_point_rot": rotation,
        "end_point_vertical": tilt,
        "init_state": start,
        "noise": int(noise or 0),
    }


def _import_checkout(folder: Path) -> None:
    """Make ``libero`` the checkout's, even where another package of that name is installed.

    A checkout's outer folder is no package, and Python prefers any package to such a folder.
    """
    loaded = sys.modules.get("libero")
    if loaded is not None and str(folder.parent) in map(str, getattr(loaded, "__path__", ())):
        return
    if loaded is not None:
        raise ConfigError("another package called libero is loaded in this process; LIBERO-plus needs one of its own")
    package = ModuleType("libero")
    package.__path__ = [str(folder.parent)]
    sys.modules["libero"] = package
    try:
        importlib.import_module("gym")
    except ImportError:
        sys.modules["gym"] = importlib.import_module("gymnasium")  # of which it uses the name of a class
    if _wand_problem():
        _stand_in_for_wand()


def _wand_problem() -> str:
    try:
        importlib.import_module("wand.api")
        return ""
    except ImportError as error:  # also where ImageMagick, its library, is missing
        return str(error).splitlines()[0]


def _stand_in_for_wand() -> None:
    """LIBERO-plus imports wand whatever the task, but needs it for noise alone."""
    api, image = ModuleType("wand.api"), ModuleType("wand.image")
    api.library = type("Library", (), {"MagickMotionBlurImage": type("Function", (), {})})  # type: ignore[attr-defined]
    image.Image = object  # type: ignore[attr-defined]
    package = ModuleType("wand")
    package.__path__ = []
    sys.modules.update({"wand": package, "wand.api": api, "wand.image": image})


def _require_wand(task: str) -> None:
    if getattr(sys.modules.get("wand"), "__path__", None) == []:
        raise NotInstalledError(
            f"{task} is noisy, which needs ImageMagick: apt-get install libmagickwand-6.q16-6; pip install wand==0.7.2"
        )
