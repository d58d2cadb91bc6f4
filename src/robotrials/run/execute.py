"""A run from its plan to its exports: open its directory, run what is missing, write the results.

prepared = prepare(config)                    # of prepare.py: everything is checked, nothing has started
result = execute(prepared, SilentObserver())
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from robotrials.benchmarks.scene_group import scenes_of
from robotrials.engine.early_stop import describe_stop
from robotrials.engine.observer import Observer
from robotrials.engine.worker_pool import WorkerLayout
from robotrials.errors import IdentityError, LedgerError
from robotrials.policies.base import PolicySpec
from robotrials.results.counting import Counting, what_counts
from robotrials.results.error_groups import error_groups
from robotrials.results.export.eval_info import write_exports
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import RunDirectory, differences, identity_hash
from robotrials.results.summary import RunSummary, summarize
from robotrials.run.assembly import RunSession, run_session
from robotrials.run.dataset import DatasetMade, claim, make_dataset
from robotrials.run.description import describe_run
from robotrials.run.directory import clear, removed_when_refused
from robotrials.run.prepare import PreparedRun
from robotrials.run.tracking import open_tracker
from robotrials.wire.codec import to_plain


@dataclass(frozen=True)
class RunResult:
    """How a run ended. ``complete``: every episode has an outcome and none erred. ``wall_s`` of this session,
    ``failures`` the messages of errored episodes, most frequent first, with how many episodes each hit."""

    summary: RunSummary
    output_dir: Path
    complete: bool
    interrupted: bool
    wall_s: float
    failures: list[str]
    dataset: DatasetMade | None = None
    stopping: Mapping[str, Any] | None = None
    """How ``--until`` stands, as in run.json; None without it."""


def execute(prepared: PreparedRun, observer: Observer) -> RunResult:
    """Run the episodes that have no outcome yet, and write the exports. Errors of earlier sessions are tried again.

    Interrupted by SIGINT or SIGTERM (when called in the main thread) it returns with ``interrupted`` set; no worker
    outlives the call, however it ends.

    Raises:
        RunLockedError: another coordinator is at work there.
        ConfigError, ContractError: workers cannot start, or policy and benchmark do not fit.
        LedgerError: a record could not be written.
        DatasetError: the dataset could not be written; all else was.
    """
    began = time.monotonic()
    plan = prepared.plan
    with removed_when_refused(prepared.output_dir), RunDirectory(prepared.output_dir) as directory:
        described = directory.load_run_json()
        if described is not None and not prepared.done and differences(described["identity"], prepared.identity):
            clear(directory)
            described = None
        described = described or describe_run(
            prepared.config, prepared.identity, identity_hash(prepared.identity), plan
        )
        described["config"]["stats"] = asdict(prepared.config.stats)
        described["config"]["until"] = prepared.config.until
        described["config"]["wandb"] = asdict(prepared.config.wandb)
        tracker = open_tracker(prepared.config, described, observer)
        observer = tracker or observer
        if prepared.dataset is not None:
            claim(prepared.dataset, described, directory.path)
            directory.write_run_json(described)
        with _open_ledger(directory, prepared.identity) as ledger:
            interrupted = False
            if not prepared.is_finished:
                interrupted = _run_missing(prepared, directory, described, ledger, observer)
            _note_stop(prepared, described, ledger)
            counting = what_counts(described, plan, ledger.accepted_ids(), ledger.attempt_counts())
            directory.write_run_json(described)
            summary = summarize(ledger, plan, prepared.config.stats.interval, counting)
            wall = sum(s["wall_s"] or 0.0 for s in described["sessions"])
            write_exports(directory, plan, ledger, summary, described, wall, counting)
            failures = failure_messages(ledger, counting)
            dataset = None
            # Of shards, what is kept is joined when they are merged.
            is_whole = prepared.config.eval.num_shards == 1
            if prepared.dataset is not None and is_whole and not summary.overall.n_missing:
                kept = replace(plan, episodes=tuple(e for e in plan if e.id in counting.counted))
                dataset = make_dataset(prepared.dataset, directory, kept, ledger, described, observer)
        if tracker is not None:
            tracker.finish(summary, summary.complete)
    wall_s, stopping = time.monotonic() - began, described.get("stopping")
    return RunResult(summary, prepared.output_dir, summary.complete, interrupted, wall_s, failures, dataset, stopping)


def _note_stop(prepared: PreparedRun, described: dict[str, Any], ledger: Ledger) -> None:
    """Write down in ``described`` how ``--until`` stands."""
    if prepared.stop is None:
        described.pop("stopping", None)
        return
    follower = prepared.stop.follow(ledger.accepted())
    described["stopping"] = describe_stop(prepared.stop, follower, len(ledger.accepted_ids()))


def _run_missing(
    prepared: PreparedRun, directory: RunDirectory, described: dict[str, Any], ledger: Ledger, observer: Observer
) -> bool:
    """One session of the run, noted in run.json; True when a signal ended it early."""
    began = time.monotonic()
    drawn = prepared.rendering.words if prepared.rendering else None
    session = {"started_at": time.time(), "workers": prepared.n_workers, "wall_s": None, "rendering": drawn}
    described["sessions"].append(session)
    described.setdefault("order", {"tasks_at_once": _tasks_at_once(prepared)})
    changes = differences(described["identity"], prepared.identity)
    if changes:
        described["mixed"].append({"at": time.time(), "changes": changes})
    directory.write_run_json(described)

    def keep_policy(spec: PolicySpec, about: Mapping[str, Any]) -> None:
        """What only the loaded policy can tell (device, precision, padding, its packages' versions) must not change
        between the sessions of a run either."""
        loaded = {**to_plain(spec), **about}
        before = described["policy"]
        changes = differences(before, loaded) if before is not None else []
        if changes and not prepared.config.allow_mixed:
            raise IdentityError(
                f"the policy is not loaded as earlier in this run ({prepared.output_dir}). What differs "
                "(there -> here):\n  " + "\n  ".join(changes) + "\n--allow_mixed=true goes on and records it"
            )
        if changes:
            described["mixed"].append({"at": time.time(), "changes": changes})
        described["policy"] = before or loaded
        directory.write_run_json(described)

    try:
        work = RunSession(
            replace(prepared.config, policy=prepared.policy),
            prepared.plan,
            prepared.benchmark,
            prepared.identity,
            prepared.n_workers,
            prepared.n_servers,
            directory.path,
            prepared.dataset.layout.cameras if prepared.dataset is not None else None,
            prepared.rendering,
            prepared.stop,
        )
        return run_session(work, ledger, observer, keep_policy)
    finally:
        session["wall_s"] = time.monotonic() - began
        if sys.exc_info()[0] is None:
            directory.write_run_json(described)
        else:
            with contextlib.suppress(LedgerError):  # what ended the run is what is told
                directory.write_run_json(described)


def _tasks_at_once(prepared: PreparedRun) -> int:
    """How many tasks the queue has in work at a time: a process stays with one, unless it goes round by round. It fixes
    the order by which an unfinished run is judged (``results/counting.py``)."""
    n_processes = WorkerLayout(prepared.n_workers, scenes_of(prepared.benchmark)).n_processes
    in_rounds = prepared.stop is not None or prepared.config.eval.order != "longest"
    return len(prepared.plan.tasks) if in_rounds or not n_processes else n_processes


def _open_ledger(directory: RunDirectory, identity: dict[str, Any]) -> Ledger:
    path = directory.ledger_path
    return Ledger.open(path) if path.exists() else Ledger.create(path, identity)


def failure_messages(ledger: Ledger, counting: Counting) -> list[str]:
    """What episodes ended in an error with, grouped by kind, most frequent first."""
    return [
        group.words
        for group in error_groups(record for record in ledger.accepted() if record.episode not in counting.surplus)
    ]
