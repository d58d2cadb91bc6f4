"""SIGSTOP: a process that neither works nor dies. A suspended laptop does this, and a swapping machine nearly."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from robotrials.results.ledger import Ledger
from tests.chaos.runs import METAWORLD, TOY, ChaosRun, Outcomes, check, until

SLOW = (*TOY, "--eval.n_episodes=8", "--eval.batch_size=2", "--env.step_s=0.01", "--eval.max_attempts=10")
LIMIT = "--eval.step_timeout=3"
_STANDSTILL_S = 6.0
"""Longer than the watchdog's limit, and than what the coordinator takes for a standstill of its own."""


def test_a_stopped_worker_is_replaced(make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]) -> None:
    run = make_run([flag for flag in (*SLOW, LIMIT) if "batch_size" not in flag])
    run.begin("--eval.batch_size=1")  # of two, one may still be starting when the other has played
    run.wait_for_records(1)
    run.members("worker")[0].send_signal(signal.SIGSTOP)
    check(run, reference("toy"), status=run.wait(), says=["hung: no progress for", "--eval.step_timeout=3"])


def test_a_stopped_worker_with_a_real_simulator_is_replaced(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    # On a busy machine a scene takes seconds to build, which is no hang; the stopped worker is missed all the same.
    run = make_run((*METAWORLD, "--eval.n_episodes=6", "--eval.batch_size=2", "--eval.step_timeout=15"))
    run.begin()
    until(lambda: len(run.members("worker")) == 2)
    run.wait_for_records(1)
    workers = run.members("worker")
    if workers:  # else the run was over sooner
        workers[0].send_signal(signal.SIGSTOP)
    check(run, reference("metaworld"), status=run.wait())


@pytest.mark.parametrize("servers", [1, 2])
def test_a_stopped_policy_server_is_replaced_though_it_was_idle(
    servers: int, make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    run = make_run((*SLOW, LIMIT, f"--eval.policy_servers={servers}"))
    run.begin()
    run.wait_for_records(1)
    run.members("server")[0].send_signal(signal.SIGSTOP)
    check(run, reference("toy"), status=run.wait(), says=["no sign of life for", "starting another"])


def test_a_stopped_coordinator_blames_nobody_for_its_own_silence(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    run = make_run((*SLOW, LIMIT, "--eval.policy_servers=1"))
    process = run.begin()
    run.wait_for_records(1)
    process.send_signal(signal.SIGSTOP)
    time.sleep(_STANDSTILL_S)
    process.send_signal(signal.SIGCONT)
    check(run, reference("toy"), status=run.wait())
    with Ledger.open(run.directory / "ledger.sqlite", read_only=True) as ledger:
        assert set(ledger.attempt_counts().values()) == {1}
