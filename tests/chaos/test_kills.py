"""SIGKILL at random instants: of workers, of policy servers, and of the coordinator, after which the run is resumed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable

import pytest

from tests.chaos.runs import METAWORLD, PUSHT, TOY, ChaosRun, Outcomes, check, until

MANY_TRIES = "--eval.max_attempts=100"
_KILLS_A_RUN = 20


def storm(run: ChaosRun, rng: random.Random, kills: int, weights: dict[str, int], deck: list[str]) -> Counter[str]:
    """Begin ``run`` and kill up to ``kills`` of its processes, then leave it in peace. ``deck`` is what is to be killed
    next, by kind; it is filled by ``weights``, and what could not be killed goes back."""
    killed: Counter[str] = Counter()
    process = run.begin()
    while killed.total() < kills:
        if not deck:
            deck += rng.sample(list(weights), k=sum(weights.values()), counts=list(weights.values()))
        kind = deck[-1]
        if kind != "coordinator":
            _until_there_is_one(run, kind)
        if _ends_within(process, rng.uniform(0.0, 1.5)):
            if process.returncode == 0:
                break
            # Several in a row were killed before they were ready: that looks like an installation that does not work.
            assert (process.returncode, "cannot start: " in run.said) == (1, True), run.said
            process = run.resume()
            continue
        victims = [process.pid] if kind == "coordinator" else [member.pid for member in run.members(kind)]
        if not victims:
            continue
        try:
            os.kill(rng.choice(victims), signal.SIGKILL)
        except ProcessLookupError:
            continue
        deck.pop()
        killed[kind] += 1
        if kind == "coordinator":
            assert run.wait(process) == -signal.SIGKILL
            run.until_nobody_is_left()
            # Killed before it had described itself, there is nothing to resume: the same command begins it.
            process = run.resume() if (run.directory / "run.json").exists() else run.begin()
    return killed


def _until_there_is_one(run: ChaosRun, kind: str) -> None:
    until(lambda: run.members(kind) or run.is_over, lambda: run.said)


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_a_storm_of_kills_changes_no_outcome(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes], rng: random.Random, full: bool
) -> None:
    flags = (*TOY, "--eval.n_episodes=40", "--eval.batch_size=3", "--eval.policy_servers=1", "--env.step_s=0.01")
    wanted = 105 if full else 10
    killed: Counter[str] = Counter()
    weights = {"worker": 5, "server": 2, "coordinator": 3}
    number, deck = 0, list[str]()
    while killed.total() < wanted:
        run = make_run((*flags, MANY_TRIES), f"storm-{number}")
        number += 1
        killed += storm(run, rng, min(_KILLS_A_RUN, wanted - killed.total()), weights, deck)
        check(run, reference("toy"), status=run.wait())
    print(f"killed: {dict(killed)} in {number} runs")
    assert killed.total() >= wanted
    assert set(killed) == set(weights)


@pytest.mark.parametrize("case", ["metaworld", "pusht"])
def test_kills_around_a_real_simulator_change_no_outcome(
    case: str, make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes], rng: random.Random, full: bool
) -> None:
    flags = METAWORLD if case == "metaworld" else (*PUSHT, "--eval.policy_servers=1")
    run = make_run((*flags, "--eval.n_episodes=6", "--eval.batch_size=2", MANY_TRIES))
    weights = {"worker": 3, "coordinator": 1} | ({"server": 2} if case == "pusht" else {})
    storm(run, rng, 10 if full else 2, weights, [])
    check(run, reference(case), status=run.wait())


def test_killed_at_every_stage_of_its_start_the_run_can_be_begun_again(
    make_run: Callable[..., ChaosRun], reference: Callable[[str], Outcomes], rng: random.Random, full: bool
) -> None:
    run = make_run((*TOY, "--eval.n_episodes=4", "--eval.batch_size=2"))
    for _ in range(8 if full else 2):
        process = run.begin()
        if _ends_within(process, rng.uniform(0.05, 1.2)):
            break
        process.kill()
        process.wait()
        run.until_nobody_is_left()
    run.begin()
    check(run, reference("toy"), status=run.wait())
