"""Where a worker keeps what an episode showed and did, until the run is complete and becomes a dataset.

``<run directory>/spool/<episode id>-<attempt>/`` holds ``columns.npz`` (one row a step) and ``<camera>.mp4`` (one frame
a step, at the control rate). It appears whole, before the episode is reported as done: an episode in the ledger always
has its spool, whatever was killed when.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.datasets.layout import ACTION, DONE, REWARD, SUCCESS
from robotrials.datasets.levels import LEVELS, count_levels
from robotrials.errors import ContractError, DatasetError, VideoError
from robotrials.plan.task import Feature, TaskSpec
from robotrials.results.filesystem import sync_folder
from robotrials.results.video import Encoding, EpisodeVideo

COLUMNS = "columns.npz"
LEVELS_OF = "levels:"
"""Prefix of a camera's (3, 256) counts of brightness among the columns."""

TO_TRAIN = Encoding({"preset": "superfast", "crf": "18", "g": "5"}, keep_odd=True)
"""Frames are read one by one and in any order, hence a key frame every fifth. Measured on Meta-World with PyAV 18, at
480x480 and 96x96: 2.6 and 0.4 CPU ms to encode a frame, about 10 and 0.8 kB, 37 and 32 dB."""


def spool_folder(run_dir: str | os.PathLike[str], episode: int, attempt: int) -> Path:
    """Where ``attempt`` at the episode with id ``episode`` is kept."""
    return Path(run_dir) / "spool" / f"{episode}-{attempt}"


def clear_unfinished(run_dir: Path) -> None:
    """Remove what killed workers left half-written. No worker may be at work."""
    for folder in (Path(run_dir) / "spool").glob(".*.tmp"):
        shutil.rmtree(folder, ignore_errors=True)


class EpisodeSpool:
    """Keeps one episode: ``add`` every step, then ``finish`` or ``discard``."""

    def __init__(self, folder: Path, task: TaskSpec, cameras: Sequence[str]) -> None:
        """``cameras`` are keys of ``task.observations``; everything else that is observed is kept anyway."""
        self._folder = folder
        self._temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        self._task = task
        self.cameras = tuple(cameras)
        self._vectors = {
            key: feature
            for key, feature in task.observations.items()
            if not feature.is_image and feature.dtype != "str"
        }
        self._rows: dict[str, list[np.ndarray]] = {key: [] for key in (*self._vectors, ACTION)}
        self._rewards: list[float] = []
        self._successes: list[bool] = []
        self._levels = {camera: np.zeros((3, LEVELS), np.int64) for camera in self.cameras}
        self._videos = {
            camera: EpisodeVideo(self._temporary / f"{camera}.mp4", task.control_hz, task.control_hz, TO_TRAIN)
            for camera in self.cameras
        }

    def add(self, observation: Observation, action: np.ndarray, reward: float, success: bool) -> None:
        """One step: what was observed before ``action``, and what the action brought.

        Raises:
            ContractError: an entry is missing, or is not of the shape that the task declares.
        """
        step = len(self._rewards)
        for key, feature in self._vectors.items():
            self._rows[key].append(self._checked(observation, key, feature).astype(feature.dtype))
        for camera, video in self._videos.items():
            frame = self._checked(observation, camera, self._task.observations[camera])
            video.add(step, frame)
            self._levels[camera] += count_levels(frame)
        self._rows[ACTION].append(np.array(action, np.float32))
        self._rewards.append(reward)
        self._successes.append(success)

    def finish(self) -> None:
        """Wait until everything is encoded, and put the folder in its place, whole.

        Raises:
            DatasetError: it could not be written; nothing is left behind.
        """
        try:
            self._temporary.mkdir(parents=True, exist_ok=True)
            for video in self._videos.values():
                video.finish()
            columns: dict[str, Any] = self._columns()
            np.savez(self._temporary / COLUMNS, **columns)
            _make_durable(self._temporary)
            # There is one only of the same attempt, reported as done to a coordinator that was killed before it heard.
            shutil.rmtree(self._folder, ignore_errors=True)
            os.replace(self._temporary, self._folder)
            sync_folder(self._folder.parent)
        except (OSError, VideoError) as error:
            self.discard()
            raise DatasetError(f"{self._folder} could not be written: {error}") from error

    def discard(self) -> None:
        """Stop and leave nothing. After ``finish`` it does nothing."""
        for video in self._videos.values():
            video.discard()
        with contextlib.suppress(OSError):
            shutil.rmtree(self._temporary)

    def _checked(self, observation: Observation, key: str, feature: Feature) -> np.ndarray:
        value = np.asarray(observation.get(key))
        if value.shape != feature.shape or (feature.is_image and value.dtype != np.uint8):
            what = f"{value.dtype}{list(value.shape)}" if key in observation else "nothing"
            raise ContractError(f"{self._task.name} declares {key} as {feature}, but showed {what}")
        return value

    def _columns(self) -> dict[str, np.ndarray]:
        done = np.zeros(len(self._rewards), bool)
        done[-1:] = True
        columns = {key: np.stack(rows) for key, rows in self._rows.items() if rows}
        columns[REWARD] = np.array(self._rewards, np.float32)
        columns[SUCCESS] = np.array(self._successes, bool)
        columns[DONE] = done
        return {**columns, **{LEVELS_OF + camera: levels for camera, levels in self._levels.items()}}


_DAMAGED = (
    *(OSError, ValueError, EOFError, KeyError, BadZipFile, zlib.error),
    *(NotImplementedError, RuntimeError, SyntaxError, OverflowError, MemoryError),
)
"""What zipfile and NumPy raise on bytes that are no archive of arrays."""


def load_columns(folder: Path) -> Mapping[str, np.ndarray]:
    """What ``finish`` kept in ``columns.npz``: vectors (T, D), rewards and flags (T,), brightness counts (3, 256).

    Raises:
        DatasetError: it is missing or damaged.
    """
    path = folder / COLUMNS
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except _DAMAGED as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error


def _make_durable(folder: Path) -> None:
    """A loss of power must not take an episode's spool and leave its record."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
