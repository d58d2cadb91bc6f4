"""Every episode is handed out, once at a time, with affinity and retries."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotrials.control.messages import Fault
from robotrials.engine.queue import FAIL_FAST_AFTER, EpisodeQueue
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan, build_plan
from tests.toy import Toy, ToyConfig


def plan_of(tasks: str, n: int) -> Plan:
    return build_plan(Toy(ToyConfig(task=tasks)).tasks(), n, 1000)


def test_worker_stays_with_its_task_while_it_has_episodes() -> None:
    queue = EpisodeQueue(plan_of("a,b", 5))
    tasks = []
    for _ in range(10):
        leased = queue.lease("w0")
        assert leased is not None
        tasks.append(leased.episode.task)
        queue.finish(leased, 1.0)
    assert tasks == ["a"] * 5 + ["b"] * 5
    assert queue.is_finished


def test_workers_share_out_tasks_before_they_split_one() -> None:
    queue = EpisodeQueue(plan_of("a,b,c", 4))
    leases = [queue.lease(f"w{i}") for i in range(4)]
    tasks = [leased.episode.task for leased in leases if leased]
    assert sorted(tasks[:3]) == ["a", "b", "c"]
    assert len(tasks) == 4


def test_task_that_takes_longest_is_taken_first_by_a_free_worker() -> None:
    queue = EpisodeQueue(plan_of("a,b,c", 6))
    leases = {worker: queue.lease(worker) for worker in ("w0", "w1", "w2")}
    for leased in leases.values():
        assert leased is not None
        queue.finish(leased, {"a": 1.0, "b": 50.0, "c": 2.0}[leased.episode.task])
    newcomer = queue.lease("w3")
    assert newcomer is not None
    assert newcomer.episode.task == "b"


def test_task_not_yet_timed_is_taken_for_as_slow_as_the_others() -> None:
    queue = EpisodeQueue(plan_of("a,b", 6))
    leased = queue.lease("w0")
    assert leased is not None
    queue.finish(leased, 100.0)
    newcomer = queue.lease("w1")
    assert newcomer is not None
    assert newcomer.episode.task == "b"


def test_done_episodes_are_not_handed_out_again() -> None:
    queue = EpisodeQueue(plan_of("a", 6), done=[0, 2, 4])
    handed = []
    while leased := queue.lease("w0"):
        handed.append(leased.episode.id)
        queue.finish(leased, 1.0)
    assert handed == [1, 3, 5]


def test_failed_episode_is_tried_again_until_its_tries_are_used_up() -> None:
    queue = EpisodeQueue(plan_of("a", 1), max_attempts=3)
    for attempt in (1, 2, 3):
        leased = queue.lease("w0")
        assert leased is not None
        assert leased.attempt == attempt
        assert queue.fail(leased, retryable=True) is (attempt < 3)
    assert queue.is_finished


def test_attempts_of_an_earlier_run_number_the_new_ones_but_use_up_no_tries() -> None:
    queue = EpisodeQueue(plan_of("a", 1), attempts={0: 7}, max_attempts=2)
    leased = queue.lease("w0")
    assert leased is not None
    assert leased.attempt == 8
    assert queue.fail(leased, retryable=True) is True


def test_films_are_spread_among_the_others_while_there_are_others() -> None:
    queue = EpisodeQueue(plan_of("a", 8), is_filmed=lambda episode: episode.index < 5, filmed_at_once=2)
    leases = [lease for k in range(4) if (lease := queue.lease(f"w{k}"))]
    assert [lease.episode.id for lease in leases] == [0, 1, 5, 6]
    queue.finish(leases[0], 1.0)
    queue.put_back(leases[1])
    more = [lease for k in (4, 5, 6, 7) if (lease := queue.lease(f"w{k}"))]
    assert [lease.episode.id for lease in more] == [1, 2, 7, 3]


def test_what_was_lost_with_others_is_tried_again_beside_no_other_such_and_the_one_at_fault_is_given_up_alone() -> None:
    """Episode 1 ends its process whenever it is played; three scenes share one."""
    queue = EpisodeQueue(plan_of("a", 6), max_attempts=2)
    settled: dict[int, str] = {}
    rounds = 0
    while not queue.is_finished:
        rounds += 1
        leases = [lease for scene in range(3) if (lease := queue.lease(f"w0-{scene}", "w0"))]
        assert leases, "nothing was given out, and episodes are left"
        is_lost = any(lease.episode.id == 1 for lease in leases)
        for lease in leases:
            if not is_lost:
                queue.finish(lease, 1.0)
                settled[lease.episode.id] = "finished"
            elif not queue.fail(lease, retryable=True, fault=Fault.SCENES):
                settled[lease.episode.id] = "given up"
    assert settled == {k: "given up" if k == 1 else "finished" for k in range(6)}
    assert rounds < 12
    assert not queue.has_suspects


def test_what_was_lost_with_its_policy_server_is_played_apart_from_other_such_at_the_same_server() -> None:
    """Episode 1 ends its server whenever it is played; four workers have two servers, two each."""
    queue = EpisodeQueue(plan_of("a", 12), max_attempts=2)
    settled: dict[int, str] = {}
    rounds = 0
    while not queue.is_finished:
        rounds += 1
        leases = [lease for k in range(4) if (lease := queue.lease(f"w{k}", server=f"s{k % 2}"))]
        assert leases, "nothing was given out, and episodes are left"
        lost = {lease.server for lease in leases if lease.episode.id == 1}
        for lease in leases:
            if lease.server not in lost:
                queue.finish(lease, 1.0)
                settled[lease.episode.id] = "finished"
            elif not queue.fail(lease, retryable=True, fault=Fault.CONNECTION):
                settled[lease.episode.id] = "given up"
    assert settled == {k: "given up" if k == 1 else "finished" for k in range(12)}
    assert rounds < 12
    assert not queue.has_suspects


def test_worker_takes_another_task_while_those_left_of_its_own_are_suspects_of_its_server() -> None:
    queue = EpisodeQueue(plan_of("a,b", 2))
    first, second = queue.lease("w0", server="s"), queue.lease("w1", server="s")
    assert first is not None
    assert second is not None
    queue.fail(first, retryable=True, fault=Fault.CONNECTION)
    queue.fail(second, retryable=True, fault=Fault.CONNECTION)
    tasks = [lease.episode.id for k in range(4) if (lease := queue.lease(f"w{k}", server="s"))]
    assert len(set(tasks) & {first.episode.id, second.episode.id}) == 1
    assert len(tasks) == 3


def test_third_try_waits_for_a_process_that_began_after_the_second() -> None:
    queue = EpisodeQueue(plan_of("a", 1))
    for process in ("w0", "w1"):
        leased = queue.lease(process)
        assert leased is not None
        assert queue.fail(leased, retryable=True, renewable=True)
    assert queue.needs_new_process(leased.episode)
    assert queue.lease("w0") is None
    assert queue.lease("w1") is None
    queue.forget("w1")
    again = queue.lease("w1.2")
    assert again is not None
    assert again.attempt == 3
    queue.finish(again, 1.0)
    assert queue.is_finished
    assert not queue.waits_for_a_process


def test_worn_out_process_is_left_at_once_and_the_last_try_is_never_in_an_old_one() -> None:
    for fault, max_attempts in ((Fault.PROCESS, 3), (Fault.EPISODE, 2)):
        queue = EpisodeQueue(plan_of("a", 2), max_attempts=max_attempts)
        leased = queue.lease("w0")
        assert leased is not None
        queue.fail(leased, retryable=True, fault=fault, renewable=True)
        assert queue.needs_new_process(leased.episode)
        other = queue.lease("w0")
        assert other is not None
        assert other.episode.id != leased.episode.id


@pytest.mark.parametrize("fault", [Fault.POLICY, Fault.CONNECTION])
def test_error_of_a_policy_server_is_not_answered_by_a_new_worker(fault: Fault) -> None:
    queue = EpisodeQueue(plan_of("a", 1), max_attempts=9)
    for _ in range(8):
        leased = queue.lease("w0")
        assert leased is not None
        assert queue.fail(leased, retryable=True, fault=fault, renewable=True)
        assert not queue.needs_new_process(leased.episode)


def processes_for(queue: EpisodeQueue, errs: Callable[[EpisodeSpec, int], bool]) -> int:
    """How many processes one worker needs; ``errs``: of an episode, and how many this process has begun."""
    generation, begun = 1, 0
    while not queue.is_finished:
        leased = queue.lease(f"w0.{generation}")
        assert leased is not None
        begun += 1
        if not errs(leased.episode, begun):
            queue.finish(leased, 1.0)
        elif queue.fail(leased, retryable=True, renewable=True) and queue.needs_new_process(leased.episode):
            queue.forget(f"w0.{generation}")
            generation, begun = generation + 1, 0
    return generation


def test_episodes_that_err_wherever_they_are_played_cost_few_new_processes() -> None:
    queue = EpisodeQueue(plan_of("a", 400))
    assert processes_for(queue, lambda episode, begun: episode.index % 2 == 1) < 12


def test_processes_that_wear_out_are_replaced_as_often_as_that_helps() -> None:
    queue = EpisodeQueue(plan_of("a", 40))
    failed = []
    n = processes_for(queue, lambda episode, begun: begun > 8 and failed.append(episode.id) is None)
    assert n == 5
    assert len(failed) == 2 * (n - 1)


def test_restrictions_that_nobody_can_meet_are_lifted() -> None:
    queue = EpisodeQueue(plan_of("a", 1), max_attempts=2)
    leased = queue.lease("w0")
    assert leased is not None
    queue.fail(leased, retryable=True, renewable=True)
    assert queue.waits_for_a_process
    assert queue.lease("w0") is None
    queue.lift_restrictions()
    assert queue.lease("w0") is not None


def test_error_that_cannot_be_mended_is_not_tried_again() -> None:
    queue = EpisodeQueue(plan_of("a", 1))
    leased = queue.lease("w0")
    assert leased is not None
    assert queue.fail(leased, retryable=False) is False
    assert queue.is_finished


def test_late_reply_to_a_lease_taken_back_is_not_held() -> None:
    queue = EpisodeQueue(plan_of("a", 1))
    first = queue.lease("w0")
    assert first is not None
    queue.fail(first, retryable=True)
    second = queue.lease("w1")
    assert second is not None
    assert queue.held(first.lease, "w0") is None
    assert queue.held(second.lease, "w0") is None
    assert queue.held(second.lease, "w1") is second


def test_task_that_only_errs_is_hopeless_and_can_be_abandoned() -> None:
    queue = EpisodeQueue(plan_of("a,b", 10), max_attempts=1)
    for _ in range(FAIL_FAST_AFTER):
        leased = queue.lease("w0")
        assert leased is not None
        assert leased.episode.task == "a"
        assert not queue.is_hopeless(leased.episode)
        queue.fail(leased, retryable=True)
    assert queue.is_hopeless(leased.episode)
    assert len(queue.abandon_task(leased.episode)) == 10 - FAIL_FAST_AFTER
    assert queue.n_pending == 10


def test_task_with_one_finished_episode_is_never_hopeless() -> None:
    queue = EpisodeQueue(plan_of("a", 10), max_attempts=1)
    leased = queue.lease("w0")
    assert leased is not None
    queue.finish(leased, 1.0)
    for _ in range(8):
        leased = queue.lease("w0")
        assert leased is not None
        queue.fail(leased, retryable=True)
    assert not queue.is_hopeless(leased.episode)


@pytest.mark.parametrize("order", ["longest", "shuffled"])
@given(seed=st.integers(0, 10_000))
def test_whatever_fails_every_episode_is_settled_exactly_once(order: str, seed: int) -> None:
    plan = plan_of("a,b,c", 4)
    queue = EpisodeQueue(
        plan, max_attempts=2, order=order, is_filmed=lambda episode: episode.index < 2, filmed_at_once=1
    )
    rng, settled, held = random.Random(seed), [], []
    while not queue.is_finished:
        worker = f"w{rng.randrange(4)}"
        leased = queue.lease(worker, f"p{int(worker[1:]) // 2}")
        if leased is not None:
            held.append(leased)
        if held and (leased is None or rng.random() < 0.6):
            ended = held.pop(rng.randrange(len(held)))
            if rng.random() < 0.3:
                if not queue.fail(ended, retryable=rng.random() < 0.8):
                    settled.append(ended.episode.id)
            else:
                queue.finish(ended, rng.random())
                settled.append(ended.episode.id)
        if rng.random() < 0.1:
            queue.forget(f"p{int(worker[1:]) // 2}")
    assert sorted(settled) == [episode.id for episode in plan]
