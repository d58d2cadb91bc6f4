"""robosuite with camera observations, drawn at every step, against the adapter, which draws on demand; and its reset.

    robotrials bench exec robosuite python bench/robosuite_on_demand.py

Lift, two cameras of 256x256, random actions, a policy that looks at every tenth step: CPU milliseconds a step and the
memory of the process. The last line is one JSON object.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
from apart import Figures, measure, run

from robotrials.benchmarks.registry import make_benchmark
from robotrials.plan.config import EnvChoice
from robotrials.plan.plan import build_plan

CAMERAS = ["agentview", "robot0_eye_in_hand"]
RESETS = 5


def always() -> Figures:
    def make() -> Callable[[], object]:
        import robosuite

        env = robosuite.make(
            "Lift",
            robots="Panda",
            has_renderer=False,
            camera_names=CAMERAS,
            camera_widths=256,
            camera_heights=256,
            ignore_done=True,
            seed=1000,
        )
        env.reset()
        rng = np.random.default_rng(0)
        return lambda: env.step(rng.uniform(-1, 1, 7))

    return measure(make, 60)


def on_demand(every: int) -> Figures:
    """Looks at each ``every``-th step, 0: never; and the CPU seconds of a reset, its first look included."""
    benchmark = make_benchmark(EnvChoice("robosuite", {"task": "Lift"}))
    (task,) = benchmark.tasks()
    env = benchmark.make(task)
    episodes = build_plan([task], RESETS + 1, 1000).episodes

    def make() -> Callable[[], object]:
        env.reset(episodes[0])
        rng, played = np.random.default_rng(0), iter(range(10**6))

        def step() -> None:
            looks = every and next(played) % every == 0
            env.observe(task.images if looks else [])
            env.step(rng.uniform(-1, 1, 7))

        return step

    figures = measure(make, 200)
    began = time.process_time()
    for episode in episodes[1:]:
        env.reset(episode)
        env.observe(task.images if every else [])
    figures["cpu_s_per_reset"] = round((time.process_time() - began) / RESETS, 2)
    env.close()
    return figures


def main() -> None:
    found = run(
        "robosuite Lift, 2 x 256x256",
        {
            "robosuite": always,
            "a look every 10 steps": lambda: on_demand(10),
            "never": lambda: on_demand(0),
        },
    )
    less = found["robosuite"]["cpu_ms_per_step"] / found["a look every 10 steps"]["cpu_ms_per_step"]
    for way in ("a look every 10 steps", "never"):
        print(f"a reset, {way:27} {found[way]['cpu_s_per_reset']:.2f} CPU s")
    print(json.dumps({"bench": "robosuite_on_demand", "times_less_cpu": round(less, 1), "ways": found}))


if __name__ == "__main__":
    main()
