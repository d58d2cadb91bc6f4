"""What a LeRobot v3 dataset says of itself, checked before any row is read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robotrials.datasets.layout import ACTION, SUCCESS
from robotrials.errors import DatasetError, NotInstalledError
from robotrials.install import install_command

SARM_FILE = "sarm_progress.parquet"
"""Where LeRobot's SARM reward model leaves its estimate of progress (lerobot 0.6, rewards/sarm)."""


TASK = "task_index"
"""The column of rows that numbers the task."""


@dataclass(frozen=True)
class Catalogue:
    """A dataset's description. ``lengths`` (E,) int64 in frames and ``success`` (E,) bool (None: it does not say) are
    of all its episodes, in the order of ``indices`` (E,); ``files`` hold their rows."""

    root: Path
    name: str
    fps: float
    features: dict[str, Any]
    indices: np.ndarray
    lengths: np.ndarray
    success: np.ndarray | None
    files: tuple[Path, ...]
    tasks: tuple[str, ...] | None = None
    """The task of each episode, in words; None where meta/episodes does not say."""

    @property
    def joints(self) -> tuple[str, ...]:
        """The names of the action's entries; ``a0``, ``a1``, ... where the dataset has none."""
        size = self.action_size
        names = self.features[ACTION].get("names")
        if isinstance(names, dict):  # {"motors": [...]}, as recorded from robots
            names = [name for group in names.values() if isinstance(group, list) for name in group]
        if not isinstance(names, list) or len(names) != size:
            return tuple(f"a{i}" for i in range(size))
        return tuple(map(str, names))

    @property
    def action_size(self) -> int:
        return int(np.prod(self.features[ACTION]["shape"]))

    @property
    def has_row_task(self) -> bool:
        return TASK in self.features

    @property
    def has_row_success(self) -> bool:
        return SUCCESS in self.features


def open_catalogue(root: Path) -> Catalogue:
    """Read ``meta/`` of the dataset in the folder ``root``.

    Raises:
        DatasetError: it is no LeRobot dataset, of another format than v3, or incomplete; the message says which file
            and what would mend it.
        NotInstalledError: pyarrow is missing.
    """
    require("pyarrow", "robotrials dataset analyze")
    info = _info(root)
    _check_format(root, info)
    features = _features(root, info)
    columns = _episode_columns(root)
    _check_episodes(root, columns)
    order = np.argsort(columns["episode_index"], kind="stable")
    lengths = columns["length"][order].astype(np.int64)
    expected = info.get("total_episodes")
    if expected is not None and expected != len(lengths):
        raise DatasetError(
            f"{root}: meta/info.json counts {expected} episodes, meta/episodes has {len(lengths)}: "
            "it was not copied or downloaded whole"
        )
    said = columns.get("success")
    # A column of words (yes, no) says nothing: every word would be true.
    success = said[order].astype(bool) if said is not None and said.dtype.kind in "biu" else None
    return Catalogue(
        root=root,
        name=root.resolve().name,
        fps=_fps(root, info),
        features=features,
        indices=columns["episode_index"][order].astype(np.int64),
        lengths=lengths,
        success=success,
        files=_data_files(root, info, columns),
        tasks=_tasks(columns, order),
    )


def require(package: str, what: str) -> None:
    """Refuse when ``package`` is missing.

    Raises:
        NotInstalledError: it is; the message names the extra.
    """
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise NotInstalledError(f"{what} needs {package}: {install_command('analysis')}")


def _info(root: Path) -> dict[str, Any]:
    path = root / "meta/info.json"
    if not root.is_dir():
        raise DatasetError(f"{root}: no such folder; give the folder of a LeRobot dataset, the one that holds meta/")
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        inner = sorted(str(found.parent.parent) for found in root.glob("*/meta/info.json"))
        hint = f"; did you mean {inner[0]}?" if inner else ""
        raise DatasetError(f"{root} is no LeRobot dataset: it has no meta/info.json{hint}") from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from None
    if not isinstance(info, dict):
        raise DatasetError(f"{path} must hold a map, not a {type(info).__name__}")
    return info


def _check_format(root: Path, info: dict[str, Any]) -> None:
    version = str(info.get("codebase_version", "of no version"))
    if version.startswith("v3."):
        return
    if version.startswith("v2."):
        raise DatasetError(
            f"{root} is a LeRobot dataset {version}; this reads v3.0. Convert it, then try again:\n"
            f"  python -m lerobot.scripts.convert_dataset_v21_to_v30 --repo-id=ORG/NAME --root={root}"
            + ("" if version == "v2.1" else f"\n(first from {version} to v2.1, by a LeRobot before 0.4)")
        )
    raise DatasetError(f"{root}: meta/info.json says codebase_version {version}; this reads v3.0")


def _features(root: Path, info: dict[str, Any]) -> dict[str, Any]:
    """The features, of which the action is a list of numbers."""
    features = info.get("features", {})
    if not isinstance(features, dict):
        raise DatasetError(f"{root}: meta/info.json: features must be a map, not a {type(features).__name__}")
    if ACTION not in features:
        raise DatasetError(f"{root}: no feature {ACTION!r}; it has {', '.join(features) or 'none'}")
    shape = features[ACTION].get("shape") if isinstance(features[ACTION], dict) else None
    if not isinstance(shape, list) or not shape or not all(isinstance(n, int) and n > 0 for n in shape):
        raise DatasetError(f"{root}: meta/info.json: {ACTION} has the shape {shape!r}, which is no list of sizes")
    return features


def _fps(root: Path, info: dict[str, Any]) -> float:
    fps = 1.0 if info.get("fps") is None else info["fps"]
    if not isinstance(fps, (int, float)) or isinstance(fps, bool) or not 0 < fps < float("inf"):
        raise DatasetError(f"{root}: meta/info.json: fps is {fps!r}, which is no rate")
    return float(fps)


def _check_episodes(root: Path, columns: dict[str, np.ndarray]) -> None:
    """Refuse an index of episodes that cannot be followed."""
    where = f"{root}/meta/episodes"
    for name in ("episode_index", "length"):
        if name not in columns:
            raise DatasetError(f"{where}: the column {name} is missing, or has gaps")
        if columns[name].dtype.kind not in "iu":
            raise DatasetError(f"{where}: {name} holds no whole numbers")
    indices, lengths = columns["episode_index"], columns["length"]
    if not len(indices):
        raise DatasetError(f"{root}: the dataset holds no episode")
    if lengths.min() < 1:
        raise DatasetError(f"{where}: episode {indices[lengths.argmin()]} has {lengths.min()} frames")
    found, times = np.unique(indices, return_counts=True)
    if times.max() > 1:
        raise DatasetError(f"{where}: episode {found[times.argmax()]} is there {times.max()} times")


def _episode_columns(root: Path) -> dict[str, np.ndarray]:
    """The columns that matter, of all files of meta/episodes together; the statistics there are never read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted((root / "meta/episodes").rglob("*.parquet"))
    if not files:
        raise DatasetError(f"{root}: meta/episodes holds no parquet file: it was not copied or downloaded whole")
    wanted = ("episode_index", "length", "data/chunk_index", "data/file_index", "success", "tasks")
    parts = []
    for file in files:
        try:
            names = pq.read_schema(file).names
            parts.append(pq.read_table(file, columns=[name for name in wanted if name in names]))
        except (pa.ArrowException, OSError) as error:
            raise DatasetError(f"{file} cannot be read: {error}") from None
    table = pa.concat_tables(parts, promote_options="default")
    return {name: table.column(name).to_numpy() for name in table.column_names if not table.column(name).null_count}


def _tasks(columns: dict[str, np.ndarray], order: np.ndarray) -> tuple[str, ...] | None:
    """The task of each episode; one that goes by several sentences is named by all of them."""
    said = columns.get("tasks")
    if said is None:
        return None
    return tuple(
        value if isinstance(value, str) else "; ".join(map(str, value if isinstance(value, np.ndarray) else [value]))
        for value in said[order]
    )


def _data_files(root: Path, info: dict[str, Any], columns: dict[str, np.ndarray]) -> tuple[Path, ...]:
    pattern = str(info.get("data_path") or "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet")
    try:
        places = sorted(set(zip(columns["data/chunk_index"], columns["data/file_index"], strict=True)))
        files = tuple(root / pattern.format(chunk_index=int(c), file_index=int(f)) for c, f in places)
    except (KeyError, IndexError, ValueError, AttributeError):
        files = tuple(sorted((root / "data").rglob("*.parquet")))
    outside = [file for file in files if not file.is_relative_to(root) or ".." in file.relative_to(root).parts]
    if outside:
        raise DatasetError(f"{root}: meta/info.json: data_path leads out of the dataset, to {outside[0]}")
    missing = [file for file in files if not file.is_file()]
    if missing or not files:
        what = missing[0].relative_to(root) if missing else "data/*.parquet"
        raise DatasetError(f"{root}: {what} is missing ({len(missing)} of {len(files)} files): not downloaded whole?")
    return files
