"""The episodes of a run as a table: a pandas or polars frame, an Arrow table, or plain rows, whichever is at hand."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError, NotInstalledError
from robotrials.install import install_command
from robotrials.results.stored import StoredEpisode, StoredRun, read_run

KINDS = ("pandas", "polars", "arrow", "records")

COLUMNS: dict[str, type] = {
    "suite": str,
    "task": str,
    "group": str,
    "index": int,
    "seed": int,
    "init_state": int,
    "success": bool,
    "end": str,
    "steps": int,
    "reward_sum": float,
    "reward_max": float,
    "looks": int,
    "renders": int,
    "nonfinite": int,
    "attempt": int,
    "worker": str,
    "started_at": float,
    "reset_s": float,
    "simulate_s": float,
    "render_s": float,
    "infer_s": float,
    "wait_s": float,
    "film_s": float,
    "total_s": float,
    "video": str,
    "error": str,
    "counted": bool,
}
"""Columns and their types; any value may be missing. ``success`` is missing for an error. ``started_at`` is Unix time,
``*_s`` are seconds, ``video`` is relative to the run directory. ``counted``: the rates are made of the rows where it is
true. It is false for an episode that ended out of order in an unfinished run, where successes end first, and for one
that finished after the run had decided to stop early: leave these out of every rate."""


def load_run(path: str | Path, frame: str = "auto") -> Any:
    """The episodes of the run at ``path``, one row each in the order of the plan, errors included.

    ``path``: a run directory (also of a run that is going on), or an ``eval_info.json``, lerobot-eval's too. ``frame``:
    "pandas", "polars", "arrow" (a pyarrow.Table), "records" (a list of dicts), or "auto", the first of these that is
    installed, where one that the program has imported already comes first.

    Of an unfinished run not every row counts: what has ended is no fair sample, since successes end first. The column
    ``counted`` says which do.

    >>> frame = robotrials.load_run("outputs/eval/run")
    >>> frame[frame["counted"]].groupby("task")["success"].mean()

    Raises:
        ConfigError: no run, or an unknown ``frame``.
        NotInstalledError: that package is missing.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ConfigError(f"load_run takes the path of a run, got {path!r}")
    run = read_run(Path(path))
    return to_frame(columns(run), frame)


def columns(run: StoredRun) -> dict[str, list[Any]]:
    """The table, column by column: lists of plain values, None for a missing one."""
    table: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for counted, episodes in ((True, run.episodes), (False, run.out_of_order), (False, run.surplus)):
        for episode in episodes:
            for name, value in _row(episode, counted).items():
                table[name].append(value)
    return table


def to_frame(table: Mapping[str, list[Any]], frame: str = "auto") -> Any:
    """``table`` as ``frame``; see ``load_run``."""
    kind = _choose() if frame == "auto" else frame
    if kind not in _MAKERS:
        raise ConfigError(f"frame must be auto, {', '.join(KINDS)}; got {frame!r}")
    try:
        return _MAKERS[kind](table)
    except ModuleNotFoundError as error:
        raise NotInstalledError(
            f"frame={frame!r} needs {error.name}: pip install {error.name}, or take frame='records'"
        ) from None


def records(table: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """``table`` row by row."""
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def _choose() -> str:
    modules = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}
    for kind, module in modules.items():
        if kind != "arrow" and module in sys.modules:
            return kind
    return next((kind for kind, module in modules.items() if importlib.util.find_spec(module)), "records")


def _row(episode: StoredEpisode, counted: bool) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(episode, name) for name in _OF_EPISODE}
    record = episode.record
    if record is None:
        row |= dict.fromkeys(_OF_RECORD)
    else:
        row |= {name: getattr(record, name) for name in _AS_RECORDED}
        row |= {f"{name}_s": getattr(record.timings, name) for name in _TIMES}
    return {**row, "counted": counted}


_TIMES = ("reset", "simulate", "render", "infer", "wait", "film", "total")
_AS_RECORDED = ("looks", "renders", "nonfinite", "attempt", "worker", "started_at")
_OF_RECORD = (*_AS_RECORDED, *(f"{name}_s" for name in _TIMES))
_OF_EPISODE = tuple(name for name in COLUMNS if name not in _OF_RECORD and name != "counted")


def _pandas(table: Mapping[str, list[Any]]) -> Any:
    import pandas

    # The dtypes that know missing values: a missing seed must not turn the others into floats.
    dtypes = {str: "string", int: "Int64", float: "Float64", bool: "boolean"}
    return pandas.DataFrame({name: pandas.array(values, dtype=dtypes[COLUMNS[name]]) for name, values in table.items()})


def _polars(table: Mapping[str, list[Any]]) -> Any:
    import polars

    dtypes = {str: polars.String, int: polars.Int64, float: polars.Float64, bool: polars.Boolean}
    return polars.DataFrame(dict(table), schema={name: dtypes[COLUMNS[name]] for name in table})


def _arrow(table: Mapping[str, list[Any]]) -> Any:
    import pyarrow

    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[COLUMNS[name]]) for name in table])
    return pyarrow.table(dict(table), schema=schema)


_MAKERS: dict[str, Callable[[Mapping[str, list[Any]]], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "arrow": _arrow,
    "records": records,
}


def write_parquet(run: StoredRun, path: Path) -> None:
    """The table as a Parquet file, with the run's description (run.json) as the file's metadata ``robotrials``.

    Raises:
        NotInstalledError: pyarrow is missing.
        OSError: it cannot be written.
    """
    from robotrials.results.export.eval_info import strict_json
    from robotrials.results.filesystem import write_atomically

    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise NotInstalledError(f"--parquet needs pyarrow: {install_command('dataset')}") from None
    table = _arrow(columns(run)).replace_schema_metadata({"robotrials": strict_json(run.described)})
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    write_atomically(path, sink.getvalue().to_pybytes())


def csv_lines(run: StoredRun) -> Iterator[list[Any]]:
    """The header and the rows, for ``csv.writer``."""
    table = columns(run)
    yield list(table)
    yield from (list(row.values()) for row in records(table))
