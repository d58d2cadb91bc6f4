"""A run's kept episodes as a LeRobot dataset, format v3.0 (LeRobot 0.6.1, ``lerobot/datasets``).

    meta/info.json                                features, counts, where files lie
    meta/stats.json                               statistics of every feature over all frames
    meta/tasks.parquet                            task_index of each instruction
    meta/episodes/chunk-000/file-000.parquet      a row an episode: where its frames lie, its statistics, its result
    data/chunk-000/file-000.parquet               a row a step
    videos/<camera>/chunk-000/file-000.mp4        a frame a step

It is written without LeRobot: pyarrow and PyAV do, one episode in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robotrials.datasets.arrow import RESULTS, data_schema, data_table, episode_schema, write_tasks
from robotrials.datasets.file_index import CHUNK_FILES
from robotrials.datasets.join import MAX_VIDEO_MB, VideoJoiner, VideoSpan
from robotrials.datasets.layout import ACTION, DONE, REWARD, SEED, SUCCESS, DatasetLayout
from robotrials.datasets.spool import LEVELS_OF, load_columns
from robotrials.datasets.statistics import ImageStats, Stats, VectorStats, plain
from robotrials.datasets.tables import MAX_DATA_MB, RollingTable
from robotrials.errors import DatasetError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.results.record import EpisodeRecord

FORMAT = "v3.0"
COUNTERS = {
    "timestamp": "float32",
    "frame_index": "int64",
    "episode_index": "int64",
    "index": "int64",
    "task_index": "int64",
}
"""What LeRobot counts in every dataset; ``timestamp`` in seconds from the start of the episode."""
_EPISODES_AT_ONCE = 100

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class KeptEpisode:
    """An episode with an outcome, and the folder of its spool."""

    spec: EpisodeSpec
    task: TaskSpec
    record: EpisodeRecord
    spool: Path


@dataclass(frozen=True)
class DatasetSize:
    """``nonfinite``: by column, how many numbers are NaN or infinity, and so are in no statistic."""

    episodes: int
    frames: int
    nonfinite: Mapping[str, int] = field(default_factory=dict)


def write_dataset(root: Path, layout: DatasetLayout, episodes: Iterable[KeptEpisode]) -> DatasetSize:
    """Write ``episodes``, in their order, into the new folder ``root``.

    Raises:
        DatasetError: a spool is missing, damaged or of another shape.
        OSError: the disk is full, or the folder cannot be made.
    """
    root.mkdir(parents=True)
    with _Writer(root, layout) as writer:
        for episode in episodes:
            writer.add(episode)
    return writer.finish()


class _Writer:
    def __init__(self, root: Path, layout: DatasetLayout) -> None:
        self._root, self._layout = root, layout
        self._features = {
            **layout.features(),
            **{name: {"dtype": dtype, "shape": [1], "names": None} for name, dtype in COUNTERS.items()},
        }
        self._tasks: dict[str, int] = {}
        self._episodes = self._frames = 0
        self._vectors = {name: VectorStats() for name, kind in self._features.items() if kind["dtype"] != "video"}
        self._images = {camera: ImageStats() for camera in layout.cameras}
        self._rows: list[dict[str, Any]] = []
        self._data_schema, self._row_schema = data_schema(self._features), episode_schema(self._features)
        self._data = RollingTable(root / "data", self._data_schema)
        self._index = RollingTable(root / "meta/episodes", self._row_schema)
        self._videos = {camera: VideoJoiner(root / "videos" / camera, layout.fps) for camera in layout.cameras}

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None:
            self._flush_rows()
        self._data.close()
        self._index.close()
        for joiner in self._videos.values():
            joiner.close()

    def add(self, episode: KeptEpisode) -> None:
        columns = self._columns_of(episode)
        levels = {camera: columns.pop(LEVELS_OF + camera) for camera in self._layout.cameras}
        length = len(columns[DONE])
        data = self._data.write(data_table(columns, self._data_schema))
        places = {
            camera: joiner.add(episode.spool / f"{camera}.mp4", length) for camera, joiner in self._videos.items()
        }
        stats = self._count(columns, levels, length)
        self._rows.append(
            {
                "episode_index": self._episodes,
                "tasks": [episode.task.instruction],
                "length": length,
                "data/chunk_index": data.chunk,
                "data/file_index": data.file,
                "dataset_from_index": self._frames,
                "dataset_to_index": self._frames + length,
                **_video_columns(places),
                **_result_columns(episode),
                **{f"stats/{key}/{name}": value for key, s in stats.items() for name, value in plain(s).items()},
            }
        )
        self._episodes += 1
        self._frames += length
        if len(self._rows) == _EPISODES_AT_ONCE:
            self._flush_rows()

    def finish(self) -> DatasetSize:
        """Write what describes the whole; the files are complete by now."""
        meta = self._root / "meta"
        write_tasks(meta / "tasks.parquet", list(self._tasks))
        stats = {name: plain(vector.result()) for name, vector in self._vectors.items()}
        stats |= {name: plain(image.result()) for name, image in self._images.items()}
        (meta / "stats.json").write_text(json.dumps(stats, indent=4) + "\n", encoding="utf-8")
        (meta / "info.json").write_text(json.dumps(self._info(), indent=4) + "\n", encoding="utf-8")
        odd = {name: vector.nonfinite for name, vector in self._vectors.items() if vector.nonfinite}
        return DatasetSize(self._episodes, self._frames, odd)

    def _columns_of(self, episode: KeptEpisode) -> Columns:
        """All columns of an episode's rows, checked, with what LeRobot counts."""
        kept = load_columns(episode.spool)
        length = episode.record.steps
        for key, shape in self._shapes(length).items():
            if key not in kept or kept[key].shape != shape:
                found = f"is {list(kept[key].shape)}" if key in kept else "is missing"
                raise DatasetError(f"{episode.spool}: {key} {found}; an episode of {length} steps has {list(shape)}")
        task = self._tasks.setdefault(episode.task.instruction, len(self._tasks))
        steps = np.arange(length)
        return {
            **kept,
            SEED: np.full(length, episode.spec.seed),
            "timestamp": (steps / self._layout.fps).astype(np.float32),
            "frame_index": steps,
            "episode_index": np.full(length, self._episodes),
            "index": steps + self._frames,
            "task_index": np.full(length, task),
        }

    def _shapes(self, length: int) -> dict[str, tuple[int, ...]]:
        layout = self._layout
        return {
            **{key: (length, *feature.shape) for key, feature in layout.vectors.items()},
            ACTION: (length, layout.action_dim),
            **dict.fromkeys((REWARD, SUCCESS, DONE), (length,)),
            **{LEVELS_OF + camera: (3, 256) for camera in layout.cameras},
        }

    def _count(self, columns: Columns, levels: Columns, length: int) -> dict[str, Stats]:
        """Take an episode into the statistics of all, and return its own."""
        own: dict[str, Stats] = {}
        for key, counted in self._vectors.items():
            counted.add(columns[key])
            alone = VectorStats()
            alone.add(columns[key])
            own[key] = alone.result()
        for camera, images in self._images.items():
            images.add(levels[camera], length)
            picture = ImageStats()
            picture.add(levels[camera], length)
            own[camera] = picture.result()
        return own

    def _flush_rows(self) -> None:
        import pyarrow as pa

        if not self._rows:
            return
        place = self._index.place()
        where = {"meta/episodes/chunk_index": place.chunk, "meta/episodes/file_index": place.file}
        self._index.write(pa.Table.from_pylist([{**row, **where} for row in self._rows], self._row_schema))
        self._rows.clear()

    def _info(self) -> dict[str, Any]:
        fps = self._layout.fps
        whole = int(fps) if fps == int(fps) else fps
        features = {key: dict(feature) for key, feature in self._features.items()}
        for camera, (height, width, channels) in self._layout.images.items():
            features[camera]["info"] = {
                "video.height": height,
                "video.width": width,
                "video.codec": "h264",
                "video.pix_fmt": "yuv444p" if height % 2 or width % 2 else "yuv420p",
                "video.fps": whole,
                "video.channels": channels,
                "is_depth_map": False,
                "has_audio": False,
            }
        return {
            "codebase_version": FORMAT,
            "robot_type": None,
            "total_episodes": self._episodes,
            "total_frames": self._frames,
            "total_tasks": len(self._tasks),
            "chunks_size": CHUNK_FILES,
            "data_files_size_in_mb": MAX_DATA_MB,
            "video_files_size_in_mb": MAX_VIDEO_MB,
            "fps": whole,
            "splits": {"train": f"0:{self._episodes}"},
            "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
            "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
            if self._layout.cameras
            else None,
            "features": features,
        }


def _video_columns(places: dict[str, VideoSpan]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for camera, place in places.items():
        columns[f"videos/{camera}/chunk_index"] = place.file.chunk
        columns[f"videos/{camera}/file_index"] = place.file.file
        columns[f"videos/{camera}/from_timestamp"] = place.from_s
        columns[f"videos/{camera}/to_timestamp"] = place.to_s
    return columns


def _result_columns(episode: KeptEpisode) -> dict[str, Any]:
    """The columns of ``RESULTS``."""
    spec, record = episode.spec, episode.record
    values = (
        spec.seed,
        spec.init_state,
        spec.suite,
        spec.task,
        record.success,
        record.end.value,
        record.reward_sum,
        record.reward_max,
    )
    return dict(zip(RESULTS, values, strict=True))
