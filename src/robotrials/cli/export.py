"""``robotrials export DIR``: the episodes of a run in the formats of other tools."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from robotrials.cli import output
from robotrials.cli.verb import Flag, Verb
from robotrials.errors import ConfigError

_TABLES = {"parquet": "episodes.parquet", "csv": "episodes.csv", "json": "episodes.json", "every_eval_ever": "."}
"""Formats, and where each goes when its flag stands bare."""
VERB = Verb(
    name="export",
    usage=("export DIR --parquet[=FILE] [--csv[=FILE]] [...]",),
    about="""
    Write the episodes of a run (a run directory, or an eval_info.json) as a table, one row an episode with seed,
    outcome, rewards, steps, timings, video and error; or its rates as a record of Every Eval Ever. Files go into the
    run directory unless named; FILE - is standard output, for one of CSV and JSON.
    """,
    flags=(
        Flag("parquet", "episodes.parquet; needs robotrials[dataset]", value="FILE", bare=_TABLES["parquet"]),
        Flag("csv", "episodes.csv", value="FILE", bare=_TABLES["csv"]),
        Flag("json", "episodes.json: a list of objects, strict JSON", value="FILE", bare=_TABLES["json"]),
        Flag(
            "every_eval_ever",
            "the aggregate record, under DIR in the layout of its collection (data/BENCHMARK/DEVELOPER/MODEL/...)",
            value="DIR",
            bare=_TABLES["every_eval_ever"],
        ),
        Flag("model_id", "what that record calls the policy", value="DEV/MODEL", default="its Hub name"),
        Flag("organization", "who evaluated, in that record", value="NAME", default="unknown"),
    ),
    ending="From Python: robotrials.load_run(DIR) gives the table as a frame.",
)
_STDOUT = Path("-")


def run(argv: Sequence[str]) -> int:
    """Parse, read, write; returns the exit status."""
    from robotrials.results.export.frame import columns, csv_lines, records, write_parquet
    from robotrials.results.stored import read_run

    words = VERB.parse(argv)
    if len(words.plain) != 1:
        raise ConfigError(f"export takes one run: robotrials export DIR --parquet; got {len(words.plain)}")
    asked = [name for name in _TABLES if name in words.flags]
    if not asked:
        raise ConfigError("export needs a format: --parquet, --csv, --json or --every-eval-ever")
    if words.flags.get("parquet") == "-" or words.flags.get("every_eval_ever") == "-":
        raise ConfigError("only --csv=- and --json=- write to standard output")
    if words.flags.get("csv") == words.flags.get("json") == "-":
        raise ConfigError("--csv=- and --json=- would write into each other: give one of them a file")
    path = Path(words.plain[0])
    stored = read_run(path)
    for name in asked:
        target = _target(words.flags[name], name, stored.folder)
        try:
            if name == "parquet":
                write_parquet(stored, target)
            elif name == "csv":
                text = io.StringIO()
                csv.writer(text).writerows(csv_lines(stored))
                _write(target, text.getvalue())
            elif name == "json":
                from robotrials.results.export.eval_info import strict_json

                _write(target, strict_json(records(columns(stored))))
            else:
                target = _every_eval_ever(path, target, words.flags)
        except OSError as error:
            raise ConfigError(f"{target} cannot be written: {error.strerror or error}") from None
        if target == _STDOUT:
            continue
        output.line(f"wrote {target}")
    return 0


def _target(value: str, name: str, folder: Path) -> Path:
    """A bare flag's file lies in the run directory, a named one where it says."""
    return folder / value if value == _TABLES[name] else Path(value).expanduser()


def _every_eval_ever(path: Path, folder: Path, flags: Mapping[str, str]) -> Path:
    from robotrials.results.export.eval_info import strict_json
    from robotrials.results.export.every_eval_ever import aggregate, relative_path
    from robotrials.results.reopened import reopen

    if not (path / "run.json").exists():
        raise ConfigError(
            f"{path} is no run directory: --every-eval-ever needs what run.json says of policy and versions"
        )
    figures = reopen(path)
    record = aggregate(figures, flags.get("model_id"), flags.get("organization", "unknown"))
    target = folder / relative_path(figures, record)
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(target, strict_json(record))
    return target


def _write(target: Path, text: str) -> None:
    if target == _STDOUT:
        output.text(text)
        return
    from robotrials.results.filesystem import write_atomically

    write_atomically(target, text.encode())
