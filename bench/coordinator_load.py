"""How many leases a second the coordinator gives, with simulated workers and a real ledger.

    python bench/coordinator_load.py [--workers 1000] [--episodes 40000] [--episode-s 0.45]

The coordinator runs in this process (one thread), all simulated workers in one other. Every episode must be in the
ledger exactly once. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import zmq

from robotrials.control.heartbeat import TOKEN_VARIABLE
from robotrials.control.messages import Job
from robotrials.engine.coordinator import Coordinator, LeaseOptions
from robotrials.engine.launchers.base import WorkerExit
from robotrials.engine.observer import SilentObserver
from robotrials.engine.outcomes import Outcomes
from robotrials.engine.progress import Tally
from robotrials.engine.queue import EpisodeQueue
from robotrials.engine.worker_pool import WorkerLayout, WorkerPool
from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan, build_plan
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.results.ledger import Ledger
from robotrials.wire.transport import PrivateEndpoint, bind_router, new_token

N_TASKS = 50


class SwarmLauncher:
    """All workers are one process of bench/swarm.py."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def start(self, name: str) -> None:
        pass

    def unplaced(self) -> tuple[()]:
        return ()

    def exits(self) -> list[WorkerExit]:
        if self._process.poll() is not None:
            raise SystemExit(f"the swarm ended with status {self._process.returncode}")
        return []

    def kill(self, name: str) -> None:
        self._process.kill()

    def close(self, grace_s: float) -> None:
        try:
            self._process.wait(timeout=grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()


def make_plan(n_episodes: int) -> Plan:
    action = ActionSpec(4, (-1.0,) * 4, (1.0,) * 4)
    tasks = [TaskSpec("load", f"task-{i}", i, "simulated", 500, 80.0, {}, action) for i in range(N_TASKS)]
    return build_plan(tasks, n_episodes // N_TASKS, 1000)


def run_load(n_workers: int, n_episodes: int, episode_s: float) -> dict[str, float]:
    """One run; returns its figures."""
    plan = make_plan(n_episodes)
    endpoint, token = PrivateEndpoint.create(), new_token()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "ledger.sqlite", {})
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        router = bind_router(context, endpoint.address)
        swarm = [sys.executable, str(Path(__file__).with_name("swarm.py")), f"--connect={endpoint.address}"]
        process = subprocess.Popen(
            [*swarm, f"--workers={n_workers}", f"--episode-s={episode_s}"], env={**os.environ, TOKEN_VARIABLE: token}
        )
        leased_at: list[float] = []

        def record_mode(episode: EpisodeSpec) -> str:
            """Films nothing; notes when the first lease is given."""
            if not leased_at:
                leased_at.append(time.monotonic())
            return "no"

        tally = Tally(plan)
        queue, observer = EpisodeQueue(plan), SilentObserver()
        coordinator = Coordinator(
            plan=plan,
            queue=queue,
            outcomes=Outcomes(queue, ledger, tally, observer),
            tally=tally,
            job=Job(EnvChoice("load"), PolicyChoice("none"), None, plan.tasks, {}, folder, 20.0, 1.0, 120.0),
            terms=LeaseOptions(record_mode, lambda episode: ""),
            workers=WorkerPool(SwarmLauncher(process), 120.0, WorkerLayout(n_workers)),
            router=router,
            token=token,
            observer=observer,
        )
        began, cpu = time.monotonic(), time.process_time()
        coordinator.run()
        wall, cpu = time.monotonic() - began, time.process_time() - cpu
        leasing = time.monotonic() - leased_at[0]
        ids = [record.episode for record in ledger.accepted()]
        assert ids == list(range(len(plan))), "an episode is missing or there twice"
        ledger.close()
        context.destroy(linger=0)
    endpoint.remove()
    return {
        "workers": n_workers,
        "episodes": len(plan),
        "episode_s": episode_s,
        "wall_s": round(wall, 2),
        "leases_per_s": round(len(plan) / leasing, 1),
        "coordinator_cpu_us_per_episode": round(cpu / len(plan) * 1e6, 1),
        "max_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--episodes", type=int, default=40_000)
    parser.add_argument("--episode-s", type=float, default=0.45, help="0.45 s on 1,000 workers asks for 2,222 leases/s")
    parser.add_argument("--tracemalloc", action="store_true", help="also print the peak of Python's own allocations")
    arguments = parser.parse_args()
    if arguments.tracemalloc:
        tracemalloc.start()
    figures = run_load(arguments.workers, arguments.episodes, arguments.episode_s)
    if arguments.tracemalloc:
        figures["python_peak_mb"] = round(tracemalloc.get_traced_memory()[1] / 2**20, 1)
    for name, value in figures.items():
        print(f"{name:32} {value:>12}")
    print(json.dumps({"bench": "coordinator_load", **figures}))


if __name__ == "__main__":
    main()
