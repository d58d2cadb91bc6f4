"""The coordinator: hands out leases, writes records down, watches over workers. One thread, one loop.

A record is committed to the ledger before its lease is released and its worker is given another, and all records that
arrived together are committed together.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zmq

from robotrials.control.file_transfer import FileReceiver
from robotrials.control.messages import (
    WORKER_TALK,
    Alive,
    Artifact,
    Beat,
    Done,
    Fault,
    Hello,
    Job,
    Lease,
    Leaving,
    Ready,
    Refused,
    Serving,
    Stop,
)
from robotrials.engine.launchers.base import WorkerExit
from robotrials.engine.observer import Observer
from robotrials.engine.outcomes import Outcomes
from robotrials.engine.progress import Tally
from robotrials.engine.queue import EpisodeQueue, LeasedEpisode
from robotrials.engine.server_pool import ServerPool
from robotrials.engine.underway import UnderwayWatch
from robotrials.engine.worker_pool import WorkerPool
from robotrials.engine.worker_table import WorkerEntry, WorkerState, WorkerStateError
from robotrials.errors import ConfigError, ContractError, IdentityError, WireError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan
from robotrials.policies.base import PolicySpec
from robotrials.policies.fit import check_fit
from robotrials.results.record import error_record
from robotrials.wire.envelope import Message, encode

_TICK_S = 0.1
_PROGRESS_EVERY_S = 0.25
_AHEAD_WHILE = 4
"""Episodes left per worker above which a worker holds one lease ahead; below, whoever is free takes the next."""
_DRAIN_LIMIT = 2000
"""Messages taken before the ledger commits and answers go out."""
_MAX_START_FAILURES = 3
"""So many workers in a row may die before they are ready, while none has been: something is wrong with all of them."""
_MAX_START_FAILURES_LATER = 20
"""The same once some have been ready: then it is memory, or somebody's kill, and may pass."""
_STANDSTILL_S = 5.0
"""A loop that took longer than this between two ticks was itself suspended."""


@dataclass(frozen=True)
class LeaseOptions:
    """How leases are given. ``may_join``: what is wrong with a worker that joined, from its Ready; None: nothing."""

    record_mode: Callable[[EpisodeSpec], str]
    video_path: Callable[[EpisodeSpec], str]
    may_join: Callable[[Ready], str | None] = lambda ready: None


class Coordinator:
    """Runs the episodes of one queue to the end, or until ``request_stop``."""

    def __init__(
        self,
        plan: Plan,
        queue: EpisodeQueue,
        outcomes: Outcomes,
        tally: Tally,
        job: Job,
        terms: LeaseOptions,
        workers: WorkerPool,
        router: zmq.Socket[bytes],
        token: str,
        observer: Observer,
        servers: ServerPool | None = None,
        on_policy: Callable[[PolicySpec, Mapping[str, Any]], None] = lambda spec, about: None,
    ) -> None:
        self._plan = plan
        self._queue = queue
        self._outcomes = outcomes
        self._tally = tally
        self._job = job
        self._terms = terms
        self._workers = workers
        self._router = router
        self._token = token.encode()
        self._observer = observer
        self._on_policy = on_policy
        self._servers = servers
        self._underway = UnderwayWatch(plan)
        self._files = FileReceiver(Path(job.run_dir))
        self._policy: PolicySpec | None = None
        self._about: Mapping[str, Any] = {}
        self._free: list[WorkerEntry] = []
        self._retiring: set[str] = set()
        """Processes that get no more leases, and are replaced once nothing is played in them."""
        self._start_failures = 0
        self._stop_reason: str | None = None
        self._handlers: dict[type[Message], Callable[[WorkerEntry, Message], None]] = {
            Ready: self._on_ready,
            Refused: self._on_refused,
            Done: self._on_done,
            Serving: self._on_serving,
            Artifact: self._on_artifact,
            Leaving: self._on_leaving,
        }

    def request_stop(self, reason: str) -> None:
        """Make ``run`` return soon; safe to call from a signal handler."""
        self._stop_reason = reason

    def run(self) -> None:
        """Until every episode is settled or a stop was requested; no worker is left alive either way.

        Raises:
            ConfigError: workers cannot start, or the policy refused its options.
            ContractError: policy and benchmark do not fit.
            LedgerError: a record could not be written.
        """
        graceful = False
        try:
            if self._servers is not None:
                self._servers.start()
            self._workers.start()
            try:
                self._loop()
            except (ConfigError, ContractError):
                self._outcomes.commit()  # what was learnt before the run was given up is kept
                raise
            graceful = self._stop_reason is None and not self._outcomes.enough  # what still plays would not count
        finally:
            self._end(graceful)

    # The loop -----------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        next_tick = next_progress = time.monotonic()
        pending_exits: list[WorkerExit] = []
        pool = self._servers
        while not self._queue.is_finished and self._stop_reason is None and not self._outcomes.enough:
            if self._router.poll(int(_TICK_S * 1000)):
                self._drain()
            self._settle()
            now = time.monotonic()
            if now >= next_tick:
                if now - next_tick > _STANDSTILL_S:
                    for table in (self._workers.table, *([pool.table] if pool else [])):
                        table.forgive()
                # Exits are judged one tick after they were seen: what the worker said last is read first.
                for gone in pending_exits:
                    self._on_exit(gone)
                pending_exits = self._workers.exits()
                if pool is not None:
                    for gone in pool.exits():
                        self._on_server_exit(pool, gone)
                self._kill_hung()
                self._workers.start()
                if self._queue.waits_for_a_process and not self._workers.is_starting:
                    self._queue.lift_restrictions()  # no process is coming that they could wait for
                    self._wake_idle()
                self._settle()
                next_tick = now + _TICK_S
            if now >= next_progress:
                self._show_progress()
                next_progress = now + _PROGRESS_EVERY_S

    def _drain(self) -> None:
        for _ in range(_DRAIN_LIMIT):
            try:
                identity, data = self._router.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            except ValueError:
                continue  # not two frames: no peer of ours
            try:
                self._receive(identity, WORKER_TALK.decode(data))
            except WireError as error:
                self._observer.on_message(f"ignored a message that is none: {error}")

    def _settle(self) -> None:
        """Commit what came in, then give the free workers their next lease."""
        self._outcomes.commit()
        free, self._free = self._free, []
        for entry in free:
            self._assign(entry)

    # Messages -----------------------------------------------------------------------------------------------------

    def _receive(self, identity: bytes, message: Message) -> None:
        if isinstance(message, Beat):
            if self._knows(message.token):
                self._on_beat(identity, message)
            return
        if isinstance(message, Hello):
            self._on_hello(identity, message)
            return
        entry = self._workers.table.by_identity(identity)
        if entry is None and self._servers is not None:
            entry = self._servers.table.by_identity(identity)
        handler = self._handlers.get(type(message))
        if entry is None or handler is None:
            raise WireError(f"{message.kind} from a peer that is no worker of this run")
        handler(entry, message)

    def _knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token)

    def _on_beat(self, identity: bytes, beat: Beat) -> None:
        is_ours = self._workers.beat(beat)
        if self._servers is not None:
            self._servers.table.beat(beat)
        entry = self._workers.table.by_name(beat.worker)
        if entry is None or entry.apart:  # others die with this process, and need no answer
            answer = Alive(self._server_of(entry)) if is_ours else Stop("this run has given the worker up")
            self._router.send_multipart([identity, encode(answer)])

    def _on_hello(self, identity: bytes, hello: Hello) -> None:
        if not self._knows(hello.token):
            raise WireError("a worker without this run's token")
        pool = self._servers
        if pool is not None and (server := pool.table.greet(hello.worker, identity)) is not None:
            pool.table.enter(server, WorkerState.LOADING)
            self._send(server, pool.job())
            return
        table = self._workers.table
        if hello.joins:
            entry = table.admit(hello.worker, identity, hello.process)
        else:
            entry = table.greet(hello.worker, identity)
        if entry is None:
            why = "has a worker of that name" if hello.joins else "expects no worker of that name"
            self._router.send_multipart([identity, encode(Stop(f"this run {why}", unfit=True))])
            return
        entry.apart = hello.apart
        if hello.joins:
            self._observer.on_message(f"{entry.name} joined")
        if pool is not None and not pool.is_ready:
            table.enter(entry, WorkerState.WAITING)
            return
        self._give_job(entry)

    def _give_job(self, entry: WorkerEntry) -> None:
        self._workers.table.enter(entry, WorkerState.LOADING)
        self._send(entry, replace(self._job, server=self._server_of(entry)))

    def _server_of(self, entry: WorkerEntry | None) -> str | None:
        return self._servers.address_for(entry) if self._servers is not None and entry is not None else None

    def _on_serving(self, entry: WorkerEntry, message: Message) -> None:
        """A policy server is up: once all are, the workers that waited for it get their job."""
        assert isinstance(message, Serving)
        pool = self._servers
        if pool is None or pool.table.by_name(entry.name) is not entry:
            raise WireError("serving, from a worker")
        self._know_policy(message.policy, message.about)
        self._start_failures = 0
        entry.was_ready = True
        pool.serves(entry, message.address)
        if pool.is_ready:
            for worker in self._workers:
                if worker.state is WorkerState.WAITING:
                    self._give_job(worker)

    def _know_policy(self, spec: PolicySpec, about: Mapping[str, Any]) -> None:
        """What a worker or server has loaded must be what the first one has: one that comes later, or takes the place
        of one that died, may have found other weights."""
        if self._policy is None:
            check_fit(spec.name, spec.observations, spec.action_dim, self._plan.tasks, self._job.rename_map)
            self._on_policy(spec, about)
            self._policy, self._about = spec, about
        elif (spec, about) != (self._policy, self._about):
            self._on_policy(spec, about)

    def _on_ready(self, entry: WorkerEntry, message: Message) -> None:
        assert isinstance(message, Ready)
        if entry.state is WorkerState.ENDING:
            return
        if entry.state is not WorkerState.LOADING:
            raise WorkerStateError(f"ready, from worker {entry.name}, which is {entry.state.value}")
        misfit = self._terms.may_join(message) if entry.apart else None
        if misfit is not None and not entry.joined:
            raise ConfigError(f"worker {entry.name} runs where {misfit}")
        if misfit is not None:
            self._send(entry, Stop(misfit, unfit=True))
            self._workers.kill(entry, f"{entry.name} may not join: {misfit}")
            return
        try:
            if self._servers is None:  # else it has nothing but what a server told it
                self._know_policy(message.policy, message.about)
        except IdentityError as error:
            if not entry.joined:
                raise
            self._send(entry, Stop(str(error), unfit=True))
            self._workers.kill(entry, f"{entry.name} may not join: {error}")
            return
        self._start_failures = 0
        entry.was_ready = True
        self._become_free(entry)

    def _on_refused(self, entry: WorkerEntry, message: Message) -> None:
        assert isinstance(message, Refused)
        if message.expected and not entry.joined:
            raise ConfigError(message.reason)
        reason = f"could not make the policy: {message.reason}"
        if self._servers is not None and self._servers.table.by_name(entry.name) is entry:
            self._servers.kill(entry, reason)
        else:
            self._workers.kill(entry, reason)

    def _on_artifact(self, entry: WorkerEntry, message: Message) -> None:
        assert isinstance(message, Artifact)
        if self._queue.held(message.lease, entry.name) is None:
            return
        try:
            self._files.take(entry.name, message)
        except (WireError, OSError) as error:
            self._workers.kill(entry, f"{entry.name} sent a file that cannot be kept: {error}")

    def _on_leaving(self, entry: WorkerEntry, message: Message) -> None:
        """It has played what it had begun; what it held besides is free again."""
        for ahead in entry.leases:
            self._queue.put_back(ahead)
        entry.leases = []
        self._wake_idle()
        self._send(entry, Stop("it leaves"))
        self._workers.kill(entry, f"{entry.name} left")

    def _on_done(self, entry: WorkerEntry, message: Message) -> None:
        assert isinstance(message, Done)
        if entry.state in (WorkerState.STARTING, WorkerState.WAITING, WorkerState.LOADING):
            raise WorkerStateError(f"done, from worker {entry.name}, which is {entry.state.value}")
        leased = self._queue.held(message.lease, entry.name)
        if leased is None:
            # The lease was taken back and its episode is somebody else's now: the record is not used.
            self._become_free(entry)
            return
        record = message.record
        if (record.episode, record.attempt) != (leased.episode.id, leased.attempt):
            self._workers.kill(entry, f"answered lease {leased.lease} with a record of another episode")
            return
        entry.leases = [held for held in entry.leases if held is not leased]
        took = self._begins(entry)
        if record.is_error:
            self._fail(entry, leased, message)
        else:
            self._tally.played(record, took)
            self._outcomes.finish(leased, record, message.note)
            if self._queue.has_suspects:
                self._wake_idle()
        self._become_free(entry)

    def _fail(self, entry: WorkerEntry, leased: LeasedEpisode, done: Done, is_gone: bool = False) -> None:
        """``is_gone``: the worker's process has died, and is replaced anyway."""
        again = self._outcomes.fail(leased, done, renewable=not is_gone and not entry.joined)
        if again and self._queue.needs_new_process(leased.episode):
            self._retiring.add(entry.process)
        if again or self._queue.has_suspects:
            self._wake_idle()

    def _renew(self, process: str) -> None:
        """End a worn-out process once nothing is played in it; another takes its place. What a worker of it holds ahead
        goes back, unless scenes beside it still play: they are not disturbed."""
        members = self._workers.table.of_process(process)
        if len(members) > 1 and any(member.leases for member in members):
            return
        for member in members:
            for ahead in member.leases:
                self._queue.put_back(ahead)
            member.leases = []
        if members:
            self._workers.kill(members[0], f"process {process} is replaced after errors in it")

    # Workers ------------------------------------------------------------------------------------------------------

    def _become_free(self, entry: WorkerEntry) -> None:
        """The worker can take another lease; it may have one waiting already."""
        if entry.state is WorkerState.ENDING:
            return
        self._workers.table.enter(entry, WorkerState.BUSY if entry.leases else WorkerState.IDLE)
        if entry.process in self._retiring:
            self._renew(entry.process)
        else:
            self._free.append(entry)

    def _assign(self, entry: WorkerEntry) -> None:
        """One lease to play, and while many are left one more to begin without asking: a worker that waits for its next
        lease goes to sleep, and waking costs more than the lease."""
        while entry.state in (WorkerState.IDLE, WorkerState.BUSY) and entry.process not in self._retiring:
            many_left = self._queue.n_pending > _AHEAD_WHILE * len(self._workers.table)
            if len(entry.leases) >= (2 if many_left else 1):
                return
            leased = self._queue.lease(entry.name, entry.process, self._server_of(entry) or "")
            if leased is None:
                return  # stays idle: an episode in flight elsewhere may come back
            entry.leases.append(leased)
            if len(entry.leases) == 1:
                self._begins(entry)
            if entry.state is WorkerState.IDLE:
                self._workers.table.enter(entry, WorkerState.BUSY)
            episode = leased.episode
            mode = self._terms.record_mode(episode)
            self._send(entry, Lease(leased.lease, episode, leased.attempt, mode, self._terms.video_path(episode)))

    def _wake_idle(self) -> None:
        """Episodes came back: workers that had nothing to do may take them."""
        self._free.extend(entry for entry in self._workers if entry.state is WorkerState.IDLE)

    def _send(self, entry: WorkerEntry, message: Message) -> None:
        if entry.identity is not None:
            self._router.send_multipart([entry.identity, encode(message)])

    def _kill_hung(self) -> None:
        self._workers.kill_hung_and_lost()
        if self._servers is not None:
            for entry, reason in self._servers.hung():
                self._servers.kill(entry, reason)

    def _on_exit(self, gone: WorkerExit) -> None:
        """A worker died: its leases err, and its slot gets a new one while there is work."""
        entry = self._workers.table.remove(gone.name)
        if entry is None:
            return
        self._files.forget(gone.name)
        reason = entry.killed_because or f"worker {gone.name} was lost ({gone.how})"
        for ahead in entry.leases[1:]:
            self._queue.put_back(ahead)  # it had not begun
        for leased in entry.leases[:1]:
            text = f"{reason}, last heard of in phase {entry.phase} at step {entry.step}; log: {gone.log}"
            record = error_record(leased.episode.id, leased.attempt, gone.name, text, entry.step)
            fault = Fault.SCENES if entry.process != entry.name else Fault.EPISODE
            self._fail(entry, leased, Done(leased.lease, record, fault=fault), is_gone=True)
        self._queue.forget(entry.process)
        self._retiring.discard(entry.process)
        if entry.joined:
            self._observer.on_message(reason)
            return
        if not entry.was_ready and not self._workers.table.of_process(entry.process):  # once for all its scenes
            self._count_start_failure("workers", reason, gone)
        if self._queue.n_pending:
            self._workers.replace(entry)

    def _on_server_exit(self, pool: ServerPool, gone: WorkerExit) -> None:
        """A policy server died: the episodes it served err at their next request, and find its successor."""
        entry = pool.table.remove(gone.name)
        if entry is None:
            return
        reason = entry.killed_because or f"policy server {gone.name} was lost ({gone.how})"
        if not entry.was_ready:
            self._count_start_failure("policy servers", reason, gone)
        self._observer.on_message(f"{reason}; starting another. Log: {gone.log}")
        pool.replace(entry)

    def _count_start_failure(self, who: str, reason: str, gone: WorkerExit) -> None:
        self._start_failures += 1
        limit = _MAX_START_FAILURES if self._policy is None else _MAX_START_FAILURES_LATER
        if self._start_failures >= limit:
            raise ConfigError(f"{who} cannot start: {reason}. The end of {gone.log}:\n{gone.tail.rstrip()}")

    def _end(self, graceful: bool) -> None:
        """Tell all workers to stop; after an interruption there is nothing to wait for."""
        why = "the run is complete" if graceful else "the run was stopped"
        self._workers.close(lambda entry: self._send(entry, Stop(why)), graceful)
        if self._servers is not None:
            self._servers.close()
        if graceful:
            self._show_progress()

    def _begins(self, entry: WorkerEntry) -> float:
        """The worker begins its first lease; seconds since it began the one before."""
        now = time.monotonic()
        took, entry.playing_since, entry.step = now - entry.playing_since, now, 0
        return took

    def _show_progress(self) -> None:
        loads = self._servers is not None and not self._servers.is_ready
        underway = self._underway.look(self._workers, loads)
        playing = self._underway.playing(self._workers)
        self._observer.on_progress(self._tally.snapshot(playing, len(self._workers.table), underway))
