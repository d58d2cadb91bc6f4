"""Columns of a dataset as Arrow types, in the shapes that LeRobot's reader casts to without loss."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robotrials.datasets.statistics import STATISTICS

Features = Mapping[str, Mapping[str, Any]]
"""The features of ``meta/info.json``."""

RESULTS = {
    "seed": "int64",
    "init_state": "int64",
    "suite": "string",
    "task_name": "string",
    "success": "bool",
    "end": "string",
    "reward_sum": "float64",
    "reward_max": "float64",
}
"""Columns of an episode that are ours: what was evaluated and how it ended. LeRobot hands them on, so that
``dataset.meta.filter_episodes(lambda e: e["success"])`` selects."""


def data_schema(features: Features) -> Any:
    """The schema of a step's row: one column for every feature that is no video."""
    import pyarrow as pa

    return pa.schema([(key, _type_of(kind)) for key, kind in features.items() if kind["dtype"] != "video"])


def data_table(columns: Mapping[str, np.ndarray], schema: Any) -> Any:
    """``columns`` (T, D) or (T,) as a table of ``schema``."""
    import pyarrow as pa

    arrays = []
    for field in schema:
        values = columns[field.name].ravel()
        if pa.types.is_fixed_size_list(field.type):
            arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(values, field.type.value_type), type=field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def episode_schema(features: Features) -> Any:
    """The schema of an episode's row."""
    import pyarrow as pa

    whole = ["data/chunk_index", "data/file_index", "dataset_from_index", "dataset_to_index"]
    fields = [("episode_index", pa.int64()), ("tasks", pa.list_(pa.string())), ("length", pa.int64())]
    fields += [(name, pa.int64()) for name in whole]
    for key in (key for key, kind in features.items() if kind["dtype"] == "video"):
        fields += [(f"videos/{key}/{name}", pa.int64()) for name in ("chunk_index", "file_index")]
        fields += [(f"videos/{key}/{name}", pa.float64()) for name in ("from_timestamp", "to_timestamp")]
    fields += [(name, getattr(pa, kind.replace("bool", "bool_"))()) for name, kind in RESULTS.items()]
    for key, kind in features.items():
        values = pa.list_(pa.float64())
        if kind["dtype"] == "video":
            values = pa.list_(pa.list_(values))
        fields += [(f"stats/{key}/{name}", values) for name in STATISTICS if name != "count"]
        fields.append((f"stats/{key}/count", pa.list_(pa.int64())))
    fields += [(f"meta/episodes/{name}", pa.int64()) for name in ("chunk_index", "file_index")]
    return pa.schema(fields)


def write_tasks(path: Path, instructions: Sequence[str]) -> None:
    """``meta/tasks.parquet``: a row an instruction, in the order of ``task_index``.

    LeRobot reads it with pandas and looks instructions up in the index, so the file must say which column that is.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"task_index": pa.array(range(len(instructions)), pa.int64()), "task": list(instructions)})
    described = {
        "index_columns": ["task"],
        "column_indexes": [
            {"name": None, "field_name": None, "pandas_type": "unicode", "numpy_type": "object", "metadata": None}
        ],
        "columns": [
            {"name": n, "field_name": n, "pandas_type": p, "numpy_type": t, "metadata": None}
            for n, p, t in (("task_index", "int64", "int64"), ("task", "unicode", "object"))
        ],
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "pandas_version": "2.0.0",
    }
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(described)}), path)


def _type_of(feature: Mapping[str, Any]) -> Any:
    """LeRobot writes a shape of (1,) as plain numbers, other vectors as lists of one length."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(np.dtype(feature["dtype"]))
    (size,) = feature["shape"]
    return kind if size == 1 else pa.list_(kind, size)
