"""The checkpoints of a training, evaluated as they appear, all on the same episodes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError, LedgerError
from robotrials.plan.config import RunConfig
from robotrials.results.export.eval_info import strict_json
from robotrials.results.filesystem import write_atomically
from robotrials.suites.point import Point
from robotrials.suites.training import TrainedCheckpoint, TrainingFolder

CURVE, PAGE, PICTURE = "curve.json", "index.html", "curve.png"


def run_folder(output_dir: Path, checkpoint: TrainedCheckpoint) -> Path:
    """Where the run of a checkpoint goes: its step, as lerobot-train writes it."""
    return output_dir / checkpoint.folder.name


def check_before_waiting(config: RunConfig) -> None:
    """Refuse at once what would else be refused when the first checkpoint appears, hours later.

    Raises:
        ConfigError: no seed is given: each checkpoint would draw its own episodes; and what ``check_before_training``
            refuses.
        NotInstalledError: as there.
    """
    from robotrials.suites.checks import check_before_training

    if config.seed is None:
        raise ConfigError("watch needs a seed: with --seed=null every checkpoint would draw other episodes")
    check_before_training(config)


def config_for(config: RunConfig, checkpoint: TrainedCheckpoint, output_dir: Path) -> RunConfig:
    """The run of one checkpoint. Seed and tasks are those of ``config``, so that all play the same episodes."""
    policy = replace(config.policy, path=str(checkpoint.policy))
    return replace(config, policy=policy, output_dir=run_folder(output_dir, checkpoint))


def arrivals(
    training: TrainingFolder, poll_s: float, once: bool, sleep: Callable[[float], None] = time.sleep
) -> Iterator[TrainedCheckpoint]:
    """Each whole checkpoint once, by step, waiting for the next until the training has written its last.

    ``once`` ends with those that are there. A training that is resumed with more steps begins a new wait.
    """
    seen: set[int] = set()
    while True:
        fresh = [checkpoint for checkpoint in training.checkpoints() if checkpoint.step not in seen]
        if fresh:
            seen.add(fresh[0].step)
            yield fresh[0]
            continue
        planned = training.planned_steps
        if once or (planned is not None and seen and max(seen) >= planned):
            return
        sleep(poll_s)


def read_curve(output_dir: Path) -> list[Point]:
    """The results of every checkpoint's run in ``output_dir``, by step; runs without results are left out."""
    points = []
    for folder in output_dir.iterdir() if output_dir.is_dir() else ():
        if not folder.name.isdigit():
            continue
        try:
            info = json.loads((folder / "eval_info.json").read_text(encoding="utf-8"))
            report = f"{folder.name}/report.html" if (folder / "report.html").is_file() else None
            points.append(_point(int(folder.name), info, report))
        except (OSError, ValueError, KeyError):
            continue
    return sorted(points, key=lambda point: point.step)


def write_curve(output_dir: Path, title: str, goes_on: bool = False) -> list[Point]:
    """Write curve.json, index.html and, where matplotlib is installed, curve.png, from all runs in ``output_dir``. The
    page renews itself while the watch ``goes_on``.

    Raises:
        LedgerError: they cannot be written.
    """
    from importlib.util import find_spec

    from robotrials.suites.curve import page, picture

    points = read_curve(output_dir)
    try:
        write_atomically(output_dir / CURVE, strict_json([_plain(point) for point in points]).encode())
        write_atomically(output_dir / PAGE, page(title, points, goes_on).encode())
        if points and find_spec("matplotlib") is not None:
            write_atomically(output_dir / PICTURE, picture(title, points))
    except OSError as error:
        raise LedgerError(f"{output_dir} cannot be written: {error}") from error
    return points


def _point(step: int, info: dict[str, Any], report: str | None) -> Point:
    overall = info["overall"]
    groups = {}
    for name, figures in info["per_group"].items():
        if figures["pc_success"] is not None and figures["pc_success_ci95"]:
            low, high = figures["pc_success_ci95"]
            groups[name] = (figures["pc_success"] / 100, low / 100, high / 100)
    interval = overall["pc_success_ci95"]
    return Point(
        step=step,
        rate=None if overall["pc_success"] is None else overall["pc_success"] / 100,
        interval=None if not interval else (interval[0] / 100, interval[1] / 100),
        finished=overall["n_episodes"],
        errors=overall["n_errors"],
        planned=overall["n_planned"],
        groups=groups,
        report=report,
    )


def _plain(point: Point) -> dict[str, Any]:
    groups = {name: {"rate": rate, "ci95": [low, high]} for name, (rate, low, high) in point.groups.items()}
    return {
        "step": point.step,
        "rate": point.rate,
        "ci95": point.interval,
        "n_episodes": point.finished,
        "n_errors": point.errors,
        "n_planned": point.planned,
        "groups": groups,
    }
