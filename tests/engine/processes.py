"""Runs in processes of their own, which can be killed, and what to wait for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from robotrials.plan.config import SETTINGS, RunConfig
from robotrials.results.ledger import Ledger

ROOT = Path(__file__).parents[2]


def wait_for(condition: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def n_finished(directory: Path) -> int:
    if not (directory / "ledger.sqlite").exists():
        return 0
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return len(ledger.accepted_ids())


def errors_on_the_way(directory: Path) -> list[str]:
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        attempts = [record for episode in ledger.accepted_ids() for record in ledger.attempts_of(episode)]
    return [record.error or "" for record in attempts if record.is_error]


class Coordinator(subprocess.Popen[bytes]):
    """A run in a process of its own, which can be killed."""

    def __init__(self, config: RunConfig) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, "-m", "robotrials", "eval", *flags_of(config)]
        super().__init__(words, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)

    def __exit__(self, *error: object) -> None:
        if self.poll() is None:
            self.terminate()
        super().__exit__(*error)


def flags_of(config: RunConfig) -> list[str]:
    sections = {name: getattr(config, name) for name in SETTINGS}
    flags = [
        f"--{section}.{name}={value}"
        for section, settings in sections.items()
        for name, value in vars(settings).items()
        if value is not None and value != vars(type(settings)()).get(name)
    ]
    flags += [f"--env.{name}={value}" for name, value in config.env.options.items()]
    flags += [f"--env.type={config.env.type}", f"--policy.type={config.policy.type}"]
    return [*flags, f"--seed={config.seed}", f"--output_dir={config.output_dir}"]
