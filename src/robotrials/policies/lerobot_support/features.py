"""What a checkpoint reads and hands out, and whether a benchmark's task fits it. Plain data: no torch, no LeRobot.

LeRobot names a feature's shape channels first, (C, H, W); robotrials' images are (H, W, C).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from robotrials.plan.task import Feature, TaskSpec

TASK = "task"
"""The key of the instruction, which every observation has."""

_FIXED_SIZE = frozenset({"act", "diffusion", "vqbet", "tdmpc", "multi_task_dit", "gaussian_actor"})
"""Policies that see images at the size they were trained at, unless their configuration names one to resize to."""

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
    def of(cls, config: Mapping[str, Any]) -> Needs:
        """From a checkpoint's ``config.json`` (or the same mapping made of a loaded configuration)."""
        kind = str(config["type"])
        resizes = any(config.get(option) for option in _RESIZE_OPTIONS)
        action = (config.get("output_features") or {}).get("action")
        return cls(
            kind,
            {key: _feature(value) for key, value in (config.get("input_features") or {}).items()},
            int(action["shape"][0]) if action else None,
            any_size=resizes or kind not in _FIXED_SIZE,
            empty_cameras=int(config.get("empty_cameras") or 0),
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
                    f"{self._way_out(key, feature, offered)}"
                )
            elif wanted is not None and wanted.shape != have.shape:
                found.append(f"policy {self.kind} reads {key} as {wanted}, but {task.name} gives {have}")
            elif feature.is_image and (not have.is_image or have.shape[2] != feature.shape[2]):
                found.append(f"policy {self.kind} reads {key} as an image like {feature}, but {task.name} gives {have}")
        if self.action_dim is not None and self.action_dim != task.action.dim:
            found.append(
                f"policy {self.kind} gives actions of {self.action_dim} numbers, "
                f"but {task.name} takes {task.action.dim}"
            )
        return found

    def _way_out(self, key: str, feature: Feature, offered: Mapping[str, Feature]) -> str:
        unread = [
            name for name, other in offered.items() if other.is_image == feature.is_image and name not in self.inputs
        ]
        if unread:
            return f'If {unread[0]} is meant, add --rename_map=\'{{"{unread[0]}": "{key}"}}\''
        if feature.is_image and self.any_size:
            return "If the policy can do without that camera, add --policy.empty_cameras=1"
        return "Evaluate it where it was trained, or train it on what this benchmark shows"


def _feature(value: Mapping[str, Any]) -> Feature:
    shape = tuple(int(n) for n in value["shape"])
    if value["type"] == "VISUAL":
        return Feature((shape[1], shape[2], shape[0]), "uint8")
    return Feature(shape)


def _is_placeholder(key: str) -> bool:
    """Inputs that ``empty_cameras`` adds to a configuration: no benchmark has them, the policy makes them up."""
    return ".empty_camera_" in key


def _renamed(task: TaskSpec, rename_map: Mapping[str, str]) -> dict[str, Feature]:
    return {rename_map.get(key, key): feature for key, feature in task.observations.items()}
