"""Runs of the real engine on the toy benchmark, for tests: real worker processes, real ledger."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from robotrials.engine.observer import Progress
from robotrials.plan.config import EnvChoice, EvalSettings, PolicyChoice, RunConfig
from robotrials.results.ledger import Ledger
from robotrials.run.execute import RunResult, execute
from robotrials.run.prepare import prepare


class Listener:
    """Keeps what the run said."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.snapshots: list[Progress] = []

    def on_progress(self, snapshot: Progress) -> None:
        self.snapshots.append(snapshot)

    def on_message(self, text: str) -> None:
        self.messages.append(text)


def toy_config(directory: Path, policy: str = "tests.toy:Seer", tasks: str = "a,b", **more: Any) -> RunConfig:
    """``trouble`` and ``step_s`` go to the benchmark, ``policy_options`` to the policy, the rest to ``--eval``."""
    env = {"task": tasks, "scratch": str(directory.parent)}
    env |= {name: str(more.pop(name)) for name in ("trouble", "step_s") if name in more}
    choice = PolicyChoice(policy, None, more.pop("policy_options", {}))
    settings = {"n_episodes": 6, "batch_size": 2, "record": "none", **more}
    return RunConfig(choice, EnvChoice("tests.toy:Toy", env), EvalSettings(**settings), 1000, directory)


def scenes_config(directory: Path, num_envs: int = 3, cls: str = "ToyScenes", **more: Any) -> RunConfig:
    """``num_envs`` scenes in each process, five workers in all."""
    config = toy_config(directory, **{"batch_size": 5, **more})
    options = {**config.env.options, "num_envs": str(num_envs)}
    return replace(config, env=EnvChoice(f"tests.toy_scenes:{cls}", options))


def run(config: RunConfig, listener: Listener | None = None) -> RunResult:
    return execute(prepare(config), listener or Listener())


def digest(directory: Path) -> str:
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return ledger.outcome_digest()


def without(config: RunConfig, **env: str) -> RunConfig:
    return replace(config, env=replace(config.env, options={**config.env.options, **env}))


def worker_processes() -> list[psutil.Process]:
    """Those that this process has started and that live."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # gone, or a zombie, since it was listed
            if "robotrials.worker.process" in child.cmdline():
                found.append(child)
    return found
