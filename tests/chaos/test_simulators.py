"""Simulators and policies that hang, leak and raise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from robotrials.results.ledger import Ledger
from tests.chaos.runs import PUSHT, TOY, ChaosRun, Outcomes, check

SIX = (*TOY, "--eval.n_episodes=6", "--eval.batch_size=2")


@pytest.mark.parametrize("kind", ["sleep_once", "gil_once"])
def test_a_step_that_hangs_in_native_code_is_cut_off(
    kind: str, make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    """With Python's lock held not even the heartbeat's thread runs."""
    run = make_run((*SIX, f"--env.trouble={kind}@a/1", "--eval.step_timeout=3"))
    run.begin()
    says = ["hung: no progress for", "(--eval.step_timeout=3)", "trying again"]
    check(run, reference("toy"), status=run.wait(), says=says)


def test_a_simulator_that_leaks_until_its_memory_limit_ends_it_is_started_anew(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    run = make_run((*TOY, "--eval.n_episodes=12", "--eval.batch_size=2", "--env.trouble=leak@a/*+leak@b/*"))
    run.begin("--eval.max_attempts=10")
    check(run, reference("toy"), status=run.wait(), says=["was lost (killed by SIGABRT)", "log: "])
    with Ledger.open(run.directory / "ledger.sqlite", read_only=True) as ledger:
        assert sum(ledger.attempt_counts().values()) > 24


def test_one_allocation_too_large_is_an_error_of_that_attempt(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    run = make_run((*SIX, "--env.trouble=memory_once@b/3"))
    run.begin()
    check(run, reference("toy"), status=run.wait(), says=["toys/b/3: attempt 1 erred, trying again"])


@pytest.mark.parametrize("servers", [0, 1])
def test_a_policy_that_raises_in_one_episode_costs_no_other(
    servers: int, make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    """Also where it shares a batch with others: what they had drawn when it raised is not drawn again."""
    policy = ("--policy.type=tests.chaos.faulty:RaisesOnTwo", *TOY[1:])
    layout = ("--eval.n_episodes=6", "--eval.batch_size=4", f"--eval.policy_servers={servers}")
    run = make_run((*policy, *layout, "--env.step_s=0.01"))
    run.begin()
    errors = [(0, 2), (1, 2)]
    says = ["RuntimeError: no plan for episode two", "2 episodes ended in an error. To try again:", "robotrials resume"]
    check(run, reference("toy"), status=run.wait(), errors=errors, says=says)
    with Ledger.open(run.directory / "ledger.sqlite", read_only=True) as ledger:
        assert ledger.attempt_counts() == {episode: 3 if episode % 6 == 2 else 1 for episode in range(12)}
    run.resume()
    check(run, reference("toy"), status=run.wait(), errors=errors, says=says)


def test_a_policy_server_that_ends_itself_is_replaced_around_a_real_simulator(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes]
) -> None:
    run = make_run((*PUSHT, "--eval.n_episodes=6", "--eval.batch_size=2", "--eval.policy_servers=1"))
    run.begin()
    run.wait_for_records(1)
    for server in run.members("server"):
        server.kill()
    check(run, reference("pusht"), status=run.wait(), says=["starting another"])
