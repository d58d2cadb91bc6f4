"""A run as its directory describes it, to be shown or summed again: neither benchmark nor policy is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from robotrials.benchmarks.base import Benchmark, BenchmarkConfig, Env
from robotrials.engine.early_stop import plan_stop, was_decided
from robotrials.errors import ConfigError
from robotrials.plan.config import StatsSettings
from robotrials.plan.plan import Plan
from robotrials.plan.task import TaskSpec
from robotrials.results.counting import what_counts
from robotrials.results.ledger import Ledger
from robotrials.results.reopened import reopen
from robotrials.results.stored import stored_plan
from robotrials.run.description import config_from_json
from robotrials.run.directory import described_run, usable_directory
from robotrials.run.execute import RunResult, failure_messages
from robotrials.run.prepare import PreparedRun


class StoredBenchmark(Benchmark):
    """The tasks that a run directory names; their simulators cannot be built from it."""

    name, extra, modules, packages, Config = "stored", "", (), (), BenchmarkConfig

    def __init__(self, plan: Plan) -> None:
        super().__init__(BenchmarkConfig())
        self._tasks = plan.tasks

    def tasks(self) -> list[TaskSpec]:
        return list(self._tasks)

    def make(self, task: TaskSpec) -> Env:
        raise ConfigError(f"{task.name} cannot be played from what a run directory says of it")


def prepare_stored(directory: Path, stats: StatsSettings | None = None) -> PreparedRun:
    """The run in ``directory``, finished or not; ``stats`` in the place of what it is configured with. It can be
    executed only where ``is_finished``.

    Raises:
        ConfigError: there is no run.
        LedgerError: the ledger is missing or damaged.
    """
    directory = usable_directory(directory)
    described = described_run(directory)
    config = config_from_json(described["config"], directory)
    config = replace(config, stats=stats) if stats is not None else config
    plan, path = stored_plan(described, directory), directory / "ledger.sqlite"
    with Ledger.open(path, read_only=True) as ledger:
        erred = [record.is_error for record in ledger.accepted()]
    stop = plan_stop(config, plan, described, path) if _was_stopped(described) else None
    return PreparedRun(
        config=config,
        plan=plan,
        benchmark=StoredBenchmark(plan),
        output_dir=directory,
        identity=described["identity"],
        policy=config.policy,
        n_workers=int((described.get("sessions") or [{}])[-1].get("workers") or 0),
        n_servers=0,
        done=len(erred),
        errors=sum(erred),
        stop=stop,
        stopped=stop is not None and was_decided(stop, path),
    )


def finished_run(directory: Path, stats: StatsSettings | None = None) -> PreparedRun | None:
    """The run in ``directory`` if nothing is left of it to play or to write; else None.

    Raises:
        ConfigError: there is no run.
        LedgerError: the ledger is damaged.
    """
    directory = usable_directory(directory)
    described = described_run(directory)
    if not (directory / "ledger.sqlite").exists():
        return None  # whoever prepares it to go on says what is wrong
    prepared = prepare_stored(directory, stats)
    settings = prepared.config.eval
    wants_dataset = settings.dataset is not None or settings.recording
    if not prepared.is_finished or (wants_dataset and not _has_dataset(described)):
        return None
    return prepared


def result_so_far(prepared: PreparedRun) -> RunResult:
    """The figures of the run as far as it is; nothing is written, no lock is taken."""
    figures = reopen(prepared.output_dir, prepared.config.stats.interval)
    with Ledger.open(prepared.output_dir / "ledger.sqlite", read_only=True) as ledger:
        failures = failure_messages(ledger, what_counts(figures.described, figures.plan, ledger.accepted_ids()))
    return RunResult(
        summary=figures.summary,
        output_dir=prepared.output_dir,
        complete=figures.summary.complete,
        interrupted=False,
        wall_s=figures.wall_s,
        failures=failures,
        stopping=figures.described.get("stopping"),
    )


def _was_stopped(described: Mapping[str, Any]) -> bool:
    return isinstance((described.get("stopping") or {}).get("counted"), int)


def _has_dataset(described: Mapping[str, Any]) -> bool:
    return bool((described.get("dataset") or {}).get("written"))
