"""Whole runs of a few short episodes, for the promise that outcomes do not depend on how the work is spread."""

from __future__ import annotations

from pathlib import Path

from robotrials.engine.observer import SilentObserver
from robotrials.plan.config import EnvChoice, EvalSettings, PolicyChoice, RunConfig
from robotrials.results.ledger import Ledger
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare


def outcomes(env: EnvChoice, directory: Path, workers: int, order: str = "longest", n_episodes: int = 2) -> str:
    """A digest of what every episode came to, played with random actions."""
    settings = EvalSettings(n_episodes, workers, record="none", order=order)
    config = RunConfig(PolicyChoice("random"), env, settings, 1000, directory)
    result = execute(prepare(config), SilentObserver())
    assert result.complete, result.failures
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return ledger.outcome_digest()


def assert_exact(env: EnvChoice, directory: Path, n_episodes: int = 2) -> None:
    """One worker in plan order, and two in shuffled order, come to the same outcomes bit for bit."""
    alone = outcomes(env, directory / "one", 1, n_episodes=n_episodes)
    assert outcomes(env, directory / "two", 2, "shuffled", n_episodes) == alone
