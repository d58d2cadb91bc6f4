"""The same episodes without an engine: build, reset, expert, step, nothing else. bench/engine.py divides by it.

Prints one JSON object: CPU seconds of the loop alone (imports and building are told apart), steps, successes.
"""

from __future__ import annotations

import argparse
import json
import time

from robotrials.benchmarks.adapters.metaworld.benchmark import MetaWorld
from robotrials.plan.config import EnvChoice
from robotrials.plan.options import build
from robotrials.plan.plan import build_plan


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--episodes", type=int, required=True, help="per task")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1, help="play every PARTS-th episode, from PART on")
    arguments = parser.parse_args()

    choice = EnvChoice("metaworld", {"task": arguments.tasks})
    benchmark = MetaWorld(build(MetaWorld.Config, choice.options, "--env."))
    plan = build_plan(benchmark.tasks(), arguments.episodes, 1000)
    figures = {"build_cpu_s": 0.0, "loop_cpu_s": 0.0, "loop_wall_s": 0.0, "steps": 0, "episodes": 0, "successes": 0}
    for task in plan.tasks:
        began = time.process_time()
        env = benchmark.make(task)
        figures["build_cpu_s"] += time.process_time() - began
        began, began_wall = time.process_time(), time.monotonic()
        for episode in plan:
            if episode.task != task.name or episode.index % arguments.parts != arguments.part:
                continue
            env.reset(episode)
            expert, steps, ended, success = env.expert(), 0, False, False
            while not ended:
                _, terminated, truncated, success = env.step(expert.act())  # type: ignore[assignment]
                steps += 1
                ended = terminated or truncated or steps >= episode.max_steps
            figures["steps"] += steps
            figures["episodes"] += 1
            figures["successes"] += bool(success)
        figures["loop_cpu_s"] += time.process_time() - began
        figures["loop_wall_s"] += time.monotonic() - began_wall
        env.close()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
