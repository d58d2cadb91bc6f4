"""What a checkpoint reads and hands out, and whether a benchmark's task fits it. Plain data: no torch, no LeRobot.

LeRobot names a feature's shape channels first, (C, H, W); robotrials' images are (H, W, C).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.task import Feature, TaskSpec

TASK = "task"
"""The key of the instruction, which every observation has."""

_FIXED_SIZE = frozenset({"act", "diffusion", "vqbet", "tdmpc", "multi_task_dit", "gaussian_actor"})
"""Policies that see images at the size they were trained at, unless their configuration names one to resize to."""

_TYPES = ("STATE", "VISUAL", "ENV", "ACTION", "REWARD", "LANGUAGE")
"""LeRobot's types of features (0.6.1, ``configs/types.py``)."""

_LIKE = '{"type": "STATE", "shape": [4]}'

_RESIZE_OPTIONS = ("resize_shape", "image_resize_shape", "resize_imgs_with_padding", "image_resolution")


@dataclass(frozen=True)
class Needs:
    """What a policy reads, by its own names, and how many numbers an action has.

    ``inputs`` maps keys to features (images (H, W, C)); ``any_size`` says that it resizes images itself;
    ``empty_cameras`` is how many cameras of the checkpoint may be absent (the policy fills them in).
    """

    kind: str
    inputs: Mapping[str, Feature]
    action_dim: int | None
    any_size: bool = False
    empty_cameras: int = 0

    @classmethod
    def of(cls, config: Mapping[str, Any], where: str = "config.json") -> Needs:
        """From a checkpoint's ``config.json`` (or the same mapping made of a loaded configuration).

        Raises:
            ConfigError: a field that is not what LeRobot writes; the message calls the configuration ``where``.
        """
        kind = str(config["type"])
        resizes = any(config.get(option) for option in _RESIZE_OPTIONS)
        inputs, outputs = (_features(config, side, where) for side in ("input_features", "output_features"))
        action = outputs.get("action")
        empty = config.get("empty_cameras") or 0
        if not _is_count(empty):
            raise ConfigError(f"{where}: empty_cameras must be a whole number from 0, it is {empty!r}")
        return cls(
            kind,
            {key: _input(value, f"{where}: input_features.{key}") for key, value in inputs.items()},
            _shape(action, f"{where}: output_features.action")[0] if action else None,
            any_size=resizes or kind not in _FIXED_SIZE,
            empty_cameras=empty,
        )

    def observations(self, absent: Iterable[str] = ()) -> dict[str, Feature | None]:
        """For ``PolicySpec.observations``: all inputs but the cameras in ``absent``; None where any size will do."""
        left_out = set(absent)
        found: dict[str, Feature | None] = {TASK: None}
        for key, feature in self.inputs.items():
            if key not in left_out and not _is_placeholder(key):
                found[key] = None if feature.is_image and self.any_size else feature
        return found

    def absent_cameras(self, task: TaskSpec, rename_map: Mapping[str, str]) -> list[str]:
        """Cameras of the checkpoint that ``task`` lacks, and that the policy may do without."""
        offered = _renamed(task, rename_map)
        absent = [k for k, f in self.inputs.items() if f.is_image and not _is_placeholder(k) and k not in offered]
        return absent[: self.empty_cameras]

    def problems(self, task: TaskSpec, rename_map: Mapping[str, str]) -> list[str]:
        """Why ``task`` does not fit this policy, one sentence each, with both sides' names and shapes."""
        for source, target in rename_map.items():
            stays = target in task.observations and target not in rename_map
            if stays and source in task.observations:
                return [f"--rename_map calls {source} {target}, which {task.name} has too: leave that entry out"]
        offered = _renamed(task, rename_map)
        has = ", ".join(f"{key} {feature}" for key, feature in offered.items())
        found: list[str] = []
        for key, wanted in self.observations(self.absent_cameras(task, rename_map)).items():
            feature = self.inputs.get(key)
            if feature is None:
                continue
            have = offered.get(key)
            if have is None:
                found.append(
                    f"policy {self.kind} reads {key} {feature}, which {task.name} does not have; it has {has}. "
                    f"{self._way_out(key, feature, task, rename_map)}"
                )
            elif wanted is not None and wanted.shape != have.shape:
                found.append(
                    f"policy {self.kind} reads {key} as {wanted}, but {task.name} gives {have}"
                    f"{_renamed_by(key, rename_map)}"
                )
            elif feature.is_image and (not have.is_image or have.shape[2] != feature.shape[2]):
                found.append(
                    f"policy {self.kind} reads {key} as an image like {feature}, but {task.name} gives {have}"
                    f"{_renamed_by(key, rename_map)}"
                )
        if self.action_dim is not None and self.action_dim != task.action.dim:
            found.append(
                f"policy {self.kind} gives actions of {self.action_dim} numbers, "
                f"but {task.name} takes {task.action.dim}"
            )
        return found

    def _way_out(self, key: str, feature: Feature, task: TaskSpec, rename_map: Mapping[str, str]) -> str:
        """What would give the policy ``key``, in one sentence; renames only of what is unread and of the same shape."""
        has = task.observations
        if key in has:
            return f"--rename_map calls it {rename_map[key]}: leave that entry out"
        for source, target in rename_map.items():
            if target == key:
                return f"--rename_map takes it from {source}, which is not there either: name one of these, or drop it"
        for name, other in has.items():
            if rename_map.get(name, name) not in self.inputs and self._alike(feature, other):
                kept = {old: new for old, new in rename_map.items() if new in self.inputs and old != name}
                return f"If {name} is meant, add --rename_map='{json.dumps({**kept, name: key})}'"
        useless = [old for old, new in rename_map.items() if new not in self.inputs]
        if useless:
            return f"--rename_map gives {useless[0]} a name that the policy does not read: leave that entry out"
        if feature.is_image and self.any_size:
            return "If the policy can do without that camera, add --policy.empty_cameras=1"
        return "Evaluate it where it was trained, or train it on what this benchmark shows"

    def _alike(self, wanted: Feature, other: Feature) -> bool:
        if wanted.is_image and self.any_size:
            return other.is_image and other.shape[2] == wanted.shape[2]
        return (other.is_image, other.shape) == (wanted.is_image, wanted.shape)


def _features(config: Mapping[str, Any], side: str, where: str) -> Mapping[str, Any]:
    found = config.get(side) or {}
    if not isinstance(found, Mapping):
        raise ConfigError(f"{where}: {side} must map names to {_LIKE}, it is {found!r}")
    return found


def _input(value: Any, field: str) -> Feature:
    shape = _shape(value, field)
    kind = value.get("type")
    if kind not in _TYPES:
        raise ConfigError(f"{field}: type {kind!r} is unknown; known: {', '.join(_TYPES)}")
    if kind != "VISUAL":
        return Feature(shape)
    if len(shape) != 3:
        raise ConfigError(f"{field}: the shape of an image is [channels, height, width], it is {list(shape)}")
    return Feature((shape[1], shape[2], shape[0]), "uint8")


def _shape(value: Any, field: str) -> tuple[int, ...]:
    shape = value.get("shape") if isinstance(value, Mapping) else None
    if not isinstance(shape, (list, tuple)) or not shape or not all(_is_count(n) and n for n in shape):
        raise ConfigError(f"{field} must be like {_LIKE}, it is {value!r}")
    return tuple(shape)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _renamed_by(key: str, rename_map: Mapping[str, str]) -> str:
    sources = [source for source, target in rename_map.items() if target == key and source != key]
    return f" ({sources[0]}, by --rename_map: leave that entry out)" if sources else ""


def _is_placeholder(key: str) -> bool:
    """Inputs that ``empty_cameras`` adds to a configuration: no benchmark has them, the policy makes them up."""
    return ".empty_camera_" in key


def _renamed(task: TaskSpec, rename_map: Mapping[str, str]) -> dict[str, Feature]:
    return {rename_map.get(key, key): feature for key, feature in task.observations.items()}
