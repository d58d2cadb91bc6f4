"""Sessions of a policy that draws from the global generators, alone and together."""

from __future__ import annotations

import numpy as np
import pytest

from robotrials.benchmarks.base import Observation
from robotrials.errors import ContractError
from robotrials.plan.episode import EpisodeSpec
from robotrials.policies.base import Policy, Session
from robotrials.policies.own_generators import DrawnInBatchError, OwnGenerators, own_generators
from robotrials.policies.zero import ZeroPolicy
from robotrials.serving.batcher import Batcher, Request
from tests import toy
from tests.dice import Gambler, Rememberer

(TASK,) = toy.Toy(toy.ToyConfig()).tasks()
SEEN: Observation = {"observation.state": np.array([0.0, 5.0], np.float32)}


def begun(policy: Policy, index: int) -> Session:
    return policy.new_session(EpisodeSpec(index, "toys", "a", index, 1000 + index, None, 60), TASK)


def alone(policy: Policy, calls: int, index: int) -> list[np.ndarray]:
    made = OwnGenerators(policy)
    session = begun(made, index)
    return [made.act([session], [SEEN])[0] for _ in range(calls)]


def test_rows_of_a_policy_that_draws_do_not_depend_on_the_batch() -> None:
    together = OwnGenerators(Gambler(quiet=1))
    sessions = [begun(together, index) for index in range(3)]
    first, second = (together.act(sessions, [SEEN] * 3) for _ in range(2))
    for index in range(3):
        expected = alone(Gambler(quiet=1), 2, index)
        assert np.array_equal(first[index], expected[0])
        assert np.array_equal(second[index], expected[1])


def test_a_policy_that_does_not_draw_keeps_its_batches() -> None:
    sizes: list[int] = []

    class Counted(ZeroPolicy):
        draws_globally = True

        def act(self, sessions: object, observations: object) -> np.ndarray:
            sizes.append(len(sessions))  # type: ignore[arg-type]
            return super().act(sessions, observations)  # type: ignore[arg-type]

    policy = own_generators(Counted())
    sessions = [begun(policy, index) for index in range(3)]
    for _ in range(2):
        policy.act(sessions, [{}] * 3)
    assert sizes == [1, 1, 1, 3]


def test_stateful_sessions_that_drew_together_cannot_go_on() -> None:
    policy = OwnGenerators(Rememberer(quiet=2))
    sessions = [begun(policy, index) for index in range(2)]
    for _ in range(2):
        policy.act(sessions, [SEEN] * 2)
    with pytest.raises(DrawnInBatchError, match="drew from a global random generator for several episodes"):
        policy.act(sessions, [SEEN] * 2)
    with pytest.raises(DrawnInBatchError):
        policy.act(sessions[:1], [SEEN])
    again = begun(policy, 0)
    found = [policy.act([again], [SEEN])[0] for _ in range(4)]
    assert np.array_equal(found, alone(Rememberer(quiet=2), 4, 0))


def test_plain_sessions_that_drew_together_are_asked_again_by_the_batcher() -> None:
    class Late(Gambler):
        calls = 0

        def act(self, sessions: list[Session], observations: list[Observation]) -> np.ndarray:  # type: ignore[override]
            Late.calls += 1
            noise = [[[s.rng.normal() + (np.random.rand() if Late.calls > 2 else 0.0)]] for s in sessions]
            return np.array(noise)

    policy = OwnGenerators(Late(quiet=1))
    batcher = Batcher(policy, None)
    sessions = [begun(policy, index) for index in range(2)]
    found = []
    for _ in range(2):
        for index, session in enumerate(sessions):
            batcher.add(Request(index, 1, 1, session, SEEN))
        found.append([answer.actions for answer in batcher.run()])
    for index in range(2):
        Late.calls = 1
        expected = alone(Late(quiet=1), 2, index)
        assert np.array_equal([step[index] for step in found], expected)


def test_policies_that_need_nothing_are_left_as_they_are() -> None:
    zero = ZeroPolicy()
    assert own_generators(zero) is zero
    assert isinstance(own_generators(Gambler()), OwnGenerators)


def test_session_that_is_none_is_refused() -> None:
    class Nothing(Gambler):
        def new_session(self, *arguments: object) -> Session:  # type: ignore[override]
            return None  # type: ignore[return-value]

    with pytest.raises(ContractError, match="began an episode with NoneType; right is a Session"):
        begun(OwnGenerators(Nothing()), 0)
