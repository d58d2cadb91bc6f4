"""Episodes to play in the tests of benchmarks, and what they leave to compare."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.plan.config import EnvChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec

IMAGE = "observation.image"

Policy = Callable[[Env, np.random.Generator], np.ndarray]


def make(env_type: str, **options: Any) -> tuple[TaskSpec, Env]:
    """The first task that ``options`` select, and its simulator."""
    benchmark = make_benchmark(EnvChoice(env_type, options))
    task = benchmark.tasks()[0]
    return task, benchmark.make(task)


def episode(task: TaskSpec, seed: int) -> EpisodeSpec:
    return EpisodeSpec(0, task.suite, task.name, 0, seed, None, task.max_steps)


def digest(
    task: TaskSpec, env: Env, seed: int, act: Policy, steps: int, pictures: tuple[int, ...] = (), camera: str = IMAGE
) -> str:
    """A hash of everything an episode shows: all states, rewards and flags, and the pictures before those steps."""
    env.reset(episode(task, seed))
    rng = np.random.default_rng(seed)
    sha = hashlib.sha256()
    for step in range(steps + 1):
        seen = env.observe([camera] if step in pictures else [])
        for key in sorted(seen):
            value = seen[key]
            sha.update(value.tobytes() if isinstance(value, np.ndarray) else value.encode())
        if step in pictures:
            sha.update(env.render().tobytes())
        if step < steps:
            sha.update(repr(env.step(act(env, rng))).encode())
    return sha.hexdigest()


def in_a_fresh_process(code: str) -> tuple[str, str]:
    """Standard output and standard error of ``code`` in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr
