"""What a dataset of a run's tasks holds, key by key: decided, and refused, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.options import nearest
from robotrials.plan.task import Feature, TaskSpec

ACTION, REWARD, SUCCESS, DONE = "action", "next.reward", "next.success", "next.done"
SEED = "seed"

_PREFIXES = ("observation.images.", "observation.")


@dataclass(frozen=True)
class DatasetLayout:
    """Keys and shapes of one dataset. ``images`` maps cameras to (H, W, 3), ``vectors`` the rest of an observation to
    (D,) features; names are the benchmark's own, as in the datasets that lerobot-eval records."""

    fps: float
    images: Mapping[str, tuple[int, ...]]
    vectors: Mapping[str, Feature]
    action_dim: int

    @classmethod
    def of_tasks(cls, tasks: Sequence[TaskSpec], cameras: str) -> DatasetLayout:
        """The layout that fits all ``tasks``. ``cameras`` is ``all``, ``none``, or names with commas: a key, or its
        part after ``observation.images.`` or ``observation.``.

        Raises:
            ConfigError: no such camera, an entry that a dataset cannot hold, or tasks that differ in what they show.
        """
        first = cls._of_task(tasks[0], cameras)
        for task in tasks[1:]:
            other = cls._of_task(task, cameras)
            if other != first:
                raise ConfigError(
                    f"--eval.dataset: {tasks[0].name} and {task.name} do not fit into one dataset: "
                    f"{first} against {other}; evaluate them in runs of their own"
                )
        return first

    @classmethod
    def _of_task(cls, task: TaskSpec, cameras: str) -> DatasetLayout:
        chosen = _choose(cameras, task)
        vectors = {}
        for key, feature in task.observations.items():
            if "/" in key:
                raise ConfigError(f"--eval.dataset: LeRobot's names hold no '/', but {task.name} shows {key}")
            if feature.is_image or feature.dtype == "str":
                continue
            if len(feature.shape) != 1:
                raise ConfigError(
                    f"--eval.dataset holds images and vectors, but {task.name} shows {key} as {feature}; "
                    "leave it out of the benchmark's observation"
                )
            vectors[key] = feature
        for key in chosen:
            if task.observations[key].shape[2] != 3:
                raise ConfigError(f"--eval.dataset holds RGB images, but {key} is {task.observations[key]}")
        images = {key: task.observations[key].shape for key in chosen}
        return cls(task.control_hz, images, vectors, task.action.dim)

    @property
    def cameras(self) -> tuple[str, ...]:
        return tuple(self.images)

    def features(self) -> dict[str, dict[str, Any]]:
        """The features that a frame has besides LeRobot's own counters, as ``meta/info.json`` writes them."""
        features: dict[str, dict[str, Any]] = {}
        for key, shape in self.images.items():
            features[key] = {"dtype": "video", "shape": list(shape), "names": ["height", "width", "channels"]}
        for key, feature in self.vectors.items():
            features[key] = {"dtype": feature.dtype, "shape": list(feature.shape), "names": None}
        features[ACTION] = {"dtype": "float32", "shape": [self.action_dim], "names": None}
        for key, dtype in ((REWARD, "float32"), (SUCCESS, "bool"), (DONE, "bool"), (SEED, "int64")):
            features[key] = {"dtype": dtype, "shape": [1], "names": None}
        return features

    def __str__(self) -> str:
        shown = [f"{key} {list(shape)}" for key, shape in self.images.items()]
        shown += [f"{key} {feature}" for key, feature in self.vectors.items()]
        return f"{', '.join(shown)}, action [{self.action_dim}] at {self.fps:g} Hz"


def _choose(cameras: str, task: TaskSpec) -> tuple[str, ...]:
    """The keys of the cameras asked for, in the order in which the task lists them."""
    if cameras == "all":
        return task.images
    if cameras == "none":
        return ()
    short = {key.removeprefix(prefix): key for key in task.images for prefix in _PREFIXES if key.startswith(prefix)}
    chosen = set()
    for name in (part.strip() for part in cameras.split(",")):
        key = short.get(name, name)
        if key not in task.images:
            have = ", ".join(task.images) or "none"
            raise ConfigError(
                f"--eval.dataset_cameras={cameras}: {task.name} has no camera {name!r}"
                f"{nearest(name, [*task.images, *short])}; it has: {have}"
            )
        chosen.add(key)
    return tuple(key for key in task.images if key in chosen)
