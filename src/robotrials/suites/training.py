"""What a lerobot-train left in its folder (LeRobot 0.6.1, ``lerobot/common/train_utils.py``)."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError


@dataclass(frozen=True)
class TrainedCheckpoint:
    """``folder`` is ``checkpoints/<step>``; ``policy`` in it is what ``--policy.path`` takes."""

    step: int
    folder: Path

    @property
    def policy(self) -> Path:
        return self.folder / "pretrained_model"


@dataclass(frozen=True)
class TrainingFolder:
    """The ``--output_dir`` of a lerobot-train, which need not exist yet."""

    folder: Path

    def checkpoints(self) -> list[TrainedCheckpoint]:
        """Those that are written whole, by step. ``last`` is a link to one of them and not another."""
        root = self.folder / "checkpoints"
        found = [path for path in root.iterdir() if path.name.isdigit()] if root.is_dir() else []
        whole = [TrainedCheckpoint(int(path.name), path) for path in found if is_whole(path)]
        return sorted(whole, key=lambda checkpoint: checkpoint.step)

    @property
    def last(self) -> TrainedCheckpoint | None:
        whole = self.checkpoints()
        return whole[-1] if whole else None

    @property
    def config_path(self) -> Path:
        """train_config.json of the last checkpoint, as ``--config_path`` of a resumed training."""
        assert self.last is not None
        return self.last.policy / "train_config.json"

    def config(self) -> dict[str, Any]:
        """train_config.json of the last checkpoint; empty without one."""
        if self.last is None:
            return {}
        content = json.loads(self.config_path.read_text(encoding="utf-8"))
        return content if isinstance(content, dict) else {}

    @property
    def planned_steps(self) -> int | None:
        """When the training will be over, as its last checkpoint says."""
        steps = self.config().get("steps")
        return int(steps) if steps else None

    def require_dataset(self, dataset: str) -> None:
        """Refuse to go on with a training on another dataset.

        Raises:
            ConfigError: it is on another.
        """
        there = (self.config().get("dataset") or {}).get("repo_id")
        if there is not None and there != dataset:
            raise ConfigError(
                f"{self.folder} holds a training on {there}, not on {dataset}: give another --output_dir or "
                "--policy_name, or remove it"
            )

    def set_aside(self) -> Path | None:
        """Rename a folder without any whole checkpoint, which lerobot-train would refuse; where it is now."""
        if not self.folder.is_dir() or self.last is not None:
            return None
        number = 1
        while (aside := self.folder.with_name(f"{self.folder.name}.stopped-{number}")).exists():
            number += 1
        self.folder.rename(aside)
        return aside


def is_whole(folder: Path) -> bool:
    """Whether a checkpoint is written to its end.

    The policy is written before ``training_state/training_step.json``, so where that can be read the policy is there;
    a copy from another machine may come in another order, so that weights must have the size their header gives.
    """
    policy = folder / "pretrained_model"
    try:
        json.loads((folder / "training_state/training_step.json").read_text(encoding="utf-8"))
        json.loads((policy / "config.json").read_text(encoding="utf-8"))
        json.loads((policy / "train_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    weights = list(policy.glob("*.safetensors"))
    main = {"model.safetensors", "adapter_model.safetensors"}
    return any(file.name in main for file in weights) and all(map(_has_all_bytes, weights))


def _has_all_bytes(file: Path) -> bool:
    """Whether a safetensors file is as long as its header says (an unsigned 64-bit length, JSON, data)."""
    try:
        with open(file, "rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > 100_000_000:
                return False
            header = json.loads(stream.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        return bool(file.stat().st_size == 8 + length + max(ends, default=0))
    except (OSError, ValueError, struct.error, KeyError, TypeError, AttributeError):
        return False
