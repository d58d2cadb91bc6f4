"""A worker: one simulator at a time, one episode after the other."""

from __future__ import annotations

import logging
import math
import os
import socket as host_info
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import cast

import zmq

from robotrials.benchmarks.base import Benchmark, Env
from robotrials.benchmarks.installed import look_up
from robotrials.benchmarks.registry import make_benchmark
from robotrials.benchmarks.scene_group import ManyScenes
from robotrials.benchmarks.scoring import scoring_of
from robotrials.control.file_transfer import send_files
from robotrials.control.heartbeat import (
    COORDINATOR_SILENT_S,
    ENDING,
    UNFIT,
    UNREACHED,
    Heartbeat,
    start_heartbeat,
)
from robotrials.control.messages import (
    REASON,
    SESSION_FILE,
    WORKER_TALK,
    Done,
    Fault,
    Hello,
    Job,
    Lease,
    Leaving,
    Ready,
    Refused,
    Stop,
)
from robotrials.datasets.spool import EpisodeSpool, spool_folder
from robotrials.errors import ConfigError, ContractError, NonFiniteError, RobotrialsError, VideoError, WireError
from robotrials.machine.limits import is_worn_out, remedy
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy, PolicySpec
from robotrials.policies.own_generators import own_generators
from robotrials.policies.registry import make_policy
from robotrials.policies.remote.client import PolicyServerError, ServedPolicy
from robotrials.results.record import EndReason, EpisodeRecord, error_record
from robotrials.results.video import EpisodeVideo
from robotrials.version import __version__
from robotrials.wire.envelope import Message
from robotrials.wire.stream import ConnectionLostError
from robotrials.wire.transport import connect_dealer, send
from robotrials.worker.many_scenes import SceneSlot
from robotrials.worker.rollout import Rollout

log = logging.getLogger(__name__)

_LOOK_UP_MS = 200
"""So often a worker that waits looks whether it is to leave."""
_MAX_TRACEBACK = 8000
"""Characters of an error's traceback that go into the ledger; the log has all of it."""


class Worker:
    """One worker's life: greet, load, play leases until told to stop."""

    def __init__(
        self,
        address: str,
        name: str,
        token: str,
        joins: bool = False,
        apart: bool = False,
        process: str = "",
        context: zmq.Context[zmq.Socket[bytes]] | None = None,
    ) -> None:
        """``joins``: the coordinator has not started this worker, which may ``leave``. ``apart``, ``process``: see
        ``Hello``."""
        self._name = name
        self._pid = os.getpid()
        self._token = token
        self._address = address
        self._joins = joins
        self._apart = apart or joins
        self._process = process
        self._leaves = self._said_so = False
        self._root = Path()
        self._sends_files = False
        self._context = context or zmq.Context()
        self._socket = connect_dealer(self._context, address)
        self._heartbeat = Heartbeat()
        self._task: TaskSpec | None = None
        self._env: Env | None = None
        self._place: SceneSlot | None = None

    def run(self, place: SceneSlot | None = None) -> None:
        """Until the coordinator says stop. ``place``: where it plays if its process has several scenes."""
        if place is not None:
            self._place = place
            place.is_waiting = lambda: self._heartbeat.enter(self._heartbeat.phase)
        token, here = self._token, (os.getpid(), host_info.gethostname())
        send(self._socket, Hello(self._name, *here, token, self._joins, self._apart, self._process))
        if self._apart and not self._socket.poll(int(1000 * COORDINATOR_SILENT_S)):
            log.error("no answer from %s for %.0f s", self._address, COORDINATOR_SILENT_S)
            os._exit(UNREACHED)
        first = self._receive()
        if isinstance(first, Stop):
            self._stop(first)
            return
        job = cast(Job, _expect(first, Job))
        self._heartbeat.hung_s = job.hung_s if self._apart else None
        start_heartbeat(self._context, self._address, self._name, token, self._heartbeat, job.beat_every, self._apart)
        self._root, self._sends_files = self._place_for_files(job)
        try:
            benchmark = make_benchmark(job.env)
            policy = own_generators(make_policy(job.policy)) if job.server is None else self._served(job.server)
            spec = policy.spec()
            if self._place is not None:
                _check_scenes(benchmark, spec)
        except RobotrialsError as error:
            log.error("%s", error)
            send(self._socket, Refused(self._name, str(error), expected=True))
            self._await_stop()
            return
        except Exception as error:  # noqa: BLE001  a user's constructor may raise anything; the coordinator reports it
            log.error("the policy or benchmark could not be made\n%s", traceback.format_exc())
            send(self._socket, Refused(self._name, _one_line(error), expected=False))
            self._await_stop()
            return
        send(self._socket, self._ready(job, spec, policy))
        tasks = {task.key: task for task in job.tasks}
        while True:
            message = self._receive()
            if isinstance(message, Stop):
                self._heartbeat.enter(ENDING)
                self._close_env()
                self._stop(message)
                return
            if self._leaves:
                continue  # whatever is leased to it now is given to somebody else
            lease = cast(Lease, _expect(message, Lease))
            done = self._play(lease, job, benchmark, policy, tasks)
            if self._sends_files:
                self._send_files(lease, done)
            send(self._socket, done)

    def leave(self) -> None:
        """Take no other lease; safe to call from a signal handler."""
        self._leaves = True

    def _served(self, address: str) -> ServedPolicy:
        """The policy in its server, which may be restarted at another address."""
        return ServedPolicy(address, self._token, self._name, moved_to=lambda: self._heartbeat.server)

    def _ready(self, job: Job, spec: PolicySpec, policy: Policy) -> Ready:
        if not self._apart:
            return Ready(self._name, spec, policy.describe())
        installed = look_up(replace(job.env, python=None))
        packages = {**installed.packages, "robotrials": __version__}
        return Ready(self._name, spec, policy.describe(), installed.python, packages)

    def _place_for_files(self, job: Job) -> tuple[Path, bool]:
        """Where to write, and whether it must be sent: a folder of the same name here need not be the same folder."""
        run_dir = Path(job.run_dir)
        if not self._apart:
            return run_dir, False
        try:
            is_same = (run_dir / SESSION_FILE).read_text() == job.session
        except OSError:
            is_same = False
        return (run_dir, False) if is_same else (Path(tempfile.mkdtemp(prefix="robotrials-")), True)

    def _send_files(self, lease: Lease, done: Done) -> None:
        """All that the episode has left on this machine, then nothing is left of it here."""
        self._heartbeat.enter("send")
        files = [path for path in sorted(self._root.rglob("*")) if path.is_file()]
        send_files(lambda part: send(self._socket, part), lease.lease, self._root, files)
        for path in files:
            path.unlink()

    def _play(
        self,
        lease: Lease,
        job: Job,
        benchmark: Benchmark,
        policy: Policy,
        tasks: dict[tuple[str, str], TaskSpec],
    ) -> Done:
        """One episode, whatever happens in it."""
        episode, heartbeat = lease.episode, self._heartbeat
        heartbeat.take(lease.lease)
        began, started_at = time.perf_counter(), time.time()
        video: EpisodeVideo | None = None
        spool: EpisodeSpool | None = None
        note: str | None = None
        try:
            task = tasks[(episode.suite, episode.task)]
            env = self._env_for(benchmark, task)
            if lease.record != "no":
                path = os.path.join(self._root, lease.video)
                video = EpisodeVideo(path, task.control_hz, job.record_fps)
            if job.kept_cameras is not None:
                folder = spool_folder(self._root, episode.id, lease.attempt)
                spool = EpisodeSpool(folder, task, job.kept_cameras)
            rollout = Rollout(
                env,
                policy,
                task,
                job.rename_map,
                heartbeat,
                seeds_globals=self._place is None,
                scoring=scoring_of(benchmark),
                refuses_nonfinite=job.refuses_nonfinite,
            )
            record = rollout.run(episode, lease.attempt, self._name, video, spool)
            if not record.steps:  # its reset has raised what means failure: there is nothing to show or to keep
                _discard(video)
                _discard(spool)
                video = spool = None
            if spool is not None:
                heartbeat.enter("dataset")
                spool.finish()
            if video is not None:
                heartbeat.enter("video")
                record, note = _keep_video(record, video, lease)
            if record.end is EndReason.EXCEPTION:
                self._close_env()  # nobody knows what it has left undone
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  whatever is raised, it is recorded
            self._leave_if_forked(error)
            log.error("%s attempt %d erred\n%s", episode.name, lease.attempt, traceback.format_exc())
            _discard(video)
            _discard(spool)
            self._close_env()
            record = self._error_record(error, episode, lease.attempt, started_at)
            return Done(
                lease.lease,
                record,
                retryable=not isinstance(error, (ContractError, ConfigError)),
                # NaN says nothing of the other episodes, however early it comes.
                at_start=heartbeat.step <= 1 and not isinstance(error, NonFiniteError),
                fault=self._fault(error),
            )
        finally:
            if self._place is not None:
                self._place.leave()
            heartbeat.lease = 0
        note = _note(episode, record, rollout.finite.words(), note)
        log.info("%s", _line_about(record, episode, time.perf_counter() - began))
        return Done(lease.lease, record, note=note)

    def _leave_if_forked(self, error: BaseException) -> None:
        """End a child that an environment or policy forked and that leaves by an exception: it must not go on as a
        second worker on the sockets of the first."""
        if os.getpid() != self._pid:
            os._exit(error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1)

    def _fault(self, error: BaseException) -> Fault:
        """Whose ``error`` may be; to be asked while the scene that raised it stands."""
        if isinstance(error, ConnectionLostError):
            return Fault.CONNECTION
        if isinstance(error, (PolicyServerError, WireError)):
            return Fault.POLICY
        if self._place is not None and self._place.is_broken:
            return Fault.SCENES
        return Fault.PROCESS if is_worn_out(error) else Fault.EPISODE

    def _env_for(self, benchmark: Benchmark, task: TaskSpec) -> Env:
        """The environment of ``task``: the one that stands if it is that task's, else a new one after closing it."""
        if self._place is not None:
            self._heartbeat.enter("build")
            return self._place.take(cast(ManyScenes, benchmark), task)
        if self._env is None or self._task is not task:
            self._close_env()
            self._heartbeat.enter("build")
            began = time.perf_counter()
            self._env, self._task = benchmark.make(task), task
            log.info("built %s in %.2f s", task.name, time.perf_counter() - began)
        return self._env

    def _close_env(self) -> None:
        env, self._env, self._task = self._env, None, None
        if env is None:
            return
        try:
            env.close()
        except Exception:  # noqa: BLE001  a scene that cannot even be closed must not take the worker with it
            log.error("closing the environment failed\n%s", traceback.format_exc())

    def _error_record(
        self, error: BaseException, episode: EpisodeSpec, attempt: int, started_at: float
    ) -> EpisodeRecord:
        text = f"{_one_line(error)}\n{traceback.format_exc()[-_MAX_TRACEBACK:]}"
        return error_record(episode.id, attempt, self._name, text, self._heartbeat.step, started_at)

    def _receive(self) -> Message:
        """The next message, and between two of them the word that this worker leaves: a socket has one thread."""
        while True:
            if self._leaves and not self._said_so:
                send(self._socket, Leaving(self._name))
                self._said_so = True
            if self._socket.poll(_LOOK_UP_MS):
                return WORKER_TALK.decode(self._socket.recv())

    def _await_stop(self) -> None:
        """Let the coordinator read the refusal before this process is gone."""
        if self._socket.poll(10_000):
            self._receive()
        if self._joins:
            os._exit(UNFIT)

    def _stop(self, message: Stop) -> None:
        """What the log says last; who has started a worker that may not join must hear of it."""
        log.info("stop: %s", message.reason)
        if self._joins and message.unfit:
            os._exit(UNFIT)


def _note(episode: EpisodeSpec, record: EpisodeRecord, nonfinite: str, more: str | None) -> str | None:
    """What is said of an episode that counts: ``nonfinite`` of its observations, and ``more``."""
    parts = [nonfinite] if nonfinite else []
    if record.reward_sum is not None and not math.isfinite(record.reward_sum):
        parts.append(f"the benchmark's rewards sum to {record.reward_sum}; averages over it have no value")
    parts += [more] if more else []
    return f"{episode.name}{REASON}{'; '.join(parts)}" if parts else None


def _expect(message: Message, kind: type[Message]) -> Message:
    if not isinstance(message, kind):
        raise WireError(f"expected {kind.kind}, got {message.kind}")
    return message


def _check_scenes(benchmark: Benchmark, policy: PolicySpec) -> None:
    """
    Raises:
        ConfigError: several scenes in one process are more than the benchmark or the policy can do.
    """
    if not isinstance(benchmark, ManyScenes):
        raise ConfigError(f"{benchmark.name} plays one scene in each process: leave --scenes out")
    if policy.needs_env:
        raise ConfigError(f"policy {policy.name} looks into the simulator, which needs --env.num_envs=1")


def _discard(made: EpisodeVideo | EpisodeSpool | None) -> None:
    if made is not None:
        made.discard()


def _keep_video(record: EpisodeRecord, video: EpisodeVideo, lease: Lease) -> tuple[EpisodeRecord, str | None]:
    """The record with its video, and what to say if that could not be written: the outcome stands without it."""
    began, note = time.perf_counter(), None
    if lease.record == "on_failure" and record.success:
        video.discard()
    else:
        try:
            video.finish()
        except VideoError as error:
            log.error("%s", error)
            note = f"it has no video: {error}"
        else:
            record = replace(record, video=lease.video)
            if video.is_black:
                note = "its video is black in every frame"
    spent, times = time.perf_counter() - began, record.timings
    return replace(record, timings=replace(times, film=times.film + spent, total=times.total + spent)), note


def _one_line(error: BaseException) -> str:
    """What ``error`` says, and what to do where something of this machine has run out."""
    text = str(error).strip()
    if not isinstance(error, RobotrialsError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    cause = error.__cause__
    hint = remedy(error) or (remedy(cause) if cause is not None else None)
    return f"{text} ({hint})" if hint else text


def _line_about(record: EpisodeRecord, episode: EpisodeSpec, wall: float) -> str:
    steps, looks, times = max(record.steps, 1), max(record.looks, 1), record.timings
    return (
        f"{episode.name} seed {episode.seed}: {record.end.value}, {record.steps} steps, {record.looks} policy calls, "
        f"{1e3 * times.simulate / steps:.2f} ms a step, {1e3 * times.infer / looks:.2f} ms a call, "
        f"reset {times.reset:.2f} s, render {times.render:.2f} s, film {times.film:.2f} s, {wall:.2f} s in all"
    )
