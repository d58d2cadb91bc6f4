"""The examples for Slurm, on a real one: an array of workers beside a coordinator, and an array of shards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from robotrials.results.ledger import Ledger
from tests.engine.launchers.slurm_service import jobs, slurm_service
from tests.engine.processes import ROOT, flags_of, n_finished, wait_for
from tests.engine.toy_runs import digest, run, toy_config

EXAMPLES = ROOT / "examples" / "slurm"


@pytest.fixture(scope="module", autouse=True)
def slurm() -> Iterator[None]:
    with slurm_service():
        yield


def submit(script: str, directory: Path, n: int, step_s: float = 0.005) -> None:
    """The toy, by one of the examples' scripts; every job asks for one core here."""
    config = toy_config(directory, n_episodes=10, step_s=step_s, batch_size=2 if "shards" in script else 0)
    flags = [flag for flag in flags_of(config) if not flag.startswith("--output_dir")]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "SBATCH_CPUS_PER_TASK": "1",
    }
    done = subprocess.run(
        [EXAMPLES / script, directory, str(n), *flags], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def outputs(directory: Path) -> str:
    return "\n".join(path.read_text() for path in sorted((directory / "slurm").glob("*.log")))


def expected(tmp_path: Path) -> str:
    run(toy_config(tmp_path / "local", n_episodes=10))
    return digest(tmp_path / "local")


def test_an_array_of_workers_joins_the_run_of_a_coordinator_and_any_of_them_may_be_cancelled(tmp_path: Path) -> None:
    submit("submit_workers.sh", tmp_path / "run", 2, step_s=0.02)
    wait_for(lambda: n_finished(tmp_path / "run/all") >= 3, 60)
    victim = next(line.split()[0] for line in jobs() if "workers" in line)
    subprocess.run(["scancel", "--signal=TERM", "--batch", victim], check=True)
    wait_for(lambda: not any(line.startswith(victim + " ") for line in jobs()), 60)
    wait_for(lambda: not jobs(), 120)
    assert digest(tmp_path / "run/all") == expected(tmp_path), outputs(tmp_path / "run")
    with Ledger.open(tmp_path / "run/all/ledger.sqlite", read_only=True) as ledger:
        assert all(len(ledger.attempts_of(episode)) == 1 for episode in range(20)), "it had left in order"
    assert "leaving when the episodes in hand are over" in outputs(tmp_path / "run")


def test_an_array_of_shards_is_merged_into_the_one_run(tmp_path: Path) -> None:
    submit("submit_shards.sh", tmp_path / "run", 3)
    wait_for(lambda: not jobs(), 120)
    assert (tmp_path / "run/all/ledger.sqlite").exists(), outputs(tmp_path / "run")
    assert digest(tmp_path / "run/all") == expected(tmp_path)
