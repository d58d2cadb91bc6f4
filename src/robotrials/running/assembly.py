"""Puts one session of a run together (sockets, launchers, policy servers, queue, coordinator) and takes it apart."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import zmq

from robotrials.benchmarks import environments
from robotrials.benchmarks.base import Benchmark
from robotrials.benchmarks.gl import Rendering, gl_environment
from robotrials.datasets.spool import clear_unfinished
from robotrials.plan.config import RunConfig
from robotrials.plan.plan import Plan
from robotrials.policies.base import PolicySpec
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import video_name
from robotrials.running.coordinator import Coordinator, Terms
from robotrials.running.launchers.local import LocalLauncher
from robotrials.running.messages import Job
from robotrials.running.observer import Observer
from robotrials.running.pulse import TOKEN_VARIABLE
from robotrials.running.queue import EpisodeQueue
from robotrials.running.recording import RecordRule
from robotrials.running.servers import ServerPool, ServerTerms
from robotrials.running.tally import Tally
from robotrials.running.threads import thread_limits
from robotrials.wire.transport import PrivateEndpoint, bind_router, new_token

_BEAT_EVERY_S = 1.0

PolicyNote = Callable[[PolicySpec, Mapping[str, Any]], None]


def run_session(
    config: RunConfig,
    plan: Plan,
    benchmark: Benchmark,
    n_workers: int,
    n_servers: int,
    run_dir: Path,
    ledger: Ledger,
    observer: Observer,
    on_policy: PolicyNote,
    kept_cameras: tuple[str, ...] | None = None,
    rendering: Rendering | None = None,
) -> bool:
    """Run the episodes that have no outcome in ``ledger``; True when a signal ended it before all had one.
    ``kept_cameras`` as in ``Job``."""
    clear_unfinished(run_dir)
    ledger.reopen_errors()
    tally = Tally(plan)
    for record in ledger.accepted():
        tally.recall(record)
    settings = config.eval
    queue = EpisodeQueue(plan, ledger.accepted_ids(), ledger.attempt_counts(), settings.max_attempts, settings.order)
    token, endpoint = new_token(), PrivateEndpoint.create()
    environment = {**os.environ, **gl_environment(os.environ), **thread_limits(1), TOKEN_VARIABLE: token}
    beat_every = min(_BEAT_EVERY_S, settings.step_timeout / 4)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        coordinator = Coordinator(
            plan=plan,
            queue=queue,
            ledger=ledger,
            tally=tally,
            job=Job(
                env=config.env,
                policy=config.policy,
                server=None,
                tasks=plan.tasks,
                rename_map=config.rename_map,
                run_dir=str(run_dir),
                record_fps=settings.record_fps,
                beat_every=beat_every,
                kept_cameras=kept_cameras,
            ),
            terms=Terms(n_workers, settings.step_timeout, RecordRule.parse(settings.record).mode, video_name),
            launcher=LocalLauncher(
                "robotrials.running.worker",
                endpoint.address,
                run_dir / "logs",
                {**environment, **environments.variables(benchmark.installation, config.env.python, environment)},
                config.env.python,
                # While the policy loads, the simulator can be imported.
                lambda name: [f"--preload={','.join(benchmark.modules)}"] if n_servers else [],
                lambda name: rendering.of_worker(slot_of(name)) if rendering else {},
            ),
            router=bind_router(context, endpoint.address),
            token=token,
            observer=observer,
            servers=_servers(config, n_servers, endpoint, run_dir, environment, beat_every) if n_servers else None,
            on_policy=on_policy,
        )
        with _stopped_by_signals(coordinator):
            coordinator.run()
        return not queue.is_finished
    finally:
        context.destroy(linger=0)
        endpoint.remove()


def _servers(
    config: RunConfig,
    n_servers: int,
    endpoint: PrivateEndpoint,
    run_dir: Path,
    environment: Mapping[str, str],
    beat_every: float,
) -> ServerPool:
    """Policy servers on Unix sockets beside the coordinator's."""
    addresses = tuple(f"unix://{endpoint.directory}/policy-{slot}" for slot in range(n_servers))
    launcher = LocalLauncher(
        "robotrials.running.server_process",
        endpoint.address,
        run_dir / "logs",
        environment,
        config.policy.python,
        lambda name: [f"--listen={addresses[slot_of(name)]}"],
    )
    terms = ServerTerms(config.policy, config.eval.exact, addresses, beat_every, config.eval.step_timeout)
    return ServerPool(terms, launcher)


def slot_of(name: str) -> int:
    """3 for ``s3`` and for ``s3.2``, its successor."""
    return int(name[1:].partition(".")[0])


@contextlib.contextmanager
def _stopped_by_signals(coordinator: Coordinator) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end the run in order. Only the main thread may do this."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        coordinator.request_stop(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
