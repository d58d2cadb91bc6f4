"""A worker that plays for a while and tells what everything took: ``python -m robotrials.tuning.worker_probe``.

It plays through ``running.rollout``, as workers do, in the interpreter and with the variables that workers get.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from robotrials.benchmarks.base import Env
from robotrials.benchmarks.registry import make_benchmark
from robotrials.benchmarks.scoring import scoring_of
from robotrials.control.heartbeat import Heartbeat
from robotrials.errors import VideoError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy
from robotrials.policies.own_generators import own_generators
from robotrials.policies.registry import make_policy
from robotrials.policies.remote.client import ServedPolicy
from robotrials.results.record import EndReason
from robotrials.results.video import EpisodeVideo
from robotrials.tuning.probe import play_part
from robotrials.tuning.protocol import GO, Played, ProbeWorker, memory_bytes, tell
from robotrials.wire.envelope import Message
from robotrials.worker.rollout import Rollout

_WARM_STEPS = 4
"""Chunks are whole, so that a policy which plays ten actions a look is warmed up over ten steps or more."""


class WorkerProbe:
    """Plays what ``task`` says. Iterating gives what was played, one after the other."""

    def __init__(self, task: ProbeWorker, scratch: Path) -> None:
        self._task = task
        self._scratch = scratch
        self._benchmark = make_benchmark(task.env)
        for module in self._benchmark.modules:  # belongs to starting, not to building the first task
            importlib.import_module(module)
        self._policy: Policy = (
            own_generators(make_policy(task.policy))
            if task.server is None
            else ServedPolicy(task.server, task.token, scratch.name)
        )
        self._chunk = self._policy.spec().n_action_steps

    def play(self) -> Iterator[Played]:
        tasks = {task.key: task for task in self._task.tasks}
        keys = list(dict.fromkeys((episode.suite, episode.task) for episode in self._task.episodes))
        ends = time.monotonic()
        for key in keys:
            # What building took longer than its share is not taken from the tasks that follow.
            ends = max(ends, time.monotonic()) + self._task.seconds / len(keys)
            own = [episode for episode in self._task.episodes if (episode.suite, episode.task) == key]
            yield from self._play_task(tasks[key], own, ends)

    def _play_task(self, task: TaskSpec, episodes: list[EpisodeSpec], ends: float) -> Iterator[Played]:
        began = time.monotonic()
        env = self._benchmark.make(task)
        build_s = time.monotonic() - began
        try:
            warm = self._one(env, task, episodes[0], max(_WARM_STEPS, self._chunk + 1), False, build_s)
            pace = (warm.total_s - warm.reset_s) / max(1, warm.steps)
            # One that is filmed tells what filming takes only beside one that is not.
            count, least = 0, 2 if self._task.filmed else 1
            while count < least or time.monotonic() + warm.reset_s + pace * _WARM_STEPS < ends:
                room = int((ends - time.monotonic() - warm.reset_s) / pace)
                episode = episodes[count % len(episodes)]
                played = self._one(
                    env, task, episode, max(room, 2 * self._chunk + 1), self._task.filmed and count % 2 == 1, build_s
                )
                pace = (played.total_s - played.reset_s) / max(1, played.steps)
                count += 1
                yield played
        finally:
            env.close()

    def _one(self, env: Env, task: TaskSpec, episode: EpisodeSpec, room: int, filmed: bool, build_s: float) -> Played:
        limit = min(room, episode.max_steps)
        video = EpisodeVideo(self._scratch / "probe.mp4", task.control_hz, self._task.record_fps) if filmed else None
        scoring = scoring_of(self._benchmark)
        rollout = Rollout(env, self._policy, task, self._task.rename_map, Heartbeat(), scoring=scoring)
        cpu, queued = time.process_time(), _queued_s()
        record = rollout.run(replace(episode, max_steps=limit), 1, "probe", video)
        began = time.perf_counter()
        if video is not None:
            with contextlib.suppress(VideoError):  # without a film, there is nothing to measure of it
                video.finish().unlink()
        finishing_s = time.perf_counter() - began
        times = record.timings
        return Played(
            task=task.name,
            steps=record.steps,
            looks=record.looks,
            cut=record.end is EndReason.TIME_LIMIT and record.steps >= limit < episode.max_steps,
            filmed=filmed,
            reset_s=times.reset,
            simulate_s=times.simulate,
            render_s=times.render,
            infer_s=times.infer,
            wait_s=times.wait,
            film_s=times.film + finishing_s,
            total_s=times.total + finishing_s,
            cpu_s=time.process_time() - cpu,
            queued_s=max(0.0, _queued_s() - queued),
            build_s=build_s,
        )


def _queued_s() -> float:
    """Seconds that threads of this process were runnable without a core (Linux, schedstat; those that have ended are
    not counted). 0.0 where the kernel does not tell. Not of this thread alone: software GL draws in another."""
    total = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            total += int(path.read_text().split()[1])
    return total * 1e-9


def run(folder: Path, name: str, task: Message) -> None:
    assert isinstance(task, ProbeWorker)
    scratch = folder / name
    scratch.mkdir()
    probe = WorkerProbe(task, scratch)
    tell(folder, name, "ready", at=time.time())
    while not (folder / GO).exists():
        time.sleep(0.01)
    for played in probe.play():
        tell(folder, name, "played", **asdict(played))
    tell(folder, name, "end", memory=memory_bytes())


if __name__ == "__main__":
    play_part("robotrials.tuning.worker_probe", run)
