"""Datasets of made-up episodes with a known number of ways to move, in LeRobot's format v3.0."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def strategies(
    n: int, frames: Sequence[int] | int, joints: int, modes: int, seed: int, distance: float = 8.0
) -> list[np.ndarray]:
    """``n`` episodes (T, J) of one common motion; each follows one of ``modes`` ways beside it, ``distance`` apart (in
    standard deviations of how episodes of one way differ)."""
    rng = np.random.default_rng(seed)
    ways = rng.normal(size=(modes, joints))
    ways -= ways.mean(axis=0)
    if modes > 1:
        ways *= distance / np.linalg.norm(ways, axis=1, keepdims=True)
    lengths = np.broadcast_to(frames, n)
    return [_motion(rng, int(t), joints, ways[rng.integers(modes)] if modes > 1 else ways[0]) for t in lengths]


def skewed(n: int, frames: int, joints: int, seed: int) -> list[np.ndarray]:
    """One way to move, but some episodes do much more of it: an exponential amplitude, which several Gaussians fit
    better than one."""
    rng = np.random.default_rng(seed)
    way = rng.normal(size=joints)
    return [_motion(rng, frames, joints, 3.0 * rng.exponential() * way, 0.3) for _ in range(n)]


def _motion(rng: np.random.Generator, frames: int, joints: int, way: np.ndarray, noise: float = 1.0) -> np.ndarray:
    t = np.linspace(0.0, 1.0, frames)[:, None]
    common = 3.0 * np.sin(2 * np.pi * (t + np.arange(joints) / joints))
    wobble = noise * (rng.normal(size=joints) + rng.normal(size=joints) * np.sin(3 * t)) / 1.3
    return (common + wobble + way * (0.7 + 0.3 * t) + 0.2 * rng.normal(size=(frames, joints))).astype(np.float32)


def write_dataset(root: Path, episodes: Sequence[np.ndarray], fps: float = 30.0, **more: Any) -> Path:
    """Write ``episodes`` (T, J) of actions, with a state column that nobody should read.

    ``success`` (E,) and ``tasks`` (E,) go to meta/episodes, ``progress`` (a list of (T,)) and ``task_index`` (E,) to
    columns, ``names`` to the features.
    """
    joints = episodes[0].shape[1]
    lengths = [len(episode) for episode in episodes]
    columns = {
        "action": _lists(np.concatenate(episodes)),
        "observation.state": _lists(np.concatenate(episodes)),
        "episode_index": np.repeat(np.arange(len(episodes)), lengths),
        "frame_index": np.concatenate([np.arange(n) for n in lengths]),
        "timestamp": np.concatenate([np.arange(n) / fps for n in lengths]).astype(np.float32),
    }
    features = {
        "action": {"dtype": "float32", "shape": [joints], "names": more.get("names")},
        "observation.state": {"dtype": "float32", "shape": [joints], "names": None},
    }
    if "progress" in more:
        columns["progress"] = np.concatenate(more["progress"])
        features["progress"] = {"dtype": "float32", "shape": [1], "names": None}
    if "task_index" in more:
        columns["task_index"] = np.repeat(np.asarray(more["task_index"]), lengths)
        features["task_index"] = {"dtype": "int64", "shape": [1], "names": None}
    rows = {
        "episode_index": np.arange(len(episodes)),
        "length": lengths,
        "data/chunk_index": np.zeros(len(episodes), np.int64),
        "data/file_index": np.zeros(len(episodes), np.int64),
    }
    if "success" in more:
        rows["success"] = np.asarray(more["success"])
    if "tasks" in more:
        rows["tasks"] = [[name] for name in more["tasks"]]
    info = {
        "codebase_version": "v3.0",
        "total_episodes": len(episodes),
        "fps": fps,
        "features": features,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
    }
    for folder in ("meta/episodes/chunk-000", "data/chunk-000"):
        (root / folder).mkdir(parents=True)
    (root / "meta/info.json").write_text(json.dumps(info))
    pq.write_table(pa.table(rows), root / "meta/episodes/chunk-000/file-000.parquet")
    pq.write_table(pa.table(columns), root / "data/chunk-000/file-000.parquet")
    return root


def _lists(values: np.ndarray) -> Any:
    flat = pa.array(values.ravel().astype(np.float32))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
