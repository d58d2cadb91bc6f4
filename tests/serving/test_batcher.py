"""What goes into one forward pass: all that waits, nothing that cannot come, everybody's own answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from robotrials.benchmarks.base import Observation
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import build_plan
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.serving import batcher as batcher_module
from robotrials.serving.batcher import Batcher, Request
from tests.toy import Toy, ToyConfig

TASK = Toy(ToyConfig(task="a")).tasks()[0]
EPISODE = build_plan([TASK], 1, 0).episodes[0]


class Echo(Policy):
    """Answers each observation's number; raises on 13; a pass takes ``pass_s`` on the fake clock."""

    def __init__(self, clock: Clock, pass_s: float = 1.0) -> None:
        self.clock, self.pass_s = clock, pass_s
        self.batches: list[int] = []

    def spec(self) -> PolicySpec:
        return PolicySpec("echo")

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        self.batches.append(len(sessions))
        self.clock.now += self.pass_s
        numbers = [float(np.asarray(o["n"])) for o in observations]
        if 13.0 in numbers:
            raise ValueError("unlucky")
        return np.array(numbers).reshape(-1, 1, 1)


class Clock:
    now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(batcher_module.time, "perf_counter", clock.perf_counter)
    return clock


def request(client: int, n: float, number: int = 1) -> Request:
    session = Session(EpisodeSpec(0, "s", "t", 0, 0, None, 1), TASK, EPISODE.rng("policy"))
    return Request(client, number, client, session, {"n": np.array(n)})


def test_all_that_waits_goes_into_one_pass_and_everybody_gets_his_own(clock: Clock) -> None:
    policy = Echo(clock)
    batcher = Batcher(policy, None)
    for client in range(5):
        batcher.add(request(client, client * 10.0))
    answers = batcher.run()
    assert policy.batches == [5]
    assert [(a.request.client, a.actions.item()) for a in answers if a.actions is not None] == [
        (c, c * 10.0) for c in range(5)
    ]
    assert all(a.rows == 5 for a in answers)
    assert batcher.run() == []


def test_a_pass_takes_no_more_than_its_limit_and_first_come_are_served_first(clock: Clock) -> None:
    policy = Echo(clock)
    batcher = Batcher(policy, 2)
    for client in range(5):
        batcher.add(request(client, client))
    served = []
    while len(batcher):
        served.append([a.request.client for a in batcher.run()])
    assert served == [[0, 1], [2, 3], [4]]


def test_one_bad_observation_fails_its_own_episode_alone(clock: Clock) -> None:
    batcher = Batcher(Echo(clock), None)
    for client, n in enumerate([1.0, 13.0, 2.0]):
        batcher.add(request(client, n))
    answers = batcher.run()
    assert [None if a.actions is None else a.actions.item() for a in answers] == [1.0, None, 2.0]
    assert isinstance(answers[1].error, ValueError)


class Noisy(Echo):
    """Answers with noise of each session; finds out only then that it cannot."""

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        noise = np.array([session.rng.normal() for session in sessions])
        super().act(sessions, observations)
        return noise.reshape(-1, 1, 1)


def test_a_row_that_shared_a_batch_with_a_bad_one_has_the_noise_it_has_alone(clock: Clock) -> None:
    batcher = Batcher(Noisy(clock), None)
    for client, n in enumerate([1.0, 13.0, 2.0]):
        batcher.add(request(client, n))
    first, bad, last = batcher.run()
    alone = EPISODE.rng("policy").normal()
    assert bad.error is not None
    for answer in (first, last):
        assert answer.actions is not None
        assert answer.actions.item() == alone


def test_nothing_is_waited_for_at_first(clock: Clock) -> None:
    batcher = Batcher(Echo(clock), None)
    batcher.add(request(0, 1.0))
    assert batcher.patience() == 0.0


def play_rounds(batcher: Batcher, clock: Clock, thinks: dict[int, float], rounds: int) -> None:
    """Every client asks again after its think time; a pass holds all."""
    for number in range(rounds):
        start = clock.now
        for client, think in sorted(thinks.items(), key=lambda item: item[1]):
            clock.now = max(clock.now, start + think)
            batcher.add(request(client, client, number))
        batcher.run()


def test_session_that_always_asks_again_at_once_is_waited_for_a_tenth_of_a_pass(clock: Clock) -> None:
    batcher = Batcher(Echo(clock), None)
    play_rounds(batcher, clock, {0: 0.01, 1: 0.02}, 4)
    clock.now += 0.01
    batcher.add(request(0, 0.0, 9))
    assert 0.0 < batcher.patience() <= 0.1
    clock.now += 0.11
    assert batcher.patience() == 0.0


def test_where_passes_are_over_at_once_nobody_is_waited_for(clock: Clock) -> None:
    batcher = Batcher(Echo(clock, pass_s=1e-4), None)
    for _ in range(3):
        for client in range(2):
            batcher.add(request(client, 0.0))
        batcher.run()
        clock.now += 1e-6
    batcher.add(request(0, 0.0))
    assert batcher.is_fast
    assert batcher.patience() == 0.0


def test_session_that_thinks_for_long_is_not_waited_for(clock: Clock) -> None:
    batcher = Batcher(Echo(clock), None)
    play_rounds(batcher, clock, {0: 0.01, 1: 0.9}, 4)
    clock.now += 0.01
    batcher.add(request(0, 0.0, 9))
    assert batcher.patience() == 0.0


def test_session_that_is_over_or_gone_is_not_waited_for(clock: Clock) -> None:
    batcher = Batcher(Echo(clock), None)
    play_rounds(batcher, clock, {0: 0.01, 1: 0.02, 2: 0.02}, 4)
    clock.now += 0.01
    batcher.add(request(0, 0.0, 9))
    assert batcher.patience() > 0.0
    batcher.drop_session(1, 1)
    batcher.drop_client(2)
    assert batcher.patience() == 0.0


def test_requests_of_a_client_that_is_gone_are_dropped(clock: Clock) -> None:
    policy = Echo(clock)
    batcher = Batcher(policy, None)
    batcher.add(request(0, 1.0))
    batcher.add(request(1, 2.0))
    batcher.drop_client(0)
    assert [a.request.client for a in batcher.run()] == [1]


def test_while_every_core_simulates_a_batch_waits_to_fill(clock: Clock) -> None:
    batcher = Batcher(Echo(clock), 4, cores=2)
    play_rounds(batcher, clock, {0: 0.5, 1: 0.6, 2: 0.7, 3: 0.8}, 2)
    batcher.add(request(0, 0.0, 9))
    assert batcher.patience() == pytest.approx(1.0)  # three simulate: a pass would take a core from one of them
    batcher.add(request(1, 0.0, 9))
    assert batcher.patience() == pytest.approx(1.0)
    batcher.add(request(2, 0.0, 9))
    assert batcher.patience() == 0.0  # one simulates, so a core is idle


def test_a_full_batch_waits_for_nobody_and_a_hung_simulator_holds_it_up_for_one_pass_only(clock: Clock) -> None:
    batcher = Batcher(Echo(clock), 2, cores=1)
    play_rounds(batcher, clock, {0: 0.5, 1: 0.6}, 1)
    play_rounds(batcher, clock, {2: 0.5, 3: 0.6}, 1)
    batcher.add(request(0, 0.0, 9))
    assert batcher.patience() > 0.0
    clock.now += 1.01
    assert batcher.patience() == 0.0
    batcher.add(request(1, 0.0, 9))
    assert batcher.patience() == 0.0
