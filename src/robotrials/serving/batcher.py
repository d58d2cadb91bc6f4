"""Which waiting requests go into the next forward pass, and what each of them gets back."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.policies.base import Policy, Session
from robotrials.policies.chunks import checked_chunks


@dataclass(frozen=True)
class Request:
    """One session waits for its next chunk. ``client`` is where the reply goes."""

    client: int
    request: int
    session_number: int
    session: Session
    observation: Observation


@dataclass(frozen=True)
class Answer:
    """The chunk (T, A) for ``request``, or the ``error`` in its place."""

    request: Request
    actions: np.ndarray | None
    error: BaseException | None
    infer_s: float
    rows: int


_FAST_PASS_S = 200e-6
_PATIENCE = 0.1
"""Of the last pass's duration, how much a batch may wait for sessions that are known to be about to ask."""
_PATIENCE_BUSY = 1.0
"""The same while simulators keep every core busy: starting a pass would only take a core from one of them."""


@dataclass
class _Pace:
    """How long one session takes between a chunk and its next request."""

    answered_at: float = 0.0
    think_s: float | None = None
    is_thinking: bool = False


class Batcher:
    """One forward pass at a time over whatever waits, first come first served, up to ``max_batch`` sessions.

    When a pass ends, what has come meanwhile is the next batch. There are two reasons to hold it back, unless passes
    are over sooner than a process could be woken.

    A session was just answered and has so far always asked again at once: without that, sessions in step fall apart
    into two groups that take turns, at half the throughput. The wait ends after a tenth of a pass at the latest, and
    is only for sessions that are open and whose usual pace brings them back by then: never for what cannot come.

    The policy computes on ``cores`` that it shares with the simulators, and as many sessions as there are cores are
    simulating: waiting for a fuller batch then costs nothing, since no core idles.
    """

    def __init__(self, policy: Policy, max_batch: int | None, cores: int | None = None) -> None:
        self._policy = policy
        self._name = policy.spec().name
        self._max_batch = max_batch
        self._cores = cores
        self._waiting: deque[Request] = deque()
        self._paces: dict[tuple[int, int], _Pace] = {}
        self._pass_s = 0.0
        self._held_since: float | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_fast(self) -> bool:
        """Whether the last pass took less time than it takes to wake a sleeping process."""
        return 0.0 < self._pass_s < _FAST_PASS_S

    def add(self, request: Request) -> None:
        self._waiting.append(request)
        key = (request.client, request.session_number)
        pace = self._paces.get(key)
        if pace is None:
            self._paces[key] = _Pace()
        elif pace.is_thinking:
            thought = time.perf_counter() - pace.answered_at
            pace.think_s = thought if pace.think_s is None else 0.5 * (pace.think_s + thought)
            pace.is_thinking = False

    def drop_session(self, client: int, session: int) -> None:
        """The episode is over: nothing more will come of it."""
        self._paces.pop((client, session), None)

    def drop_client(self, client: int) -> None:
        """Forget a client that is gone."""
        self._waiting = deque(request for request in self._waiting if request.client != client)
        self._paces = {key: pace for key, pace in self._paces.items() if key[0] != client}

    def patience(self) -> float:
        """Seconds for which the next pass should still wait for more; 0: run it now."""
        if self.is_fast or not self._waiting or len(self._waiting) >= (self._max_batch or len(self._paces)):
            return 0.0
        now = time.perf_counter()
        if self._held_since is None:
            self._held_since = now
        thinking = [pace for pace in self._paces.values() if pace.is_thinking]
        if self._cores is not None and len(thinking) >= self._cores:
            left = self._held_since + _PATIENCE_BUSY * self._pass_s - now
            return max(0.0, left)
        deadline = self._held_since + _PATIENCE * self._pass_s
        if now >= deadline:
            return 0.0
        for pace in thinking:
            if pace.think_s is not None and pace.answered_at + pace.think_s < deadline:
                return deadline - now
        return 0.0

    def run(self) -> list[Answer]:
        """One forward pass over the requests that wait now.

        A batch that raises is run again row by row, so that one bad observation fails its own episode alone. What the
        others had drawn from their generators when it raised is put back: their noise stays their own.
        """
        self._held_since = None
        size = min(len(self._waiting), self._max_batch or len(self._waiting))
        batch = [self._waiting.popleft() for _ in range(size)]
        if not batch:
            return []
        drawn = [_generator_state(request.session) for request in batch] if len(batch) > 1 else []
        answers = self._pass(batch)
        self._pass_s = answers[0].infer_s
        if len(batch) > 1 and answers[0].error is not None:
            for request, state in zip(batch, drawn, strict=True):
                _put_back(request.session, state)
            answers = [answer for request in batch for answer in self._pass([request])]
        now = time.perf_counter()
        for request in batch:
            pace = self._paces.get((request.client, request.session_number))
            if pace is not None:
                pace.answered_at, pace.is_thinking = now, True
        return answers

    def _pass(self, batch: Sequence[Request]) -> list[Answer]:
        began = time.perf_counter()
        try:
            actions = self._policy.act([r.session for r in batch], [r.observation for r in batch])
            chunks = checked_chunks(self._name, actions, len(batch))
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  sent to the worker, whose episode errs
            return [Answer(r, None, error, time.perf_counter() - began, len(batch)) for r in batch]
        spent = time.perf_counter() - began
        return [Answer(r, row, None, spent, len(batch)) for r, row in zip(batch, chunks, strict=True)]


def _generator_state(session: Session) -> dict[str, Any] | None:
    """Of the session's generator; None for a policy that put something else in its place."""
    generator = session.rng
    return dict(generator.bit_generator.state) if isinstance(generator, np.random.Generator) else None


def _put_back(session: Session, state: dict[str, Any] | None) -> None:
    """Give the session's generator this ``state``, unless the policy has put another in its place."""
    if state is not None and isinstance(session.rng, np.random.Generator):
        with contextlib.suppress(ValueError, TypeError):
            session.rng.bit_generator.state = state
