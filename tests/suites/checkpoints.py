"""Folders as lerobot-train leaves them, with weights of a few bytes."""

from __future__ import annotations

import json
import struct
from pathlib import Path


def write_checkpoint(training: Path, step: int, steps: int = 100, dataset: str = "lerobot/pusht") -> Path:
    """``checkpoints/<step>`` written whole, ``last`` pointing at it."""
    folder = training / "checkpoints" / f"{step:06d}"
    policy = folder / "pretrained_model"
    policy.mkdir(parents=True)
    (policy / "config.json").write_text('{"type": "act"}')
    (policy / "train_config.json").write_text(json.dumps({"steps": steps, "dataset": {"repo_id": dataset}}))
    header = json.dumps({"w": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}).encode()
    (policy / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"abc")
    (folder / "training_state").mkdir()
    (folder / "training_state/training_step.json").write_text(json.dumps({"step": step}))
    last = folder.parent / "last"
    last.unlink(missing_ok=True)
    last.symlink_to(folder.name)
    return folder
