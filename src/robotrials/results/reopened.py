"""The figures of a run directory, worked out again from its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.plan import Plan
from robotrials.results.counting import what_counts
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import load_run_json
from robotrials.results.stored import stored_plan
from robotrials.results.summary import RunSummary, summarize


@dataclass(frozen=True)
class RunFigures:
    """A run directory: run.json, the plan and its figures. ``plan`` holds all that was planned; ``summary`` of a run
    that stopped early counts what it decided by, of an unfinished one what ``counting.py`` says."""

    path: Path
    described: Mapping[str, Any]
    plan: Plan
    summary: RunSummary

    @property
    def config(self) -> Mapping[str, Any]:
        config: Mapping[str, Any] = self.described["config"]
        return config

    @property
    def policy(self) -> str:
        return str(self.config["policy"].get("path") or self.config["policy"].get("type"))

    @property
    def env(self) -> str:
        return str(self.config["env"]["type"])

    @property
    def wall_s(self) -> float:
        """Wall seconds of all sessions together."""
        return sum(session.get("wall_s") or 0.0 for session in self.described.get("sessions", ()))


def reopen(path: Path, method: str | None = None) -> RunFigures:
    """Read ``path``; ``method`` makes the intervals (None: the one the run is configured with). Takes no lock.

    Raises:
        ConfigError: there is no run.
        LedgerError: the ledger is missing or damaged.
    """
    path = Path(path).expanduser()
    described = load_run_json(path)
    if not isinstance(described.get("config"), dict):
        raise ConfigError(f"{path / 'run.json'} does not describe a run: it lacks config")
    plan = stored_plan(described, path)
    method = method or str(described["config"].get("stats", {}).get("interval", "wilson"))
    with Ledger.open(path / "ledger.sqlite", read_only=True) as ledger:
        summary = summarize(
            ledger, plan, method, what_counts(described, plan, ledger.accepted_ids(), ledger.attempt_counts())
        )
    return RunFigures(path, described, plan, summary)
