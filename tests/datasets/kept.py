"""Spools of made-up episodes, whose every frame and number says which step it is."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np

from robotrials.datasets.lerobot_v3 import KeptEpisode
from robotrials.datasets.spool import EpisodeSpool, spool_folder
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, Feature, TaskSpec
from robotrials.results.record import EndReason, EpisodeRecord

CAMERA = "observation.image"


def make_task(name: str = "lift", side: int = 16, hz: float = 20.0) -> TaskSpec:
    return TaskSpec(
        suite="toys",
        name=name,
        id=0,
        instruction=f"Please {name}",
        max_steps=50,
        control_hz=hz,
        observations={CAMERA: Feature((side, side, 3), "uint8"), "observation.state": Feature((2,))},
        action=ActionSpec(3, (-1.0,) * 3, (1.0,) * 3),
    )


def shade(episode: int, step: int) -> int:
    """Brightness of a step's frame, far enough from its neighbours' to be told apart after encoding."""
    return 20 + (episode * 37 + step * 10) % 220


def frame(episode: int, step: int, side: int = 16) -> np.ndarray:
    return np.full((side, side, 3), shade(episode, step), np.uint8)


def state(episode: int, step: int) -> np.ndarray:
    return np.array([episode, step / 8], np.float32)


def keep(
    run_dir: Path, task: TaskSpec, episode: int, steps: int, success: bool = True, cameras: tuple[str, ...] = (CAMERA,)
) -> KeptEpisode:
    """Keep an episode of ``steps`` steps as a worker does; its action is (step, 0, 1), its reward -step."""
    folder = spool_folder(run_dir, episode, 1)
    spool = EpisodeSpool(folder, task, cameras)
    side = task.observations[CAMERA].shape[0]
    for step in range(steps):
        seen = {CAMERA: frame(episode, step, side), "observation.state": state(episode, step), "task": "?"}
        spool.add(seen, np.array([step, 0, 1.0]), -float(step), success and step == steps - 1)
    spool.finish()
    end = EndReason.SUCCESS if success else EndReason.TIME_LIMIT
    record = EpisodeRecord(episode, 1, "w0", end, success, steps, -1.0, 0.0)
    return KeptEpisode(EpisodeSpec(episode, "toys", task.name, episode, 1000 + episode, None, 50), task, record, folder)


def decode(path: Path) -> list[tuple[float, np.ndarray]]:
    """Time in seconds and (H, W, 3) picture of every frame."""
    with av.open(str(path)) as container:
        return [(float(f.pts * f.time_base), f.to_ndarray(format="rgb24")) for f in container.decode(video=0)]
