"""Run directories as ``robotrials eval`` leaves them, made without a simulator, for tests of what reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import build_plan
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.results.export.eval_info import write_exports
from robotrials.results.ledger import Ledger
from robotrials.results.record import EndReason, EpisodeRecord, Timings
from robotrials.results.rundir import RunDirectory, video_name
from robotrials.results.summary import summarize
from robotrials.results.video import EpisodeVideo

TASKS = (("easy", "push"), ("easy", "reach"), ("hard", "hammer"))
Outcome = Callable[[EpisodeSpec], "str | EndReason | None"]
"""What an episode comes to; a string that is no end reason is the message of an error, None: not run."""


def mostly(episode: EpisodeSpec) -> EndReason:
    """push always, reach never, hammer every second time."""
    good = {"push": True, "reach": False}.get(episode.task, episode.index % 2 == 0)
    return EndReason.SUCCESS if good else EndReason.TIME_LIMIT


def make_run(
    path: Path,
    outcome: Outcome = mostly,
    tasks: Sequence[tuple[str, str]] = TASKS,
    n: int = 4,
    policy: str = "act",
    env: str = "metaworld",
    seed: int = 1000,
    video: bytes | None = None,
    instruction: str = "do {}",
    revision: str = "sha256:0",
) -> Path:
    """A run directory; with ``video`` every episode that was run has that file as its video."""
    specs = [
        TaskSpec(suite, name, i, instruction.format(name), 500, 80.0, {}, ActionSpec(1, (-1.0,), (1.0,)))
        for i, (suite, name) in enumerate(tasks)
    ]
    plan = build_plan(specs, n, seed)
    records = [record for episode in plan if (record := _record(episode, outcome(episode), video)) is not None]
    described = _described(specs, len(plan), n, seed, policy, env, revision)
    with RunDirectory(path) as run:
        run.write_run_json(described)
        for record in records:
            if record.video and video:
                file = path / record.video
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(video)
        with Ledger.create(run.ledger_path, described["identity"]) as ledger:
            ledger.record([(record, True) for record in records])
            write_exports(run, plan, ledger, summarize(ledger, plan), described, eval_s=90.0)
    return path


def _record(episode: EpisodeSpec, came_to: str | EndReason | None, video: bytes | None) -> EpisodeRecord | None:
    if came_to is None:
        return None
    ends = {end.value for end in EndReason}
    end = EndReason(came_to) if came_to in ends else EndReason.ERROR
    erred = end is EndReason.ERROR
    return EpisodeRecord(
        episode=episode.id,
        attempt=3 if erred else 1,
        worker="w0",
        end=end,
        success=None if erred else end is EndReason.SUCCESS,
        steps=20 + episode.index,
        reward_sum=None if erred else 1.5 * episode.index,
        reward_max=None if erred else 1.0,
        timings=Timings(reset=0.5, simulate=1.0, render=2.0, infer=0.25, wait=0.25, total=4.0),
        video=video_name(episode) if video else None,
        error=str(came_to) if erred else None,
    )


def _described(
    specs: Sequence[TaskSpec], n_planned: int, n: int, seed: int, policy: str, env: str, revision: str
) -> dict[str, Any]:
    return {
        "format": 1,
        "identity": {
            "robotrials": "0.1.0",
            "python": "3.11",
            "plan": "0" * 64,
            "benchmark": {"name": env, "options": {}, "packages": {"metaworld": "3.1.1", "mujoco": "3.3.0"}},
            "policy": {"type": policy, "revision": revision, "options": {}},
        },
        "config": {
            "policy": {"type": policy, "path": None, "options": {}, "python": None},
            "env": {"type": env, "options": {"task": ",".join(task.name for task in specs)}, "python": None},
            "eval": {"n_episodes": n, "batch_size": 2, "exact": True},
            "seed": seed,
            "output_dir": "/somewhere/else",
            "job_name": None,
            "rename_map": {},
            "allow_mixed": False,
        },
        "plan": {
            "hash": "0" * 64,
            "n_episodes": n_planned,
            "tasks": [
                {"suite": t.suite, "task": t.name, "instruction": t.instruction, "max_steps": t.max_steps, "id": t.id}
                for t in specs
            ],
        },
        "machine": {"host": "bench", "cores": 2},
        "policy": {"name": policy},
        "mixed": [],
        "sessions": [{"wall_s": 30.0}],
    }


def short_video(path: Path) -> bytes:
    """Three seconds of H.264: a bar that moves across a small picture."""
    video = EpisodeVideo(path, control_hz=10.0, record_fps=10.0)
    for step in range(30):
        frame = np.full((96, 128, 3), 40, np.uint8)
        frame[:, 4 * step : 4 * step + 8] = (240, 120, 40)
        video.add(step, frame)
    video.finish()
    return path.read_bytes()


def read_data(page: bytes) -> dict[str, Any]:
    """The data block of a report."""
    _, _, rest = page.partition(b'<script type="application/json" id="data">')
    content: dict[str, Any] = json.loads(rest.partition(b"</script>")[0])
    return content
