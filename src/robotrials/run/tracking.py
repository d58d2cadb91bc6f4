"""Logging to Weights & Biases or Trackio (``--wandb.*``): one run there for one run directory, however often it is
resumed.

While the run goes on, counts and the interval that is valid under looking are logged; at the end the figures of the
table.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from robotrials.engine.observer import Observer, Progress
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.install import install_command
from robotrials.plan.config import RunConfig, WandbSettings
from robotrials.results.summary import Rates, RunSummary
from robotrials.stats.sequential import unfinished_sequence

_EVERY_S = 15.0


class Tracker:
    """An open run at the backend. A backend that fails later costs its own log, never the evaluation: it is said
    once."""

    def __init__(self, backend: ModuleType, settings: WandbSettings, observer: Observer) -> None:
        self._backend, self._settings, self._observer = backend, settings, observer
        self._next = 0.0
        self._broken = False

    # As an Observer, in front of the one that shows things.

    def on_progress(self, snapshot: Progress) -> None:
        self._observer.on_progress(snapshot)
        now = time.monotonic()
        finished = snapshot.successes + snapshot.failures
        if now < self._next or not finished:
            return
        self._next = now + _EVERY_S
        low, high = unfinished_sequence(snapshot.successes, finished, snapshot.running)
        self._log(
            {
                "progress/done": snapshot.done,
                "progress/errors": snapshot.errors,
                "progress/successes": snapshot.successes,
                "progress/valid_low": low,
                "progress/valid_high": high,
            }
        )

    def on_message(self, text: str) -> None:
        self._observer.on_message(text)

    def finish(self, summary: RunSummary, complete: bool) -> None:
        """Log the figures and close the run."""
        values = {**_figures("eval", summary.overall), "eval/complete": int(complete)}
        for suite in summary.suites:
            values |= _figures(f"suite/{suite.name}", suite)
            for task in suite.tasks:
                values |= _figures(f"task/{suite.name}/{task.name}", task)
        for group in summary.groups:
            values |= _figures(f"group/{group.name}", group)
        self._log(values)
        self.close()

    def close(self) -> None:
        self._guarded(self._backend.finish)

    def _log(self, values: Mapping[str, Any]) -> None:
        self._guarded(lambda: self._backend.log(dict(values)))

    def _guarded(self, call: Any) -> None:
        if self._broken:
            return
        try:
            call()
        except Exception as error:  # noqa: BLE001  a logging service may raise anything, and hours of episodes are at stake
            self._broken = True
            self._observer.on_message(f"{self._settings.backend} failed and is left alone from here on: {error}")


def require_backend(settings: WandbSettings) -> None:
    """
    Raises:
        NotInstalledError: logging is asked for, and the backend's package is missing. Imports nothing.
    """
    name = settings.backend
    there = sys.modules[name] is not None if name in sys.modules else find_spec(name) is not None
    if settings.enable and not there:
        raise NotInstalledError(f"--wandb.enable needs {settings.backend}: {install_command(settings.backend)}")


def open_tracker(config: RunConfig, described: dict[str, Any], observer: Observer) -> Tracker | None:
    """Begin, or go on with, the backend's run; its id is kept in ``described`` (run.json, ``tracking``). None if not
    asked for.

    Raises:
        NotInstalledError: the backend's package is missing.
        ConfigError: it cannot begin (not logged in, no such project).
    """
    settings = config.wandb
    if not settings.enable:
        return None
    require_backend(settings)
    backend = importlib.import_module(settings.backend)
    before = described.get("tracking") or {}
    run_id = settings.run_id or before.get("id") or _new_id(described)
    described["tracking"] = {"backend": settings.backend, "project": settings.project, "id": run_id}
    about: dict[str, Any] = {key: described[key] for key in ("config", "identity", "machine") if key in described}
    try:
        if settings.backend == "trackio":
            backend.init(project=settings.project, name=run_id, resume="allow", config=about)
        else:
            _init_wandb(backend, settings, run_id, config, about)
    except Exception as error:
        raise ConfigError(
            f"--wandb.enable: {settings.backend} cannot begin a run: {error}; log in, or --wandb.mode=offline"
        ) from error
    return Tracker(backend, settings, observer)


def _init_wandb(
    wandb: ModuleType, settings: WandbSettings, run_id: str, config: RunConfig, about: Mapping[str, Any]
) -> None:
    if settings.mode == "online" and not (os.environ.get("WANDB_API_KEY") or wandb.api.api_key):
        raise ConfigError("nobody is logged in (wandb login, or WANDB_API_KEY)")  # it would ask, and wait
    wandb.init(
        project=settings.project,
        entity=settings.entity,
        name=config.job_name,
        notes=settings.notes,
        mode=settings.mode,
        id=run_id,
        resume="allow",
        job_type="eval",
        dir=None if config.output_dir is None else str(config.output_dir),
        config=dict(about),
        settings=wandb.Settings(console="off", silent=True),
    )


def _new_id(described: Mapping[str, Any]) -> str:
    """Differs from directory to directory, also of the same configuration: each is a run of its own."""
    import uuid

    return f"{str(described.get('identity_hash', ''))[:8]}{uuid.uuid4().hex[:8]}"


def _figures(prefix: str, figures: Rates) -> dict[str, float | int]:
    values: dict[str, float | int] = {
        f"{prefix}/n_success": figures.n_success,
        f"{prefix}/n_episodes": figures.n_finished,
        f"{prefix}/n_errors": figures.n_errors,
    }
    if figures.rate is not None and figures.interval is not None:
        values |= {
            f"{prefix}/pc_success": 100.0 * figures.rate,
            f"{prefix}/pc_success_low": 100.0 * figures.interval[0],
            f"{prefix}/pc_success_high": 100.0 * figures.interval[1],
        }
    for name, value in (("avg_sum_reward", figures.avg_sum_reward), ("avg_max_reward", figures.avg_max_reward)):
        if value is not None:
            values[f"{prefix}/{name}"] = value
    return values
