"""Rendering on demand against rendering every step: CPU seconds and outcomes, on Meta-World with a 480x480 camera.

    python bench/rendering.py [--steps 120] [--chunk 10]

One policy that reads the image and plays chunks of ten actions, the same episodes twice in one run: as the engine plays
them, and with every camera drawn after every step, as lock-step evaluators do. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robotrials.benchmarks.adapters.metaworld.benchmark import MetaWorld
from robotrials.benchmarks.base import Env, Observation, StepOutcome
from robotrials.control.heartbeat import Heartbeat
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import build_plan
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.results.record import EpisodeRecord
from robotrials.worker.rollout import Rollout


class Looker(Policy):
    """Looks at the image, then plays ``chunk`` random actions."""

    def __init__(self, chunk: int) -> None:
        self.chunk = chunk

    def spec(self) -> PolicySpec:
        return PolicySpec("looker", {"observation.image": None, "observation.state": None}, 4, self.chunk)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        return np.stack([session.rng.uniform(-1, 1, (self.chunk, 4)) for session in sessions])


class EveryStep(Env):
    """Draws every camera after every reset and step, whoever looks."""

    def __init__(self, env: Env, cameras: Sequence[str]) -> None:
        self._env, self._cameras = env, cameras

    def reset(self, episode: EpisodeSpec) -> None:
        self._env.reset(episode)
        self._seen = self._env.observe(self._cameras)

    def observe(self, cameras: Sequence[str]) -> Observation:
        return dict(self._seen)

    def step(self, action: np.ndarray) -> StepOutcome:
        outcome = self._env.step(action)
        self._seen = self._env.observe(self._cameras)
        return outcome

    def render(self) -> np.ndarray:
        return self._env.render()

    def close(self) -> None:
        self._env.close()


def play(every_step: bool, chunk: int, steps: int, episodes: int) -> tuple[float, list[EpisodeRecord]]:
    """CPU seconds of the episodes (not of building), and their records."""
    benchmark = MetaWorld(MetaWorld.Config(task="push-v3"))
    task = replace(benchmark.tasks()[0], max_steps=steps)
    env: Env = benchmark.make(task)
    if every_step:
        env = EveryStep(env, task.images)
    rollout = Rollout(env, Looker(chunk), task, {}, Heartbeat())
    env.reset(build_plan([task], 1, 0).episodes[0])
    env.render()  # the context is made at the first picture
    began = time.process_time()
    records = [rollout.run(episode, 1, "w0", None) for episode in build_plan([task], episodes, 1000)]
    spent = time.process_time() - began
    env.close()
    return spent, records


def outcome(record: EpisodeRecord) -> tuple[object, ...]:
    return record.end, record.steps, record.reward_sum, record.reward_max


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--chunk", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=2)
    arguments = parser.parse_args()
    eager_s, eager = play(True, arguments.chunk, arguments.steps, arguments.episodes)
    lazy_s, lazy = play(False, arguments.chunk, arguments.steps, arguments.episodes)
    assert [outcome(record) for record in eager] == [outcome(record) for record in lazy], "outcomes differ"
    figures = {
        "steps": sum(record.steps for record in lazy),
        "chunk": arguments.chunk,
        "cpu_s_every_step": round(eager_s, 2),
        "cpu_s_on_demand": round(lazy_s, 2),
        "times_less_cpu": round(eager_s / lazy_s, 2),
        "images_every_step": sum(record.steps + 1 for record in eager),
        "images_on_demand": sum(record.renders for record in lazy),
    }
    for name, value in figures.items():
        print(f"{name:32} {value:>12}")
    print(json.dumps({"bench": "rendering", **figures}))


if __name__ == "__main__":
    main()
