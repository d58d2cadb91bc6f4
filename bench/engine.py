"""The engine against its bound, on Meta-World's scripted experts.

    python bench/engine.py [--episodes 400] [--workers 2]

The same episodes are played twice in one run: bare (one process a core, a loop of reset, expert and step) and by
`robotrials eval`. The bound is the bare loops' CPU seconds over the number of workers; the ratio is wall time over it,
once with start-up, and once from the moment all workers stand. The engine's own cost is measured on an environment
that does nothing. The last line is one JSON object.
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
from pathlib import Path

from robotrials.control.heartbeat import Heartbeat
from robotrials.engine.observer import SilentObserver
from robotrials.machine.threads import available_cores, thread_limits
from robotrials.plan.config import EnvChoice, EvalSettings, PolicyChoice, RunConfig
from robotrials.plan.plan import build_plan
from robotrials.rendering.gl import gl_environment
from robotrials.results.ledger import Ledger
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare
from robotrials.worker.rollout import Rollout

HERE = Path(__file__).parent
TASKS = "reach-v3,push-v3,pick-place-v3,door-open-v3,drawer-open-v3"


def bare(tasks: str, episodes: int, parts: int) -> dict[str, float]:
    """Play every episode in ``parts`` bare processes at once; their summed figures."""
    command = [sys.executable, str(HERE / "bare.py"), f"--tasks={tasks}", f"--episodes={episodes}", f"--parts={parts}"]
    environment = {**os.environ, **gl_environment(os.environ), **thread_limits(1)}
    running = [
        subprocess.Popen([*command, f"--part={part}"], stdout=subprocess.PIPE, env=environment) for part in range(parts)
    ]
    outputs = [json.loads(process.communicate()[0]) for process in running]
    return {key: sum(output[key] for output in outputs) for key in outputs[0]}


def engine(tasks: str, episodes: int, workers: int) -> dict[str, float]:
    """Evaluate the same episodes by the engine, in a process of its own so that its start-up counts in full."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        command = [sys.executable, "-m", "robotrials", "eval", "--policy.type=expert", "--env.type=metaworld"]
        command += [f"--env.task={tasks}", f"--eval.n_episodes={episodes}", f"--eval.batch_size={workers}"]
        command += ["--eval.record=none", f"--output_dir={directory}"]
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        began, began_unix = time.monotonic(), time.time()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wall = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
            records = list(ledger.accepted())
    first: dict[str, float] = {}
    for record in records:
        first[record.worker] = min(first.get(record.worker, record.started_at), record.started_at)
    ready = max(first.values())
    last = max(record.started_at + record.timings.total for record in records)
    # What was played before all workers stood is not part of the second ratio's work.
    early = sum(record.timings.total for record in records if record.started_at < ready)
    return {
        "wall_s": wall,
        "start_up_s": ready - began_unix,
        "standing_s": last - ready,
        "early_s": early,
        "cpu_s": after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime,
        "steps": sum(record.steps for record in records),
        "successes": sum(bool(record.success) for record in records),
    }


def cost_per_step(chunk: int, steps: int = 20_000) -> float:
    """Microseconds the rollout adds to a step that costs nothing."""
    from null_benchmark import NullBenchmark, NullConfig, NullPolicy

    benchmark = NullBenchmark(NullConfig(steps=steps))
    (task,) = benchmark.tasks()
    rollout = Rollout(benchmark.make(task), NullPolicy(chunk), task, {}, Heartbeat())
    best = float("inf")
    for episode in build_plan([task], 5, 0):
        began = time.process_time()
        rollout.run(episode, 1, "w0", None)
        best = min(best, time.process_time() - began)
    return best / steps * 1e6


def cost_per_episode(episodes: int = 4000) -> float:
    """Microseconds of wall time between two one-step episodes of one worker: lease, run, report, commit."""
    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig(
            PolicyChoice(f"{HERE / 'null_benchmark.py'}:NullPolicy"),
            EnvChoice(f"{HERE / 'null_benchmark.py'}:NullBenchmark"),
            EvalSettings(n_episodes=episodes, batch_size=1, record="none"),
            output_dir=Path(folder) / "run",
        )
        execute(prepare(config), SilentObserver())
        with Ledger.open(Path(folder) / "run" / "ledger.sqlite", read_only=True) as ledger:
            starts = sorted(record.started_at for record in ledger.accepted())
    return (starts[-1] - starts[0]) / (len(starts) - 1) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=400, help="per task; there are five tasks")
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--tasks", default=TASKS)
    arguments = parser.parse_args()

    bound_figures = bare(arguments.tasks, arguments.episodes, arguments.workers)
    bound = bound_figures["loop_cpu_s"] / arguments.workers
    ours = engine(arguments.tasks, arguments.episodes, arguments.workers)
    n = int(bound_figures["episodes"])
    assert (ours["steps"], ours["successes"]) == (bound_figures["steps"], bound_figures["successes"]), (
        "engine and bare loop disagree"
    )
    played = bound * (1 - ours["early_s"] / (bound * arguments.workers))
    figures = {
        "episodes": n,
        "steps": int(ours["steps"]),
        "successes": int(ours["successes"]),
        "workers": arguments.workers,
        "bound_s": round(bound, 2),
        "bare_wall_over_bound": round(bound_figures["loop_wall_s"] / bound_figures["loop_cpu_s"], 3),
        "wall_s": round(ours["wall_s"], 2),
        "ratio_with_start_up": round(ours["wall_s"] / bound, 3),
        "start_up_s": round(ours["start_up_s"], 2),
        "ratio_standing": round(ours["standing_s"] / played, 3),
        "cpu_s": round(ours["cpu_s"], 2),
        "engine_us_per_step_chunk_1": round(cost_per_step(1), 2),
        "engine_us_per_step_chunk_10": round(cost_per_step(10), 2),
        "engine_us_per_episode": round(cost_per_episode(), 1),
    }
    for name, value in figures.items():
        print(f"{name:32} {value:>12}")
    print(json.dumps({"bench": "engine", **figures}))


if __name__ == "__main__":
    main()
