"""ALOHA as gym-aloha steps it, which draws three cameras at every step, against the adapter, which draws on demand.

    robotrials bench exec aloha python bench/aloha.py

Random actions; a policy that looks at every tenth step, and one that looks at every step; CPU milliseconds a step and
memory of the process. The last line is one JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
from apart import Figures, measure, run

from robotrials.benchmarks.registry import make_benchmark
from robotrials.plan.config import EnvChoice
from robotrials.plan.plan import build_plan

TASK = "AlohaTransferCube-v0"


def actions() -> Callable[[], np.ndarray]:
    rng = np.random.default_rng(0)
    return lambda: rng.uniform(-1, 1, 14).astype(np.float32)


def always() -> Figures:
    def make() -> Callable[[], object]:
        import gym_aloha  # noqa: F401  (registers the id)
        import gymnasium

        env = gymnasium.make(f"gym_aloha/{TASK}", obs_type="pixels_agent_pos", disable_env_checker=True)
        env.reset(seed=1000)
        action = actions()
        return lambda: env.unwrapped.step(action())

    return measure(make, 40)


def on_demand(every: int) -> Figures:
    """Looks at each ``every``-th step, 0: never."""

    def make() -> Callable[[], object]:
        benchmark = make_benchmark(EnvChoice("aloha", {"task": TASK}))
        (task,) = benchmark.tasks()
        env = benchmark.make(task)
        env.reset(build_plan([task], 1, 1000).episodes[0])
        action, played = actions(), iter(range(10**6))

        def step() -> None:
            looks = every and next(played) % every == 0
            env.observe(task.images if looks else [])
            env.step(action())

        return step

    return measure(make, 40 if every == 1 else 400)


def main() -> None:
    found = run(
        "ALOHA, 480x640",
        {
            "gym-aloha": always,
            "a look every step": lambda: on_demand(1),
            "a look every 10 steps": lambda: on_demand(10),
            "never": lambda: on_demand(0),
        },
    )
    less = found["gym-aloha"]["cpu_ms_per_step"] / found["a look every 10 steps"]["cpu_ms_per_step"]
    print(json.dumps({"bench": "aloha", "times_less_cpu": round(less, 1), "ways": found}))


if __name__ == "__main__":
    main()
