"""LIBERO: what rendering on demand and reusing the simulator are worth, in CPU seconds of one process.

    python bench/libero.py [--steps 30]

Before: LIBERO's own wrapper as LeRobot 0.6.1 runs it, which compiles the model for every episode and renders both
cameras at every step. After: robotrials' environment, for a policy that looks at every tenth step.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from robotrials.benchmarks.base import Benchmark
from robotrials.benchmarks.registry import make_benchmark
from robotrials.plan.config import EnvChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec

# Else `import libero` finds this very file.
sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]

SIZE = 256
CHUNK = 10
NO_OP = [0, 0, 0, 0, 0, 0, -1]


def measured(which: str, steps: int) -> dict[str, float]:
    """``before`` or ``after`` in a process of its own: CPU seconds, and its peak memory in MB."""
    options = {"task": "libero_spatial", "task_ids": "0", "observation_width": SIZE, "observation_height": SIZE}
    benchmark = make_benchmark(EnvChoice("libero", options))
    task = benchmark.tasks()[0]
    played = np.random.default_rng(0).uniform(-1.0, 1.0, (steps, 7)).astype(np.float32)
    clock = time.process_time
    start = clock()
    reset, play, close, look = (_ours if which == "after" else _original)(benchmark, task, played)
    reset(0)
    look()
    first = clock() - start
    start = clock()
    for index in (1, 2, 3):
        reset(index)
    resets = (clock() - start) / 3
    start = clock()
    play()
    chunked = clock() - start
    close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"first_s": first, "reset_s": resets, "step_s": chunked / steps, "peak_mb": peak}


Scene = tuple[Callable[[int], None], Callable[[], None], Callable[[], None], Callable[[], object]]
"""How to reset, play, close and look."""


def _ours(benchmark: Benchmark, task: TaskSpec, played: np.ndarray) -> Scene:
    env = benchmark.make(task)

    def reset(index: int) -> None:
        env.reset(EpisodeSpec(0, task.suite, task.name, index, 1000 + index, index, task.max_steps))

    def play() -> None:
        for step, action in enumerate(played):
            if step % CHUNK == 0:
                env.observe(task.images)
            env.step(action)

    return reset, play, env.close, lambda: env.observe(task.images)


def _original(benchmark: Benchmark, task: TaskSpec, played: np.ndarray) -> Scene:
    """LIBERO's own environment, which draws at every step."""
    from libero.libero import get_libero_path
    from libero.libero.envs import OffScreenRenderEnv

    from robotrials.benchmarks.adapters.libero.files import load_states

    stem = task.extra["file"]
    states = load_states(Path(get_libero_path("init_states")) / task.suite / f"{stem}.pruned_init")
    path = Path(get_libero_path("bddl_files")) / task.suite / f"{stem}.bddl"
    env = OffScreenRenderEnv(bddl_file_name=str(path), camera_heights=SIZE, camera_widths=SIZE)
    env.reset()

    def reset(index: int) -> None:
        env.seed(1000 + index)
        env.reset()
        env.set_init_state(states[index])
        for _ in range(10):
            env.step(NO_OP)

    def play() -> None:
        for action in played:
            env.step(action)

    return reset, play, env.close, lambda: None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--only", choices=("before", "after"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        print(json.dumps(measured(asked.only, asked.steps)))
        return
    threads = {"OMP_NUM_THREADS": "1", "LP_NUM_THREADS": "1", "MUJOCO_GL": os.environ.get("MUJOCO_GL", "egl")}
    figures = {}
    for which in ("before", "after"):
        command = [sys.executable, __file__, "--only", which, "--steps", str(asked.steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **threads})
        figures[which] = json.loads(done.stdout.splitlines()[-1])
    before, after = figures["before"], figures["after"]
    print(f"libero_spatial, two cameras of {SIZE}x{SIZE}, chunk {CHUNK}, {asked.steps} steps; CPU seconds")
    print(f"{'':34}{'before':>10}{'after':>10}{'ratio':>8}")
    for key, words in (
        ("first_s", "to the first observation"),
        ("reset_s", "each further reset"),
        ("step_s", "a step, rendering included"),
        ("peak_mb", "peak memory, MB"),
    ):
        print(f"{words:34}{before[key]:10.3f}{after[key]:10.3f}{before[key] / after[key]:8.1f}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
