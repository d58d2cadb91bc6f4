"""The toy benchmark named by its file: where LeRobot is installed, a dependency of it brings a package ``tests``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from robotrials.plan.config import RunConfig
from tests import toy
from tests.engine import toy_runs

TOY = toy.__file__
SEER = f"{TOY}:Seer"


def toy_config(directory: Path, policy: str = SEER, tasks: str = "a,b", **more: Any) -> RunConfig:
    """As ``tests.engine.toy_runs.toy_config``."""
    config = toy_runs.toy_config(directory, policy, tasks, **more)
    return replace(config, env=replace(config.env, type=f"{TOY}:Toy"))
