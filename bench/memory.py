"""Memory over time: of the coordinator over 100,000 recorded episodes, of a worker over 500 in a real simulator.

    python bench/memory.py

The coordinator's ledger, tally and queue are fed directly, resident memory is read every 10,000 episodes. The worker's
part plays 500 Meta-World expert episodes of one task in one process, and 60 PushT ones with the image drawn at every
step. The last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import psutil

from robotrials.benchmarks.registry import make_benchmark
from robotrials.control.heartbeat import Heartbeat
from robotrials.engine.progress import Tally
from robotrials.engine.queue import EpisodeQueue
from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.plan import Plan, build_plan
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.policies.registry import make_policy
from robotrials.results.ledger import Ledger
from robotrials.results.record import EndReason, EpisodeRecord, Timings
from robotrials.worker.rollout import Rollout


def resident_mb() -> float:
    return float(psutil.Process(os.getpid()).memory_info().rss) / 2**20


def coordinator(n: int) -> list[float]:
    """Resident MB after each tenth of ``n`` episodes."""
    action = ActionSpec(4, (-1.0,) * 4, (1.0,) * 4)
    tasks = [TaskSpec("memory", f"task-{i}", i, "none", 500, 80.0, {}, action) for i in range(50)]
    plan: Plan = build_plan(tasks, n // 50, 1000)
    queue, tally, sizes = EpisodeQueue(plan), Tally(plan), []
    with tempfile.TemporaryDirectory() as folder, Ledger.create(Path(folder) / "ledger.sqlite", {}) as ledger:
        for count in range(1, len(plan) + 1):
            leased = queue.lease(f"w{count % 8}")
            assert leased is not None
            record = EpisodeRecord(
                leased.episode.id, 1, "w0", EndReason.SUCCESS, True, 90, 1.0, 1.0, 9, 9, Timings(total=1.0)
            )
            queue.finish(leased, 1.0)
            ledger.record([(record, True)])
            tally.add(record)
            if count % (n // 10) == 0:
                sizes.append(resident_mb())
    return sizes


def worker(env: str, task_name: str, policy_type: str, episodes: int, max_steps: int | None = None) -> list[float]:
    """Resident MB after each tenth of the episodes."""
    benchmark = make_benchmark(EnvChoice(env, {"task": task_name}))
    (task,) = benchmark.tasks()
    simulator = benchmark.make(task)
    rollout = Rollout(simulator, make_policy(PolicyChoice(policy_type)), task, {}, Heartbeat())
    sizes = []
    for episode in build_plan([task], episodes, 1000):
        rollout.run(episode, 1, "w0", None)
        for _ in range(20 if task.images and env == "pusht" else 0):
            simulator.observe(task.images)
        if (episode.index + 1) % (episodes // 10) == 0:
            sizes.append(resident_mb())
    simulator.close()
    return sizes


def main() -> None:
    began = time.monotonic()
    runs = {
        "coordinator_100000": coordinator(100_000),
        "worker_metaworld_500": worker("metaworld", "reach-v3", "expert", 500),
        "worker_pusht_60": worker("pusht", "PushT-v0", "random", 60),
    }
    figures: dict[str, object] = {}
    for name, sizes in runs.items():
        figures[f"{name}_mb"] = [round(size, 1) for size in sizes]
        figures[f"{name}_growth_mb"] = round(sizes[-1] - sizes[1], 2)
        print(f"{name:24} " + " ".join(f"{size:8.1f}" for size in sizes))
    print(f"took {time.monotonic() - began:.0f} s; growth is from the second tenth to the last")
    print(json.dumps({"bench": "memory", **figures}))


if __name__ == "__main__":
    main()
