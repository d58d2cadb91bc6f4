"""What a worker's start costs over importing its simulator alone: CPU seconds until it has its policy and a scene.

    python bench/start_up.py

For each benchmark a fresh process imports the simulator as one would by hand, and another starts as a worker does: it
loads the scripted or random policy and imports the same. Medians of five. The last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys

from robotrials.machine.threads import thread_limits
from robotrials.rendering.gl import gl_environment

SIMULATORS = {"metaworld": "import metaworld", "pusht": "import gym_pusht.envs.pusht"}
WORKER = """
import robotrials.worker.worker
from robotrials.benchmarks.registry import make_benchmark
from robotrials.policies.registry import make_policy
from robotrials.plan.config import EnvChoice, PolicyChoice
make_benchmark(EnvChoice({name!r}, {{}})), make_policy(PolicyChoice({policy!r}))
{simulator}
"""


def cpu_seconds(code: str, runs: int = 5) -> float:
    environment = {**os.environ, **gl_environment(os.environ), **thread_limits(1), "SDL_VIDEODRIVER": "dummy"}
    times = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, env=environment, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(times)


def main() -> None:
    figures: dict[str, float] = {}
    for name, simulator in SIMULATORS.items():
        alone = cpu_seconds(simulator)
        policy = "expert" if name == "metaworld" else "random"
        worker = cpu_seconds(WORKER.format(name=name, policy=policy, simulator=simulator))
        figures[f"{name}_alone_s"] = round(alone, 3)
        figures[f"{name}_worker_s"] = round(worker, 3)
        figures[f"{name}_ratio"] = round(worker / alone, 3)
    for key, value in figures.items():
        print(f"{key:32} {value:>12}")
    print(json.dumps({"bench": "start_up", **figures}))


if __name__ == "__main__":
    main()
