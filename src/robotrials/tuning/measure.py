"""Measures a prepared run: the policy in a process of its own on batches, then workers that play with it.

As many workers play at once as there are cores that the policy leaves free: what they take from each other is measured
with them. Nothing is written into the run's directory.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

from robotrials.control.heartbeat import TOKEN_VARIABLE
from robotrials.engine.launchers.local import LocalLauncher
from robotrials.environments import folders
from robotrials.errors import ConfigError
from robotrials.machine.memory import available_memory
from robotrials.machine.threads import available_cores, thread_limits
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan
from robotrials.policies import registry as policies
from robotrials.rendering.gl import Rendering, choose_rendering, gl_environment
from robotrials.run.assembly import slot_of
from robotrials.run.prepare import PreparedRun
from robotrials.run.recording import RecordRule
from robotrials.tuning.costs import EpisodeCost, MeasuredCosts, ServerCost, by_task, cost_of
from robotrials.tuning.protocol import GO, Played, ProbePolicy, ProbeWorker, told, write_task
from robotrials.wire.envelope import Message
from robotrials.wire.transport import new_token

Say = Callable[[str], None]

_HERE = ("local", "external")
"""Runtimes whose workers are such processes as are measured."""
_POLICY_SHARE = 0.35
"""Of the time given, for batches; the rest is played."""
_LARGEST_BATCH = 64
_TASKS_A_PROBE = 3
_EPISODES_A_TASK = 40
_START_LIMIT_S = 600.0
_POLL_S = 0.02


def measure(prepared: PreparedRun, seconds: float, say: Say, coordinator_s: float = 0.0) -> MeasuredCosts:
    """Measure for about ``seconds``, besides starting and loading. Takes the machine for itself. ``coordinator_s`` is
    what planning took, as it will take again.

    Raises:
        ConfigError: workers in containers, or a probe that cannot start or play; the message holds what it said last.
    """
    runtime = prepared.config.eval.runtime
    if runtime not in _HERE:
        raise ConfigError(
            f"robotrials tune measures processes of this machine, not --eval.runtime={runtime}: leave it out"
        )
    with _Probes(prepared) as probes:
        server = probes.time_policy(seconds * _POLICY_SHARE, say) if prepared.n_servers else None
        cores = available_cores()
        count = max(1, cores - (0 if server is None or server.own_device else 1))
        workers = probes.play(prepared.rendering, count, seconds * (1 - _POLICY_SHARE if server else 1), say)
        costs = _costs(prepared.plan, workers.played, served=server is not None)
        drawn = _compare_rendering(prepared, probes, workers, seconds, say)
    gpus = _gpus()
    return MeasuredCosts(
        cores=cores,
        memory=available_memory(),
        gpus=max(1, len(gpus)),
        gpu_memory=sum(gpus) if gpus else None,
        costs=costs,
        start_s=workers.start_s,
        build_s=fmean(played.build_s for played in workers.played),
        coordinator_s=coordinator_s,
        worker_memory=workers.memory,
        server=server,
        elsewhere=policies.is_elsewhere(prepared.config.policy),
        worker_gpu_memory=workers.gpu_memory,
        rendering=drawn,
    )


@dataclass(frozen=True)
class WorkersSeen:
    """``start_s``: from starting all of them until the last can play."""

    played: tuple[Played, ...]
    start_s: float
    memory: float
    gpu_memory: float | None


class _Probes:
    """Starts probes and hears what they tell; none outlives the block."""

    def __init__(self, prepared: PreparedRun) -> None:
        self._prepared = prepared
        self._folder = Path(tempfile.mkdtemp(prefix="robotrials-tune-"))
        self._environment = {**os.environ, **gl_environment(os.environ), **thread_limits(1)}
        self._environment.pop(TOKEN_VARIABLE, None)
        self._token = new_token()
        self._address: str | None = None
        self._server: LocalLauncher | None = None

    def __enter__(self) -> _Probes:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._server is not None:
            self._server.close(grace_s=0.0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def time_policy(self, seconds: float, say: Say) -> ServerCost:
        """Start the policy server and time its passes; it goes on serving."""
        prepared, config = self._prepared, self._prepared.config
        task = prepared.plan.tasks[0]
        say("the policy alone: loading it, then passes of 1, 2, 4, ... rows")
        self._address = f"unix://{self._folder}/policy"
        order = ProbePolicy(
            policy=prepared.policy,
            exact=config.eval.exact,
            task=task,
            episodes=prepared.plan.episodes[:_LARGEST_BATCH],
            rename_map=config.rename_map,
            largest=_LARGEST_BATCH,
            seconds=seconds,
            listen=self._address,
            token=self._token,
        )
        launcher = LocalLauncher(
            "robotrials.tuning.policy_probe", str(self._folder), self._folder, self._environment, config.policy.python
        )
        self._server = launcher
        self._order("s0", order)
        began = time.time()
        launcher.start("s0")
        self._hear(launcher, ["s0"], "serving", _START_LIMIT_S + 3 * seconds)
        facts = {entry["event"]: entry for entry in told(self._folder, "s0")}
        timed = facts["timed"]
        return ServerCost(
            load_s=facts["loaded"]["at"] - began,
            infer={int(size): taken for size, taken in timed["infer"].items()},
            other={int(size): taken for size, taken in timed["other"].items()},
            max_batch=timed["max_batch"],
            own_device=timed["own_device"],
            memory=timed["memory"],
            gpu_memory=_gpu_memory_of(launcher.pids()) if timed["own_device"] else None,
        )

    def play(self, rendering: Rendering | None, count: int, seconds: float, say: Say, prefix: str = "w") -> WorkersSeen:
        """``count`` workers start, play for ``seconds``, and end."""
        prepared, config = self._prepared, self._prepared.config
        say(f"{count} worker{'s' if count > 1 else ''}: starting, then playing for {seconds:.0f} s")
        python = config.env.python
        environment = {
            **self._environment,
            **folders.variables(prepared.benchmark.installation, python, self._environment),
        }
        launcher = LocalLauncher(
            "robotrials.tuning.worker_probe",
            str(self._folder),
            self._folder,
            environment,
            python,
            variables=lambda name: rendering.of_worker(slot_of(name)) if rendering else {},
        )
        names = [f"{prefix}{number}" for number in range(count)]
        filmed = any(RecordRule.parse(config.eval.record).mode(episode) != "no" for episode in prepared.plan)
        go = self._folder / GO
        go.unlink(missing_ok=True)
        began = time.time()
        with contextlib.closing(_Closing(launcher)):
            for number, name in enumerate(names):
                episodes = _sample(prepared.plan, number, count)
                self._order(
                    name,
                    ProbeWorker(
                        env=config.env,
                        policy=prepared.policy,
                        server=self._address,
                        token=self._token,
                        tasks=tuple({e.task: prepared.plan.task_of(e) for e in episodes}.values()),
                        episodes=episodes,
                        rename_map=config.rename_map,
                        record_fps=config.eval.record_fps,
                        filmed=filmed,
                        seconds=seconds,
                    ),
                )
                launcher.start(name)
            self._hear(launcher, names, "ready", _START_LIMIT_S)
            ready = max(_facts(self._folder, name, "ready")[0]["at"] for name in names)
            go.touch()
            self._hear(launcher, names, "played", _START_LIMIT_S + 20 * seconds)
            gpu_memory = _gpu_memory_of(launcher.pids()) if rendering and rendering.device == "gpu" else None
            self._hear(launcher, names, "end", _START_LIMIT_S + 20 * seconds)
        keys = [field.name for field in fields(Played)]
        entries = [entry for name in names for entry in _facts(self._folder, name, "played")]
        return WorkersSeen(
            tuple(Played(**{key: entry[key] for key in keys}) for entry in entries),
            ready - began,
            max(_facts(self._folder, name, "end")[0]["memory"] for name in names),
            gpu_memory / count if gpu_memory is not None else None,
        )

    def _order(self, name: str, order: Message) -> None:
        write_task(self._folder, name, order)

    def _hear(self, launcher: LocalLauncher, names: Sequence[str], event: str, limit_s: float) -> None:
        """Wait until each of ``names`` has told ``event``."""
        deadline = time.monotonic() + limit_s
        waits = set(names)
        while waits:
            ended = {gone.name: gone for gone in launcher.exits()}
            for name in list(waits):
                for refused in _facts(self._folder, name, "refused"):
                    raise ConfigError(refused["reason"])
                if _facts(self._folder, name, event):
                    waits.discard(name)
                elif name in ended:
                    gone = ended[name]
                    raise ConfigError(f"a process to measure with ended ({gone.how}):\n{gone.tail.rstrip()}")
            if time.monotonic() > deadline:
                raise ConfigError(f"measuring hangs: no {event} from {', '.join(sorted(waits))} in {limit_s:.0f} s")
            time.sleep(_POLL_S)


class _Closing:
    def __init__(self, launcher: LocalLauncher) -> None:
        self.close = lambda: launcher.close(grace_s=0.0)


def _facts(folder: Path, name: str, event: str) -> list[dict[str, Any]]:
    return [entry for entry in told(folder, name) if entry["event"] == event]


def _sample(plan: Plan, number: int, count: int) -> tuple[EpisodeSpec, ...]:
    """What probe ``number`` of ``count`` plays: some tasks, spread over the plan, and of each its own episodes."""
    tasks = list(plan.tasks)
    wanted = min(_TASKS_A_PROBE, -(-len(tasks) // count)) if len(tasks) > count else 1
    stride = len(tasks) / (wanted * count)
    chosen = {tasks[int((number + count * i) * stride) % len(tasks)].key for i in range(wanted)}
    found: dict[tuple[str, str], list[EpisodeSpec]] = {}
    for episode in plan:
        key = (episode.suite, episode.task)
        if key in chosen and len(found.setdefault(key, [])) < _EPISODES_A_TASK * count:
            found[key].append(episode)
    return tuple(episode for own in found.values() for episode in (own[number::count] or own))


def _costs(plan: Plan, played: Sequence[Played], served: bool) -> dict[str, EpisodeCost]:
    limits = {task.name: task.max_steps for task in plan.tasks}
    return {name: cost_of(own, limits[name], served) for name, own in by_task(played).items()}


def _compare_rendering(
    prepared: PreparedRun, probes: _Probes, workers: WorkersSeen, seconds: float, say: Say
) -> Mapping[str, float]:
    """Seconds a look by device, where a GPU draws and the processor could."""
    rendering = prepared.rendering
    if rendering is None or rendering.device != "gpu" or not any(played.render_s for played in workers.played):
        return {}
    try:
        software = choose_rendering("cpu", os.environ)
    except ConfigError:
        return {}
    beside = probes.play(software, max(1, available_cores()), seconds * 0.2, say, prefix="c")
    return {"gpu": _look_s(workers.played), "cpu": _look_s(beside.played)}


def _look_s(played: Sequence[Played]) -> float:
    return sum(one.render_s for one in played) / sum(one.looks for one in played)


def _gpus() -> list[float]:
    """Free bytes of each of NVIDIA's GPUs that this process may use."""
    rows = _ask_nvidia("--query-gpu=memory.free")
    return [float(row) * 2**20 for row in rows if row.isdigit()]


def _gpu_memory_of(pids: Sequence[int]) -> float | None:
    """Bytes that these processes hold on GPUs; None where the driver does not say."""
    total, known = 0.0, False
    for row in _ask_nvidia("--query-compute-apps=pid,used_memory"):
        pid, _, used = row.partition(",")
        if pid.strip().isdigit() and int(pid) in pids and used.strip().isdigit():
            total, known = total + float(used) * 2**20, True
    return total if known else None


def _ask_nvidia(query: str) -> Iterator[str]:
    if shutil.which("nvidia-smi") is None:
        return
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    yield from (line.strip() for line in done.stdout.splitlines())
