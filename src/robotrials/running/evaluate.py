"""A run from configuration to exports: plan it, open its directory, run what is missing, write the results.

    prepared = prepare(config)                    # everything is checked, nothing has started
    result = execute(prepared, SilentObserver())
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import zmq

from robotrials.benchmarks.base import Benchmark
from robotrials.benchmarks.gl import gl_environment
from robotrials.benchmarks.registry import make_benchmark, package_versions, require_installed
from robotrials.errors import ConfigError, IdentityError
from robotrials.plan.config import RunConfig
from robotrials.plan.plan import Plan, build_plan
from robotrials.policies import registry as policies
from robotrials.results.exports import write_exports
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import RunDirectory, differences, identity_hash, load_run_json, video_name
from robotrials.results.summary import RunSummary, summarize
from robotrials.running.coordinator import Coordinator, Terms
from robotrials.running.description import config_from_json, describe_run, run_identity
from robotrials.running.launchers.local import LocalLauncher
from robotrials.running.messages import Job, PolicyNeeds
from robotrials.running.observer import Observer
from robotrials.running.queue import EpisodeQueue
from robotrials.running.recording import RecordRule
from robotrials.running.tally import Tally
from robotrials.running.threads import available_cores, thread_limits
from robotrials.running.worker import TOKEN_VARIABLE
from robotrials.wire.codec import to_plain
from robotrials.wire.transport import PrivateEndpoint, bind_router, new_token

_BEAT_EVERY_S = 1.0


@dataclass(frozen=True)
class PreparedRun:
    """A run that could start now. ``done`` episodes are in its ledger already, ``errors`` of them erred."""

    config: RunConfig
    plan: Plan
    benchmark: Benchmark
    output_dir: Path
    identity: dict[str, Any]
    n_workers: int
    done: int
    errors: int

    @property
    def is_finished(self) -> bool:
        """Nothing to do: every episode has an outcome."""
        return self.done == len(self.plan) and not self.errors


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


def prepare(config: RunConfig) -> PreparedRun:
    """Plan the run and check all that can be checked without starting anything.

    Raises:
        ConfigError: options that cannot be meant, or a directory that holds something else.
        NotInstalledError: the benchmark's packages are missing.
        IdentityError: the directory holds a run of another identity.
    """
    RecordRule.parse(config.eval.record)
    _check_settings(config)
    benchmark = make_benchmark(config.env)
    require_installed(type(benchmark))
    policies.validate(config.policy)
    config = _with_absolute_paths(config)
    output_dir = Path(config.output_dir or _default_directory(config)).expanduser().absolute()
    existing = _existing_run(output_dir)
    config = replace(config, output_dir=output_dir, seed=_seed(config, existing))
    assert config.seed is not None
    plan = build_plan(benchmark.tasks(), config.eval.n_episodes, config.seed)
    packages = package_versions(type(benchmark))
    identity = run_identity(config, benchmark, packages, plan, policies.revision(config.policy))
    done, errors = _progress_so_far(output_dir, existing, identity, config, len(plan))
    cores = config.eval.batch_size or available_cores()
    n_workers = max(1, min(cores, len(plan) - done + errors))
    return PreparedRun(config, plan, benchmark, output_dir, identity, n_workers, done, errors)


def prepare_resume(directory: Path) -> PreparedRun:
    """Prepare what ``run.json`` in ``directory`` describes.

    Raises:
        ConfigError: there is no run; and what ``prepare`` raises.
    """
    directory = Path(directory).expanduser().absolute()
    return prepare(config_from_json(load_run_json(directory)["config"], directory))


def execute(prepared: PreparedRun, observer: Observer) -> RunResult:
    """Run the episodes that have no outcome yet, and write the exports. Errors of earlier sessions are tried again.

    Interrupted by SIGINT or SIGTERM (when called in the main thread) it returns with ``interrupted`` set; no worker
    outlives the call, however it ends.

    Raises:
        RunLockedError: another coordinator is at work there.
        ConfigError, ContractError: workers cannot start, or policy and benchmark do not fit.
        LedgerError: a record could not be written.
    """
    began = time.monotonic()
    plan, config = prepared.plan, prepared.config
    with RunDirectory(prepared.output_dir) as directory:
        described = directory.load_run_json() or describe_run(
            config, prepared.identity, identity_hash(prepared.identity), plan
        )
        with _open_ledger(directory, prepared.identity) as ledger:
            interrupted = False
            if not prepared.is_finished:
                session = {"started_at": time.time(), "workers": prepared.n_workers, "wall_s": None}
                described["sessions"].append(session)
                _note_mixture(described, prepared.identity)
                directory.write_run_json(described)
                try:
                    interrupted = _run_missing(prepared, directory, ledger, described, observer)
                finally:
                    session["wall_s"] = time.monotonic() - began
                    directory.write_run_json(described)
            summary = summarize(ledger, plan)
            wall = sum(s["wall_s"] or 0.0 for s in described["sessions"])
            write_exports(directory, plan, ledger, summary, described, wall)
            failures = _failure_messages(ledger)
    complete = summary.overall.n_finished == len(plan)
    return RunResult(summary, prepared.output_dir, complete, interrupted, time.monotonic() - began, failures)


def _run_missing(
    prepared: PreparedRun, directory: RunDirectory, ledger: Ledger, described: dict[str, Any], observer: Observer
) -> bool:
    """Start coordinator and workers for the episodes without outcome; True when a signal ended it early."""
    plan, config = prepared.plan, prepared.config
    ledger.reopen_errors()
    tally = Tally(plan)
    for record in ledger.accepted():
        tally.recall(record)
    queue = EpisodeQueue(
        plan, ledger.accepted_ids(), ledger.attempt_counts(), config.eval.max_attempts, config.eval.order
    )
    rule = RecordRule.parse(config.eval.record)

    def keep_policy(needs: PolicyNeeds) -> None:
        described["policy"] = to_plain(needs)
        directory.write_run_json(described)

    token = new_token()
    endpoint = PrivateEndpoint.create()
    environment = {
        **os.environ,
        **gl_environment(os.environ),
        **thread_limits(1),
        TOKEN_VARIABLE: token,
    }
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        router = bind_router(context, endpoint.address)
        job = Job(
            env=config.env,
            policy=config.policy,
            tasks=plan.tasks,
            rename_map=config.rename_map,
            run_dir=str(directory.path),
            record_fps=config.eval.record_fps,
            beat_every=min(_BEAT_EVERY_S, config.eval.step_timeout / 4),
        )
        coordinator = Coordinator(
            plan=plan,
            queue=queue,
            ledger=ledger,
            tally=tally,
            job=job,
            terms=Terms(prepared.n_workers, config.eval.step_timeout, rule.mode, video_name),
            launcher=LocalLauncher(endpoint.address, directory.logs, environment),
            router=router,
            token=token,
            observer=observer,
            on_policy=keep_policy,
        )
        with _stopped_by_signals(coordinator):
            coordinator.run()
        return not queue.is_finished
    finally:
        context.destroy(linger=0)
        endpoint.remove()


@contextlib.contextmanager
def _stopped_by_signals(coordinator: Coordinator) -> Iterator[None]:
    """SIGINT and SIGTERM end the run in order. Only the main thread may do this; elsewhere the caller's rules hold."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        coordinator.request_stop(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_settings(config: RunConfig) -> None:
    settings = config.eval
    for name, least in (("batch_size", 0), ("max_attempts", 1), ("n_episodes", 1)):
        if getattr(settings, name) < least:
            raise ConfigError(f"--eval.{name} must be at least {least}, got {getattr(settings, name)}")
    for name in ("step_timeout", "record_fps"):
        if not getattr(settings, name) > 0:
            raise ConfigError(f"--eval.{name} must be above 0, got {getattr(settings, name)}")


def _with_absolute_paths(config: RunConfig) -> RunConfig:
    """Paths that mean the same when the run is resumed from another folder."""
    choice = config.policy
    if choice.path and not choice.path.startswith("builtin:") and Path(choice.path).expanduser().exists():
        choice = replace(choice, path=str(Path(choice.path).expanduser().absolute()))
    if choice.type and (file := re.fullmatch(r"(.+\.py):(\w+)", choice.type)):
        choice = replace(choice, type=f"{Path(file[1]).expanduser().absolute()}:{file[2]}")
    # The type as the registry reads it off the path, so that run.json and the exports name it.
    return replace(config, policy=replace(choice, type=policies.type_of(choice)))


def _default_directory(config: RunConfig) -> Path:
    """lerobot-eval's default: outputs/eval/DATE/TIME_JOB."""
    now = datetime.now()
    kind = (config.policy.type or "policy").rpartition(":")[2]
    job = config.job_name or f"{config.env.type}_{kind}"
    return Path("outputs/eval") / f"{now:%Y-%m-%d}" / f"{now:%H-%M-%S}_{re.sub(r'[^A-Za-z0-9_.-]', '_', job)}"


def _seed(config: RunConfig, existing: dict[str, Any] | None) -> int:
    if config.seed is not None:
        return config.seed
    if existing is not None:
        return int(existing["config"]["seed"])
    return random.SystemRandom().randrange(2**31 - 2**20)


_OWN_NAMES = {"run.lock", "videos", "logs"}
"""What a run directory holds before its run.json: a run killed that early starts anew."""


def _existing_run(output_dir: Path) -> dict[str, Any] | None:
    """The run.json that lies there, None in a new or empty directory.

    Raises:
        ConfigError: other files lie there.
    """
    if not output_dir.exists():
        return None
    if (output_dir / "run.json").exists():
        return load_run_json(output_dir)
    if not output_dir.is_dir() or {path.name for path in output_dir.iterdir()} - _OWN_NAMES:
        raise ConfigError(f"{output_dir} exists and holds no run: choose another --output_dir, or empty it")
    return None


def _progress_so_far(
    output_dir: Path, existing: dict[str, Any] | None, identity: dict[str, Any], config: RunConfig, planned: int
) -> tuple[int, int]:
    """Episodes with a result in ``output_dir``, and how many of these are errors.

    Raises:
        IdentityError: another run lives there.
    """
    if existing is None:
        return 0, 0
    changes = differences(existing["identity"], identity)
    same_plan = existing["identity"].get("plan") == identity["plan"]
    if changes and not (config.allow_mixed and same_plan):
        hint = (
            "start it in another --output_dir, or go on with --allow_mixed=true, which records that the run is mixed"
            if same_plan
            else "these are other episodes: start them in another --output_dir"
        )
        raise IdentityError(
            f"{output_dir} holds another run. What differs (there -> here):\n  " + "\n  ".join(changes) + f"\n{hint}"
        )
    path = output_dir / "ledger.sqlite"
    if not path.exists():
        return 0, 0
    with Ledger.open(path, read_only=True) as ledger:
        done = errors = 0
        for record in ledger.accepted():
            done += 1
            errors += record.is_error
    return done, errors


def _note_mixture(described: dict[str, Any], identity: dict[str, Any]) -> None:
    changes = differences(described["identity"], identity)
    if changes:
        described["mixed"].append({"at": time.time(), "changes": changes})


def _open_ledger(directory: RunDirectory, identity: dict[str, Any]) -> Ledger:
    path = directory.ledger_path
    return Ledger.open(path) if path.exists() else Ledger.create(path, identity)


def _failure_messages(ledger: Ledger) -> list[str]:
    counts: dict[str, int] = {}
    for record in ledger.accepted():
        if record.is_error:
            first_line = (record.error or "no message").split("\n", 1)[0]
            counts[first_line] = counts.get(first_line, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return [f"{count} x {text}" if count > 1 else text for text, count in ranked]
