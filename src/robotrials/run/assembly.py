"""Puts one session of a run together (sockets, launchers, policy servers, queue, coordinator) and takes it apart."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zmq

from robotrials.benchmarks.base import Benchmark
from robotrials.benchmarks.scene_group import scenes_of
from robotrials.control.heartbeat import TOKEN_VARIABLE
from robotrials.control.joining import join_file, joining_rule
from robotrials.control.messages import Job
from robotrials.datasets.spool import clear_unfinished
from robotrials.engine.coordinator import Coordinator, LeaseOptions
from robotrials.engine.early_stop import StopPlan
from robotrials.engine.launchers.base import Launcher
from robotrials.engine.launchers.container import ENGINES, Container, ContainerLauncher, user_in_container
from robotrials.engine.launchers.local import LocalLauncher
from robotrials.engine.launchers.ray import Cluster, RayLauncher
from robotrials.engine.layout import require_descriptors
from robotrials.engine.observer import Observer
from robotrials.engine.outcomes import Outcomes
from robotrials.engine.progress import Tally
from robotrials.engine.queue import EpisodeQueue
from robotrials.engine.server_pool import ServerOptions, ServerPool
from robotrials.engine.worker_pool import WorkerLayout, WorkerPool
from robotrials.environments import folders
from robotrials.environments.folders import PREFIX
from robotrials.machine.gpus import gpu_of_server, visible_gpus
from robotrials.machine.threads import available_cores, thread_limits
from robotrials.plan.config import RunConfig
from robotrials.plan.plan import Plan
from robotrials.policies.base import PolicySpec
from robotrials.rendering.gl import Rendering, gl_environment
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import video_name
from robotrials.run.recording import RecordRule
from robotrials.wire.transport import PrivateEndpoint, also_bind, bind_router, host_of, new_token

_BEAT_EVERY_S = 1.0
_LAST_WORDS_MS = 1000
"""How long workers on other machines are given to hear that the run is over."""

_NICE = 5
"""Workers give way to a policy server on the same cores: many wait for the one."""

PolicyNote = Callable[[PolicySpec, Mapping[str, Any]], None]


@dataclass(frozen=True)
class RunSession:
    """What one session of a run is to do, and with what. ``kept_cameras`` as in ``Job``."""

    config: RunConfig
    plan: Plan
    benchmark: Benchmark
    identity: Mapping[str, Any]
    n_workers: int
    n_servers: int
    run_dir: Path
    kept_cameras: tuple[str, ...] | None = None
    rendering: Rendering | None = None
    stop: StopPlan | None = None


@dataclass(frozen=True)
class SessionPlaces:
    """Where processes of a session find it, and what they get. ``door`` is the address for other machines."""

    endpoint: PrivateEndpoint
    environment: Mapping[str, str]
    door: str
    cluster: Cluster | None


def run_session(session: RunSession, ledger: Ledger, observer: Observer, on_policy: PolicyNote) -> bool:
    """Run the episodes that have no outcome in ``ledger``, until all have one or ``session.stop`` is decided; True
    when a signal ended it before.

    Raises:
        ConfigError: workers cannot be started, or ``--eval.listen`` cannot be had.
    """
    run_dir, plan, settings = session.run_dir, session.plan, session.config.eval
    clear_unfinished(run_dir)
    ledger.reopen_errors()
    follower = session.stop.follow(ledger.accepted()) if session.stop is not None else None
    if follower is not None and follower.decided:
        return False
    order = "balanced" if follower is not None else settings.order
    mode = RecordRule.parse(settings.record).mode
    tally = Tally(plan, is_filmed=lambda episode: mode(episode) != "no")
    for record in ledger.accepted():
        tally.recall(record)
    queue = EpisodeQueue(
        plan,
        ledger.accepted_ids(),
        ledger.attempt_counts(),
        settings.max_attempts,
        order,
        is_filmed=lambda episode: mode(episode) != "no",
        filmed_at_once=available_cores() if session.n_servers and order == "longest" else None,
    )
    require_descriptors(session.n_workers, session.n_servers, bool(settings.listen))
    token, mark, endpoint = new_token(), new_token(), PrivateEndpoint.create()
    environment = {**os.environ, **gl_environment(os.environ), **thread_limits(1), TOKEN_VARIABLE: token}
    beat_every = min(_BEAT_EVERY_S, settings.step_timeout / 4)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    cluster = Cluster(session.config.ray) if settings.runtime == "ray" else None
    try:
        if cluster is not None:
            session = _on_cluster(session, cluster, observer, queue.n_pending)
        listen = session.config.eval.listen
        router = bind_router(context, endpoint.address)
        door = also_bind(router, listen) if listen else None
        is_enough = follower.is_enough if follower is not None else lambda record: False
        places = SessionPlaces(endpoint, environment, door or endpoint.address, cluster)
        coordinator = Coordinator(
            plan=plan,
            queue=queue,
            outcomes=Outcomes(queue, ledger, tally, observer, is_enough),
            tally=tally,
            job=_job(session, beat_every, mark),
            terms=LeaseOptions(mode, video_name, joining_rule(session.identity)),
            workers=_workers(session, places),
            router=router,
            token=token,
            observer=observer,
            servers=_servers(session, places, beat_every) if session.n_servers else None,
            on_policy=on_policy,
        )
        with join_file(run_dir, door, token, mark), _stopped_by_signals(coordinator):
            if door is not None:
                observer.on_message(f"workers may join at {door}: robotrials worker --run={run_dir}")
            coordinator.run()
        return not (queue.is_finished or (follower is not None and follower.decided))
    finally:
        context.destroy(linger=_LAST_WORDS_MS if session.config.eval.listen else 0)
        endpoint.remove()
        if cluster is not None:
            cluster.close()


def _job(session: RunSession, beat_every: float, mark: str) -> Job:
    config = session.config
    return Job(
        env=config.env,
        policy=config.policy,
        server=None,
        tasks=session.plan.tasks,
        rename_map=config.rename_map,
        run_dir=str(session.run_dir),
        record_fps=config.eval.record_fps,
        beat_every=beat_every,
        hung_s=config.eval.step_timeout,
        kept_cameras=session.kept_cameras,
        session=mark,
        refuses_nonfinite=config.eval.nonfinite == "error",
    )


def _on_cluster(session: RunSession, cluster: Cluster, observer: Observer, n_pending: int) -> RunSession:
    """The session where its Ray cluster can reach it, with as many workers as there is room for unless that was said.

    Raises:
        ConfigError: there is no such cluster.
    """
    words = cluster.open()
    settings = session.config.eval
    listen = settings.listen or f"tcp://{cluster.address}:0"
    n_workers = session.n_workers
    scenes = scenes_of(session.benchmark)
    if not n_workers:
        n_workers = max(1, min(cluster.n_workers(session.n_servers) * scenes, n_pending))
    asked = f"{WorkerLayout(n_workers, scenes).n_processes} worker(s) of {cluster.worker_demand()}"
    if session.n_servers:
        asked += f", {session.n_servers} policy server(s) of {cluster.server_demand()}"
    observer.on_message(f"{words}; asked for: {asked}. What has no room waits for it")
    config = replace(session.config, eval=replace(settings, listen=listen))
    return replace(session, config=config, n_workers=n_workers)


def _workers(session: RunSession, places: SessionPlaces) -> WorkerPool:
    launcher = _launcher(session, places)
    here = session.config.eval.runtime == "local"
    at_once = max(1, available_cores() - session.n_servers) if here else None
    return WorkerPool(launcher, session.config.eval.step_timeout, _crew(session), at_once)


def _crew(session: RunSession) -> WorkerLayout:
    return WorkerLayout(session.n_workers, scenes_of(session.benchmark))


def _launcher(session: RunSession, places: SessionPlaces) -> Launcher:
    """Who starts the run's own workers, by ``--eval.runtime``."""
    endpoint, environment = places.endpoint, places.environment
    config, benchmark, rendering = session.config, session.benchmark, session.rendering
    python, logs, runtime = config.env.python, session.run_dir / "logs", config.eval.runtime
    # While the policy loads, the simulator can be imported.
    preload = [f"--preload={','.join(benchmark.modules)}", f"--nice={_NICE}"] if session.n_servers else []
    crew = _crew(session)

    def words(name: str) -> list[str]:
        scenes = crew.scenes_of(slot_of(name))
        return [*preload, f"--scenes={scenes}"] if scenes > 1 else preload

    # Without what holds a path of this machine's environment.
    wanted = {key: value for key, value in benchmark.installation.environment.items() if PREFIX not in value}
    wanted |= thread_limits(1)
    if places.cluster is not None:
        wanted |= {**(rendering.variables if rendering else {}), **_from_here(environment)}
        demand = places.cluster.worker_demand()
        module = "robotrials.worker.process"
        return RayLauncher(module, places.door, logs, demand, wanted, python, lambda name: ["--apart", *words(name)])
    if runtime in ENGINES:
        container = Container(runtime, config.docker, benchmark.name, crew.n_processes)
        endpoint.let_in(*user_in_container())
        return ContainerLauncher(
            container,
            endpoint.address,
            endpoint.directory,
            logs,
            environment,
            lambda name: wanted | (rendering.of_worker(slot_of(name)) if rendering else {}),
            words,
        )
    return LocalLauncher(
        "robotrials.worker.process",
        endpoint.address,
        logs,
        {**environment, **folders.variables(benchmark.installation, python, environment)},
        python,
        words,
        lambda name: rendering.of_worker(slot_of(name)) if rendering else {},
    )


def _from_here(environment: Mapping[str, str]) -> dict[str, str]:
    """What processes on other machines get of this one's variables: the secret, and where modules of the user's are,
    if the disk is shared."""
    path = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), os.getcwd())))
    return {TOKEN_VARIABLE: environment[TOKEN_VARIABLE], "PYTHONPATH": path}


def _servers(session: RunSession, places: SessionPlaces, beat_every: float) -> ServerPool:
    """Policy servers on Unix sockets beside the coordinator's, or on a cluster."""
    config, endpoint, cluster = session.config, places.endpoint, places.cluster
    module, logs = "robotrials.serving.process", session.run_dir / "logs"
    addresses = tuple(f"unix://{endpoint.directory}/policy-{slot}" for slot in range(session.n_servers))
    # Workers that join may be on other machines: they reach the servers where they reach the coordinator.
    elsewhere = [f"--elsewhere={host_of(config.eval.listen)}"] if config.eval.listen else []
    gpus, device = visible_gpus(places.environment), config.policy.options.get("device")
    launcher: Launcher
    if cluster is not None:
        variables = thread_limits(1) | _from_here(places.environment)
        words = ["--listen=unix://{folder}/policy", "--elsewhere={host}"]
        demand, python = cluster.server_demand(), config.policy.python
        launcher = RayLauncher(module, places.door, logs, demand, variables, python, lambda name: words)
    else:
        launcher = LocalLauncher(
            module,
            endpoint.address,
            logs,
            places.environment,
            config.policy.python,
            lambda name: [f"--listen={addresses[slot_of(name)]}", *elsewhere],
            lambda name: gpu_of_server(slot_of(name), gpus, device),
        )
    far = cluster is not None
    terms = ServerOptions(config.policy, config.eval.exact, addresses, beat_every, config.eval.step_timeout, far)
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
