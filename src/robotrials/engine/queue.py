"""Which worker gets which episode: pending episodes, leases, retries. Pure bookkeeping: no clock, no I/O.

A worker's process stays with the task it has loaded while that has episodes; then it takes the task with the most work
left per process, so that long tasks start early and tasks are shared out before they are split.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from robotrials.control.messages import Fault
from robotrials.engine.restrictions import NewProcesses, Suspects
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan

TaskKey = tuple[str, str]

_ROUNDS_AHEAD = 3
"""In balanced order a process may stay with its task for so many rounds: loading another costs more than an episode
that may turn out to be surplus."""

_LOOKAHEAD = 256
"""So many pending episodes of a task are looked through for one that may be played now."""

FAIL_FAST_AFTER = 3
"""So many episodes of a task given up while none has finished: the rest is recorded as error without being run."""


@dataclass(frozen=True, slots=True)
class LeasedEpisode:
    """One episode in one worker's hands; ``attempt`` counts from 1."""

    lease: int
    episode: EpisodeSpec
    attempt: int
    worker: str
    process: str
    server: str = ""
    """Where its policy is; the same for all leases whose policy is at one place."""

    @property
    def episode_id(self) -> int:
        return self.episode.id


@dataclass
class _TaskState:
    pending: deque[EpisodeSpec] = field(default_factory=deque)
    step_limit: int = 1
    processes: int = 0
    finished: int = 0
    given_up: int = 0
    timed: int = 0
    seconds: float = 0.0

    def work_left(self, seconds_per_step: float) -> float:
        """Expected seconds; ``seconds_per_step`` (of the step limit) stands in until an episode has been timed."""
        each = self.seconds / self.timed if self.timed else self.step_limit * seconds_per_step
        return len(self.pending) * each


class EpisodeQueue:
    """The episodes of ``plan`` that are not in ``done``, handed out as leases.

    Every episode is at any time in exactly one place: pending, leased, or settled.
    """

    def __init__(
        self,
        plan: Plan,
        done: Iterable[int] = (),
        attempts: Mapping[int, int] | None = None,
        max_attempts: int = 3,
        order: str = "longest",
        is_filmed: Callable[[EpisodeSpec], bool] = lambda episode: False,
        filmed_at_once: int | None = None,
    ) -> None:
        """``filmed_at_once``: while there are others, so many leases at most are of episodes that are filmed, which
        take several times the work: workers that wait for a policy shall not all draw at the same time."""
        self._max_attempts = max_attempts
        self._shuffled = random.Random(len(plan)) if order == "shuffled" else None
        self._balanced = order == "balanced"
        # Attempts of earlier runs number the new ones; they do not use up this run's tries.
        self._attempts: dict[int, int] = dict(attempts or {})
        self._tries: dict[int, int] = {}
        self._tasks: dict[TaskKey, _TaskState] = {}
        self._leases: dict[int, LeasedEpisode] = {}
        self._task_of: dict[str, TaskKey] = {}
        self._suspects = Suspects()
        self._new_processes = NewProcesses(max_attempts)
        self._is_filmed = is_filmed
        self._filmed_at_once = filmed_at_once
        self._n_filmed = 0
        self._next_lease = 1
        settled = set(done)
        for episode in plan:
            state = self._tasks.setdefault((episode.suite, episode.task), _TaskState(step_limit=episode.max_steps))
            if episode.id in settled:
                state.finished += 1
            else:
                state.pending.append(episode)
        self._n_pending = len(plan) - len(settled)

    @property
    def n_pending(self) -> int:
        return self._n_pending

    @property
    def is_finished(self) -> bool:
        return not self._n_pending and not self._leases

    @property
    def has_suspects(self) -> bool:
        """Some pending episodes are given out only when others have ended: see ``fail``."""
        return bool(self._suspects)

    @property
    def waits_for_a_process(self) -> bool:
        """Nothing is leased, and an episode that is pending waits for a new process."""
        return bool(self._new_processes) and not self._leases

    def needs_new_process(self, episode: EpisodeSpec) -> bool:
        """Whether ``episode`` is to be played by a process that began after its last error."""
        return episode.id in self._new_processes

    def lift_restrictions(self) -> None:
        """No process will be started any more: every episode may be played by those that there are."""
        self._new_processes.lift()

    def lease(self, worker: str, process: str | None = None, server: str = "") -> LeasedEpisode | None:
        """The next episode for ``worker``, in ``process`` (None: one of its name), whose policy is at ``server``; None
        when nothing is pending that it may play now."""
        process = process or worker
        found = self._find(process, server)
        if found is None:
            return None
        key, episode = found
        self._n_pending -= 1
        self._move(process, key)
        self._new_processes.plays(process)
        attempt = self._attempts.get(episode.id, 0) + 1
        self._attempts[episode.id] = attempt
        self._tries[episode.id] = self._tries.get(episode.id, 0) + 1
        leased = LeasedEpisode(self._next_lease, episode, attempt, worker, process, server)
        self._leases[leased.lease] = leased
        self._n_filmed += self._is_filmed(episode)
        self._next_lease += 1
        return leased

    def held(self, lease: int, worker: str) -> LeasedEpisode | None:
        """The lease if ``worker`` still holds it: a late reply to a lease that was taken back gets None."""
        leased = self._leases.get(lease)
        return leased if leased is not None and leased.worker == worker else None

    def finish(self, leased: LeasedEpisode, seconds: float) -> None:
        """The episode was run to its end, which took ``seconds``."""
        self._release(leased)
        self._suspects.discard(leased.episode.id)
        self._new_processes.finished(leased.episode.id)
        self._tries.pop(leased.episode.id, None)
        self._attempts.pop(leased.episode.id, None)
        state = self._tasks[(leased.episode.suite, leased.episode.task)]
        state.finished += 1
        state.timed += 1
        state.seconds += seconds

    def fail(
        self, leased: LeasedEpisode, retryable: bool, fault: Fault = Fault.EPISODE, renewable: bool = False
    ) -> bool:
        """The attempt erred. True: it is pending again. False: the episode is given up, its error is final.

        A loss of all that was played in a process of several scenes, or at a policy server, does not count as a try
        the first time; from then on no two such suspects are played together, so that the next time it does.
        ``renewable``: a new process will be started in the place of this one if ``needs_new_process`` says so then.
        """
        self._release(leased)
        episode = leased.episode.id
        state = self._tasks[(leased.episode.suite, leased.episode.task)]
        if retryable and self._suspects.add(episode, fault):
            self._tries[episode] -= 1
        if retryable and self._tries[episode] < self._max_attempts:
            if renewable:
                self._new_processes.note(episode, fault, self._tries[episode])
            # At the front: what fails is known early, and a straggler does not begin when all else is done.
            state.pending.appendleft(leased.episode)
            self._n_pending += 1
            return True
        self._suspects.discard(episode)
        self._new_processes.given_up(episode)
        state.given_up += 1
        return False

    def put_back(self, leased: LeasedEpisode) -> None:
        """The lease ended through no fault of the episode (a run that stops): pending again, not counted as a try."""
        self._release(leased)
        self._tries[leased.episode.id] -= 1
        self._attempts[leased.episode.id] -= 1
        self._tasks[(leased.episode.suite, leased.episode.task)].pending.appendleft(leased.episode)
        self._n_pending += 1

    def has_finished(self, episode: EpisodeSpec) -> bool:
        """Whether any episode of the task of ``episode`` was run to its end."""
        return self._tasks[(episode.suite, episode.task)].finished > 0

    def is_hopeless(self, episode: EpisodeSpec) -> bool:
        """Whether the task of ``episode`` has only erred, often enough not to go on."""
        state = self._tasks[(episode.suite, episode.task)]
        return state.finished == 0 and state.given_up >= FAIL_FAST_AFTER

    def abandon_task(self, episode: EpisodeSpec) -> list[EpisodeSpec]:
        """Take all pending episodes of the task of ``episode`` out of the queue: they will not be run."""
        state = self._tasks[(episode.suite, episode.task)]
        dropped = list(state.pending)
        state.pending.clear()
        for spec in dropped:
            self._suspects.discard(spec.id)
            self._new_processes.given_up(spec.id)
        self._n_pending -= len(dropped)
        return dropped

    def forget(self, process: str) -> None:
        """The process is gone: whatever task it had loaded is no longer taken care of."""
        self._leave_task(process)
        self._new_processes.forget(process)

    def _leave_task(self, process: str) -> None:
        key = self._task_of.pop(process, None)
        if key is not None:
            self._tasks[key].processes -= 1

    def _release(self, leased: LeasedEpisode) -> None:
        del self._leases[leased.lease]
        self._n_filmed -= self._is_filmed(leased.episode)

    def _find(self, process: str, server: str) -> tuple[TaskKey, EpisodeSpec] | None:
        """The next episode that may be played in ``process`` and at ``server`` now, taken out of its task."""
        best = self._choose(process)
        if best is None:
            return None
        barred = self._barred(process, server)
        keys = [best]
        if barred and not any(lease.process == process for lease in self._leases.values()):
            # It is free for another task, where there are episodes that it may play.
            keys += [key for key in self._tasks if key != best]
        for key in keys:
            state = self._tasks[key]
            if self._shuffled is not None and state.pending:
                state.pending.rotate(self._shuffled.randrange(len(state.pending)))
            episode = self._take(state, barred)
            if episode is not None:
                return key, episode
        return None

    def _barred(self, process: str, server: str) -> set[int]:
        barred: set[int] = set()
        if self._suspects:
            barred |= self._suspects.barred(process, server, self._leases.values())
        if self._new_processes:
            barred |= self._new_processes.barred(process)
        return barred

    def _take(self, state: _TaskState, barred: set[int]) -> EpisodeSpec | None:
        """The first pending episode of the task that is not ``barred``."""
        spared = self._filmed_at_once is not None and self._n_filmed >= self._filmed_at_once
        if not barred and not spared:
            return state.pending.popleft() if state.pending else None
        allowed = [e for e in itertools.islice(state.pending, _LOOKAHEAD) if e.id not in barred]
        episode = next((e for e in allowed if not (spared and self._is_filmed(e))), allowed[0] if allowed else None)
        if episode is not None:
            state.pending.remove(episode)
        return episode

    def _move(self, process: str, key: TaskKey) -> None:
        if self._task_of.get(process) != key:
            self._leave_task(process)
            self._task_of[process] = key
            self._tasks[key].processes += 1

    def _least_advanced(self, own: TaskKey | None) -> TaskKey:
        """The task whose next episode is of the earliest round; its own while it is not far ahead of that."""
        rounds = {key: state.pending[0].index for key, state in self._tasks.items() if state.pending}
        earliest = min(rounds.values())
        if own in rounds and rounds[own] < earliest + _ROUNDS_AHEAD:
            return own
        candidates = [key for key, number in rounds.items() if number == earliest]
        return min(candidates, key=lambda key: self._tasks[key].processes)

    def _choose(self, process: str) -> TaskKey | None:
        if not self._n_pending:
            return None
        if self._shuffled is not None:
            open_tasks = [key for key, state in self._tasks.items() if state.pending]
            return self._shuffled.choice(open_tasks)
        own = self._task_of.get(process)
        if self._balanced:
            return self._least_advanced(own)
        if own is not None and self._tasks[own].pending:
            return own
        timed_limits = sum(state.timed * state.step_limit for state in self._tasks.values())
        pace = sum(state.seconds for state in self._tasks.values()) / timed_limits if timed_limits else 1e-3
        best, most = None, -1.0
        for key, state in self._tasks.items():
            if state.pending:
                share = state.work_left(pace) / (state.processes + 1)
                if share > most:
                    best, most = key, share
        return best
