"""The network between a run and its workers is cut for a while."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from robotrials.results.ledger import Ledger
from tests.chaos.relay import Relay
from tests.chaos.runs import TOY, ChaosRun, Outcomes, check, until

OPEN = ("--eval.runtime=external", "--eval.listen=tcp://127.0.0.1:0")
_OUTAGE_S, _SHORT_OUTAGE_S = 20.0, 4.0
"""So long that several heartbeats and their answers are missing, and no longer than a worker may be silent."""


@pytest.fixture
def through_relay() -> Iterator[Callable[[ChaosRun], Relay]]:
    """A relay to the run, once it listens, and ``robotrials worker`` behind it."""
    relays: list[Relay] = []

    def start(run: ChaosRun) -> Relay:
        until(lambda: (run.directory / "connect.json").exists(), lambda: run.said)
        door = json.loads((run.directory / "connect.json").read_text())
        host, _, port = door["address"].removeprefix("tcp://").rpartition(":")
        relays.append(Relay((host, int(port))))
        secret = run.folder / "token"
        secret.write_text(door["token"])
        run.command("worker", f"--connect={relays[-1].address}", f"--token_file={secret}")
        return relays[-1]

    yield start
    for relay in relays:
        relay.close()


def attempts(directory: Path) -> list[int]:
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return sorted(ledger.attempt_counts().values())


def test_an_outage_of_some_heartbeats_costs_nothing(
    make_run: Callable[..., ChaosRun],
    reference: Callable[[str], Outcomes],
    through_relay: Callable[[ChaosRun], Relay],
    full: bool,
) -> None:
    run = make_run((*TOY, "--eval.n_episodes=20", "--env.step_s=0.005", *OPEN))
    run.begin()
    relay = through_relay(run)
    run.wait_for_records(2)
    relay.cut()
    time.sleep(0.5)  # what was on its way has arrived
    before = run.n_finished()
    time.sleep(_OUTAGE_S if full else _SHORT_OUTAGE_S)
    assert run.n_finished() == before < 40, "the outage was none"
    relay.mend()
    check(run, reference("toy"), status=run.wait())
    assert attempts(run.directory) == [1] * 40


def test_a_worker_that_was_away_for_too_long_is_given_up_and_what_it_says_late_is_not_used(
    make_run: Callable[..., ChaosRun],
    reference: Callable[[str], Outcomes],
    through_relay: Callable[[ChaosRun], Relay],
) -> None:
    run = make_run((*TOY, "--eval.n_episodes=20", "--env.step_s=0.01", *OPEN))
    run.begin(module="tests.chaos.impatient")
    relay = through_relay(run)
    run.wait_for_records(2)
    relay.cut()
    until(lambda: "was lost (not heard of for" in run.said, lambda: run.said)
    direct = run.command("worker", f"--run={run.directory}")
    run.wait_for_records(6)
    relay.mend()
    status = run.wait()
    assert run.wait(direct) == 0
    check(run, reference("toy"), status=status)
    assert attempts(run.directory)[-1] >= 2
