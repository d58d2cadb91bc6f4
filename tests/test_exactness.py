"""The promise of the whole project, on real simulators: outcomes do not depend on how the work was spread.

The same plan is run by one worker, by two, in shuffled order, with and without videos, with workers killed, and with
the coordinator killed and the run resumed; the tables of outcomes must be equal bit for bit.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from robotrials.engine.observer import SilentObserver
from robotrials.plan.config import EnvChoice, EvalSettings, PolicyChoice, RunConfig
from robotrials.results.ledger import Ledger
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare
from tests.engine.toy_runs import worker_processes

SPRINT = {"n_episodes": 4, "batch_size": 2, "record": "none"}

CASES = {
    "metaworld-expert": (PolicyChoice("expert"), EnvChoice("metaworld", {"task": "reach-v3,push-v3,door-open-v3"})),
    "metaworld-learned": (
        PolicyChoice(path="builtin:metaworld-bc"),
        EnvChoice("metaworld", {"task": "drawer-open-v3,peg-insert-side-v3"}),
    ),
    "pusht-pixels": (
        PolicyChoice("tests.pixel_policy:PixelPolicy"),
        EnvChoice("pusht", {"task": "PushT-v0", "episode_length": "60"}),
    ),
}


def config(case: str, directory: Path, **settings: object) -> RunConfig:
    policy, env = CASES[case]
    return RunConfig(policy, env, EvalSettings(**{**SPRINT, **settings}), 1000, directory)  # type: ignore[arg-type]


def outcomes(case: str, directory: Path, **settings: object) -> str:
    result = execute(prepare(config(case, directory, **settings)), SilentObserver())
    assert result.complete, result.failures
    return digest(directory)


def digest(directory: Path) -> str:
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return ledger.outcome_digest()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each case by one worker, in plan order, without videos."""
    folder = tmp_path_factory.mktemp("reference")
    return {case: outcomes(case, folder / case, batch_size=1) for case in CASES}


@pytest.mark.parametrize("case", CASES)
def test_two_workers_and_a_shuffled_order(case: str, tmp_path: Path, reference: dict[str, str]) -> None:
    assert outcomes(case, tmp_path / "two") == reference[case]
    assert outcomes(case, tmp_path / "shuffled", order="shuffled") == reference[case]


@pytest.mark.parametrize("case", ["metaworld-expert", "pusht-pixels"])
def test_with_videos(case: str, tmp_path: Path, reference: dict[str, str]) -> None:
    settings = {"record": "first:1", "record_fps": 5.0} if case.startswith("metaworld") else {"record": "all"}
    assert outcomes(case, tmp_path / "filmed", **settings) == reference[case]
    assert len(list((tmp_path / "filmed").rglob("*.mp4"))) == (3 if case.startswith("metaworld") else 4)


@pytest.mark.parametrize("case", ["metaworld-expert", "pusht-pixels"])
def test_after_a_worker_was_killed(case: str, tmp_path: Path, reference: dict[str, str]) -> None:
    directory = tmp_path / "run"
    killed = []

    def kill_one() -> None:
        wait_for_records(directory, 1)
        victim = random.Random(3).choice(worker_processes())
        victim.kill()
        killed.append(victim)

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        assert outcomes(case, directory) == reference[case]
    finally:
        killer.join()
    assert killed


@pytest.mark.parametrize("case", ["metaworld-expert", "pusht-pixels"])
def test_after_the_coordinator_was_killed_and_the_run_resumed(
    case: str, tmp_path: Path, reference: dict[str, str]
) -> None:
    directory = tmp_path / "run"
    code = (
        "import sys; from pathlib import Path; from tests.test_exactness import outcomes\n"
        f"outcomes({case!r}, Path({str(directory)!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    wait_for_records(directory, 2)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert prepare(config(case, directory)).done >= 2
    assert outcomes(case, directory, order="shuffled") == reference[case]


def test_one_more_episode_leaves_the_others_unchanged(tmp_path: Path) -> None:
    """An episode does not know how many there are."""
    few, many = config("metaworld-expert", tmp_path / "few"), config("metaworld-expert", tmp_path / "many")
    one_task = EnvChoice("metaworld", {"task": "push-v3"})
    few = replace(few, env=one_task, eval=replace(few.eval, n_episodes=2))
    many = replace(many, env=one_task, eval=replace(many.eval, n_episodes=5))
    rows = []
    for run in (few, many):
        execute(prepare(run), SilentObserver())
        assert run.output_dir is not None
        with Ledger.open(run.output_dir / "ledger.sqlite", read_only=True) as ledger:
            rows.append(list(ledger.outcomes()))
    assert rows[1][:2] == rows[0]


def wait_for_records(directory: Path, n: int) -> None:
    from tests.engine.test_engine import wait_for_records as wait

    wait(directory, n)
