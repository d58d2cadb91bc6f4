"""Actions and progress of the chosen episodes, out of parquet: only these columns are read, no video is opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robotrials.datasets.analysis.catalogue import SARM_FILE, TASK, Catalogue
from robotrials.datasets.layout import ACTION, SUCCESS
from robotrials.errors import ConfigError, DatasetError

TIME = "time"
_SARM_COLUMNS = ("progress_dense", "progress_sparse")
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class DatasetEpisode:
    """``actions`` (T, J) float32, ``progress`` (T,) float64 in [0, 1] that never falls; ``success`` None: not said;
    ``task`` in words or by its number, empty where nothing says it."""

    index: int
    actions: np.ndarray
    progress: np.ndarray
    success: bool | None = None
    task: str = ""


def read_episodes(
    catalogue: Catalogue, chosen: np.ndarray, n_joints: int, progress: str
) -> tuple[list[DatasetEpisode], str]:
    """The episodes whose numbers are in ``chosen``, in that order, and where their progress comes from.

    Memory grows with the chosen episodes only.

    Raises:
        ConfigError: ``progress`` names no column.
        DatasetError: rows are missing or damaged, or an action is not a number.
    """
    column, sarm = _progress_source(catalogue, progress)
    names = ["episode_index", "frame_index", ACTION]
    names += [SUCCESS] if catalogue.success is None and catalogue.has_row_success else []
    names += [TASK] if catalogue.tasks is None and catalogue.has_row_task else []
    names += [column] if column and not sarm else []
    rows = _collect(catalogue.files, names, chosen)
    known = None if sarm is None else _collect((sarm,), ["episode_index", "frame_index", column], chosen)
    said = {} if catalogue.success is None else dict(zip(catalogue.indices, catalogue.success, strict=True))
    tasks = {} if catalogue.tasks is None else dict(zip(catalogue.indices, catalogue.tasks, strict=True))
    lengths = dict(zip(catalogue.indices, catalogue.lengths, strict=True))
    episodes = []
    for index in map(int, chosen):
        found = rows.get(index, {})
        n = len(found.get("frame_index", ()))
        if n != lengths[index]:
            raise DatasetError(
                f"{catalogue.root}: episode {index} has {n} rows, meta/episodes says {lengths[index]}: "
                "it was not copied or downloaded whole"
            )
        actions = found[ACTION].reshape(n, -1)
        if actions.shape[1] != catalogue.action_size:
            raise DatasetError(
                f"{catalogue.root}: actions have {actions.shape[1]} entries, meta/info.json says "
                f"{catalogue.action_size}"
            )
        with np.errstate(over="ignore"):  # what is beyond float32 is refused below
            actions = actions[:, :n_joints].astype(np.float32)
        if not np.isfinite(actions).all():
            frame, joint = np.argwhere(~np.isfinite(actions))[0]
            raise DatasetError(f"{catalogue.root}: episode {index}, frame {frame}: action {joint} is not a number")
        where = found if known is None else known.get(index, {})
        success = said.get(index, bool(found[SUCCESS].any()) if SUCCESS in found else None)
        steps = _progress(where.get(column), n, f"{catalogue.root}: episode {index}: {column}")
        task = tasks.get(index) or (f"task {int(found[TASK].flat[0])}" if TASK in found and n else "")
        episodes.append(DatasetEpisode(index, actions, steps, None if success is None else bool(success), task))
    source = TIME if not column else f"{SARM_FILE}: {column}" if sarm else column
    return episodes, source


def _progress_source(catalogue: Catalogue, asked: str) -> tuple[str, Path | None]:
    """The column, and the file if it is not in the rows; an empty name stands for time."""
    import pyarrow.parquet as pq

    sarm = catalogue.root / SARM_FILE
    in_file = pq.read_schema(sarm).names if sarm.is_file() else []
    in_rows = [name for name in catalogue.features if name.rpartition(".")[2].startswith("progress")]
    if asked == TIME:
        return "", None
    if asked == "auto":
        for name in _SARM_COLUMNS:
            if name in in_file:
                return name, sarm
        return (in_rows[0] if in_rows else ""), None
    if asked in in_file:
        return asked, sarm
    if asked in catalogue.features:
        return asked, None
    have = ", ".join([*in_file, *in_rows]) or "none that looks like progress"
    raise ConfigError(f"--progress={asked}: {catalogue.root} has no such column; it has: {have}")


def _progress(values: np.ndarray | None, n: int, where: str) -> np.ndarray:
    """Clipped to [0, 1] and made never to fall; gaps repeat the value before. None: linear in time."""
    if values is None or not n:
        return np.linspace(0.0, 1.0, n) if n > 1 else np.zeros(n)
    values = values.reshape(-1).astype(np.float64)
    if len(values) != n:
        raise DatasetError(f"{where} has {len(values)} values for {n} frames")
    if np.isnan(values).all():
        raise DatasetError(f"{where} holds no number")
    clipped = np.clip(values, 0.0, 1.0)
    return np.maximum.accumulate(np.nan_to_num(clipped, nan=0.0))


def _collect(files: tuple[Path, ...], names: list[str], chosen: np.ndarray) -> dict[int, dict[str, np.ndarray]]:
    """The rows of each chosen episode, sorted by frame: episode to column to values (T, ...)."""
    parts: dict[int, list[dict[str, np.ndarray]]] = {}
    wanted = np.sort(chosen)
    for batch in _batches(files, names):
        owner = batch["episode_index"]
        mine = np.flatnonzero(np.isin(owner, wanted))
        starts = np.flatnonzero(np.diff(owner[mine], prepend=-1))
        for part in np.split(mine, starts[1:]) if len(mine) else ():
            parts.setdefault(int(owner[part[0]]), []).append({name: batch[name][part] for name in names})
    whole = {}
    for index, pieces in parts.items():
        columns = {name: np.concatenate([piece[name] for piece in pieces]) for name in names}
        order = np.argsort(columns["frame_index"], kind="stable")
        whole[index] = {name: values[order] for name, values in columns.items()}
    return whole


def _batches(files: tuple[Path, ...], names: list[str]) -> Iterator[dict[str, np.ndarray]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                missing = [name for name in names if name not in file.schema_arrow.names]
                if missing:
                    raise DatasetError(f"{path}: the columns {', '.join(missing)} are missing")
                for batch in file.iter_batches(_BATCH_ROWS, columns=names):
                    yield {name: _to_numpy(batch.column(name), f"{path}: {name}") for name in names}
        except (pa.ArrowException, OSError) as error:
            raise DatasetError(f"{path} cannot be read: {error}") from None


def _to_numpy(column: Any, where: str) -> np.ndarray:
    """(N,) of numbers, (N, D) of lists that are all of one length."""
    import pyarrow as pa

    kinds = pa.types
    is_lists = kinds.is_list(column.type) or kinds.is_large_list(column.type) or kinds.is_fixed_size_list(column.type)
    inner = column.type.value_type if is_lists else column.type
    if not (kinds.is_integer(inner) or kinds.is_floating(inner) or kinds.is_boolean(inner)):
        raise DatasetError(f"{where}: {column.type} is not made of numbers")
    if where.endswith("_index") and (column.null_count or not kinds.is_integer(inner)):
        raise DatasetError(f"{where}: not every row has a whole number")
    if not is_lists:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    flat = column.flatten()
    if column.null_count or (len(column) and len(flat) % len(column)):
        raise DatasetError(f"{where}: rows of different lengths")
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(column), -1)
