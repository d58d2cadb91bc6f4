"""The interface every simulator stands behind.

A benchmark is one file in this package (or a plugin) that defines a ``Benchmark``; ``registry.OWN`` lists them. Nothing
at module level may import the simulator: tasks are listed in the coordinator, which has none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from robotrials.benchmarks.call_order import CallOrder
from robotrials.environments.installation import Installation
from robotrials.errors import ConfigError
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec

Observation = dict[str, np.ndarray | str]
"""LeRobot keys to values: images (H, W, C) uint8, states (D,) float32, ``task`` the instruction."""


MAX_SIDE = 16384
"""Pixels that a side of an image may have, as most GPUs and OpenGL's software renderers allow."""


class StepOutcome(NamedTuple):
    """What one step returned. ``success`` is None when the simulator said nothing, which is an error, not a failure."""

    reward: float
    terminated: bool
    truncated: bool
    success: bool | None


class Expert(ABC):
    """A scripted policy that may look into the simulator. One per episode; made by ``Env.expert``."""

    @abstractmethod
    def act(self) -> np.ndarray:
        """The action for the simulator's present state, (D,) float."""


class Env(CallOrder, ABC):
    """One simulated scene in this process. Calls come in order: reset, then (observe | render)*, step, ..., close;
    others raise CallOrderError."""

    @abstractmethod
    def reset(self, episode: EpisodeSpec) -> None:
        """Set the scene of ``episode``: a pure function of its seed and initial state, whatever ran here before."""

    @abstractmethod
    def observe(self, cameras: Sequence[str]) -> Observation:
        """All state entries, and the images whose keys are in ``cameras``: only those are rendered.

        Calling it twice, or not at all, must not change what ``step`` does. Arrays are the caller's to keep.
        """

    @abstractmethod
    def step(self, action: np.ndarray) -> StepOutcome:
        """Apply one action, (D,) float. Renders nothing."""

    @abstractmethod
    def render(self) -> np.ndarray:
        """The picture for the video, (H, W, 3) uint8, the right way up."""

    @abstractmethod
    def close(self) -> None:
        """Free the simulator and its rendering context; safe to call twice."""

    def expert(self) -> Expert:
        """The benchmark's scripted expert for the episode that was just reset.

        Raises:
            ConfigError: the benchmark has no experts.
        """
        raise ConfigError(f"{type(self).__name__} has no scripted expert; --policy.type=expert does not apply")


@dataclass(frozen=True)
class BenchmarkConfig:
    """Base of a benchmark's options: each field is a flag ``--env.<field>``; its ``metadata['help']`` the help line."""

    task: str = ""
    _: KW_ONLY
    success: str = option("", "when it counts: once (at any step) or end (at the last); default: once")
    failure_exceptions: tuple[str, ...] = option((), "exceptions that mean failure, not error: module.Class,...")

    def require_at_least_one(self, *fields: str) -> None:
        """
        Raises:
            ConfigError: one of these fields, a count or a size, is 0 or less.
        """
        for field in fields:
            if getattr(self, field) < 1:
                raise ConfigError(f"--env.{field} must be at least 1, got {getattr(self, field)}")

    def require_fps(self, control_hz: float, simulator: str) -> None:
        """For the ``fps`` that lerobot-eval lets one name, of a simulator that has one rate only.

        Raises:
            ConfigError: it is another.
        """
        fps = getattr(self, "fps")  # noqa: B009  a field of those configurations that have one
        if fps != control_hz:
            raise ConfigError(f"--env.fps={fps}: {simulator} is controlled at {control_hz:.0f} Hz; leave it out")


class Benchmark(ABC):
    """A family of tasks in one simulator.

    Class attributes: ``name`` (the ``--env.type``), ``extra`` (what to install: ``robotrials[<extra>]``), ``modules``
    (what must be importable), ``packages`` (distributions whose version can change an outcome; they enter the run's
    identity), ``Config`` (options), ``uses_gl`` (needs MUJOCO_GL chosen before import), ``says_where_success_is``
    (``--env.success`` names a place besides ``once`` or ``end``), ``installation`` (the pins of an environment of its
    own).
    """

    name: ClassVar[str]
    extra: ClassVar[str]
    modules: ClassVar[tuple[str, ...]]
    packages: ClassVar[tuple[str, ...]]
    Config: ClassVar[type[BenchmarkConfig]]
    uses_gl: ClassVar[bool] = False
    says_where_success_is: ClassVar[bool] = False
    installation: ClassVar[Installation] = Installation()
    lists_tasks: ClassVar[bool] = True
    """Whether ``--env.task=all`` means something: False where nobody but the simulator knows what tasks there are."""
    experts: ClassVar[bool | None] = None
    """Whether its tasks have scripted experts; None where that is not known before a simulator is built."""

    python: str | None = None
    """The interpreter that workers run in, None: this one. For benchmarks that must ask it what their tasks are."""

    def __init__(self, config: Any) -> None:
        self.config = config

    @classmethod
    def conflict(cls, versions: Mapping[str, str]) -> str | None:
        """Why these versions of ``packages`` are known not to work together, and the command that mends it."""
        return None

    @abstractmethod
    def tasks(self) -> list[TaskSpec]:
        """The tasks that ``config.task`` selects, in order. Cheap: no simulator is imported.

        Raises:
            ConfigError: an unknown task or group; the message lists what exists.
        """

    def check_expert(self, task: TaskSpec) -> None:
        """Refuse, before anything is built, a task that is known to have no scripted expert.

        Raises:
            ConfigError: it has none, or its expert needs other options.
        """
        if self.experts is False:
            raise ConfigError(f"{self.name} has no scripted experts: --policy.type=expert does not apply")

    def code_version(self) -> str:
        """What the code of the tasks is, for a run's identity, where the versions of ``packages`` do not say it; cheap
        once ``tasks`` was called. Empty: they do."""
        return ""

    @abstractmethod
    def make(self, task: TaskSpec) -> Env:
        """Build the simulator of one task in this process."""


def one_or_each(versions: Mapping[str, str]) -> str:
    """The version that all share, else each with its name before it."""
    if len(set(versions.values())) == 1:
        return next(iter(versions.values()))
    return "; ".join(f"{name}: {version}" for name, version in versions.items())
