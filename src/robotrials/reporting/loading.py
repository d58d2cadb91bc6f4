"""A run directory as reports read it: its description, its plan, its figures and every result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.plan import Plan
from robotrials.results.counting import what_counts
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord
from robotrials.results.rundir import load_run_json
from robotrials.results.stored import stored_plan
from robotrials.results.summary import RunSummary, summarize


@dataclass(frozen=True)
class LoadedRun:
    """A run as it lies on disk. ``label`` tells it from the others of one report, ``described`` is run.json.
    ``records`` are the results that count, in the order of the plan: of a run that is unfinished or
    stopped early not all."""

    label: str
    path: Path
    described: Mapping[str, Any]
    plan: Plan
    summary: RunSummary
    records: tuple[EpisodeRecord, ...]

    @property
    def policy(self) -> str:
        return policy_name(self.described["config"]["policy"])

    @property
    def env(self) -> str:
        return str(self.described["config"]["env"]["type"]).rpartition(":")[2]

    @property
    def wall_s(self) -> float:
        """Wall seconds of all sessions together."""
        return sum(float(session.get("wall_s") or 0.0) for session in self.described.get("sessions", ()))


def load_runs(directories: Sequence[Path]) -> list[LoadedRun]:
    """Read the runs, in order; a run that is still going is read as far as it is.

    Raises:
        ConfigError: a directory holds no run, or one is given twice.
        LedgerError: a ledger is missing or damaged.
    """
    resolved = [Path(directory).resolve() for directory in directories]
    for i, path in enumerate(resolved):
        if path in resolved[:i]:
            raise ConfigError(f"{directories[i]} is given twice")
    return [_load(path, label) for path, label in zip(resolved, distinct_labels(resolved), strict=True)]


def _load(path: Path, label: str) -> LoadedRun:
    described = load_run_json(path)
    plan = stored_plan(described, path)
    method = (described["config"].get("stats") or {}).get("interval", "wilson")
    with Ledger.open(path / "ledger.sqlite", read_only=True) as ledger:
        counting = what_counts(described, plan, ledger.accepted_ids(), ledger.attempt_counts())
        records = tuple(record for record in ledger.accepted() if record.episode in counting.counted)
        summary = summarize(ledger, plan, method, counting)
    return LoadedRun(label=label, path=path, described=described, plan=plan, summary=summary, records=records)


def distinct_labels(paths: Sequence[Path]) -> list[str]:
    """For each path the shortest ending of it, from whole components, that no other has."""
    for n in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        labels = ["/".join(path.parts[-n:]) for path in paths]
        if len(set(labels)) == len(labels):
            return labels
    return [str(path) for path in paths]


_SAYS_NOTHING = re.compile(r"pretrained_model|checkpoints?|last|\d+")


def policy_name(policy: Mapping[str, Any]) -> str:
    """What people call it: a repository's name as it is, of a path the last component that says something."""
    path = policy.get("path")
    if not path:
        return str(policy.get("type") or "policy").rpartition(":")[2]
    if not str(path).startswith(("/", ".", "~")):
        return str(path).removeprefix("builtin:")
    telling = [part for part in PurePosixPath(str(path)).parts if not _SAYS_NOTHING.fullmatch(part)]
    return telling[-1] if telling else str(path)


def video_file(run: LoadedRun, record: EpisodeRecord) -> Path | None:
    """The video of ``record``, if it was recorded, lies inside its run directory, and is still there."""
    if not record.video:
        return None
    file = (run.path / record.video).resolve()
    return file if file.is_relative_to(run.path) and file.is_file() else None
