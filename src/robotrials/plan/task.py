"""What a task looks like from outside: its sentence, its limits, and the shapes it trades in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Feature:
    """Shape and dtype of one observation entry: images are (H, W, C) uint8, states (D,) float32, text () str."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def is_image(self) -> bool:
        return self.dtype == "uint8" and len(self.shape) == 3

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """A flat action vector: ``dim`` floats within ``low`` and ``high`` (each of length ``dim``)."""

    dim: int
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """One task of a benchmark, known without building its simulator.

    ``suite`` is the group the task was asked for in (``easy``, ``libero_spatial``, or the task's own name), ``id`` its
    position there, ``instruction`` the sentence a language-conditioned policy is told. ``observations`` maps LeRobot
    keys (``observation.image``, ``observation.state``, ...) to features. ``record_key`` names the image that equals
    ``Env.render()``, so that a video can reuse what the policy saw; None when the video has a view of its own.
    ``n_init_states`` is the number of stored initial states, None when the seed alone decides the scene. ``group``
    labels what success is also reported by, across suites (LIBERO-plus: the perturbation, such as ``camera``); empty
    where a benchmark has no such division.
    """

    suite: str
    name: str
    id: int
    instruction: str
    max_steps: int
    control_hz: float
    observations: Mapping[str, Feature]
    action: ActionSpec
    record_key: str | None = None
    n_init_states: int | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    group: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return (self.suite, self.name)

    @property
    def images(self) -> tuple[str, ...]:
        """The keys of all cameras that can be asked for."""
        return tuple(key for key, feature in self.observations.items() if feature.is_image)
