"""What distribution adds: eight workers that joined over TCP, with steps of 20 ms that are slept.

    python bench/distributed.py [--episodes=400] [--chunk=1]

Workers are started by ``robotrials worker --connect=tcp://...``; the policy is in a server that they reach over TCP,
too, and gets an image of 224x224 with every look. Sleeping takes no core, so two cores carry eight such workers. The
bound is the sum of all steps at 20 ms, divided by eight; the ratio is taken from the moment the workers stand, and of
the work that is left then. A second ratio takes steps as long as they were slept: on a machine that others use, a
sleep is late, and so is every answer. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robotrials.benchmarks.base import Benchmark, BenchmarkConfig, Env, Observation, StepOutcome
from robotrials.control.joining import CONNECT_FILE, read_join_file
from robotrials.engine.observer import SilentObserver
from robotrials.plan.config import EnvChoice, EvalSettings, PolicyChoice, RunConfig, option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, Feature, TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare

STEP_S = 0.020
WORKERS = 8
IMAGE, STATE = "observation.image", "observation.state"
HERE = Path(__file__).resolve()


@dataclass(frozen=True)
class SleepyConfig(BenchmarkConfig):
    task: str = option("sleep", "its one task")


class Sleepy(Benchmark):
    """Episodes of 20 to 60 steps, each asleep for 20 ms."""

    name = "sleepy"
    extra = "dev"
    modules = ()
    packages = ()
    Config = SleepyConfig

    def tasks(self) -> list[TaskSpec]:
        action = ActionSpec(4, (-1.0,) * 4, (1.0,) * 4)
        features = {IMAGE: Feature((224, 224, 3), "uint8"), STATE: Feature((8,))}
        return [TaskSpec("sleepy", self.config.task, 0, "sleep", 100, 50.0, features, action, record_key=IMAGE)]

    def make(self, task: TaskSpec) -> Env:
        return SleepyEnv()


class SleepyEnv(Env):
    _image = np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)

    def reset(self, episode: EpisodeSpec) -> None:
        self._left = int(episode.rng("length").integers(20, 61))

    def observe(self, cameras: Sequence[str]) -> Observation:
        return {STATE: np.zeros(8, np.float32), **dict.fromkeys(cameras, self._image)}

    def step(self, action: np.ndarray) -> StepOutcome:
        time.sleep(STEP_S)
        self._left -= 1
        return StepOutcome(0.0, self._left == 0, False, self._left == 0)

    def render(self) -> np.ndarray:
        return self._image

    def close(self) -> None:
        pass


class AtOnce(Policy):
    """Looks at the image and answers without thinking."""

    def __init__(self, chunk: int = 1) -> None:
        self._chunk = chunk

    def spec(self) -> PolicySpec:
        wanted = {IMAGE: Feature((224, 224, 3), "uint8"), STATE: Feature((8,))}
        return PolicySpec("at-once", wanted, action_dim=4, n_action_steps=self._chunk)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        return np.zeros((len(sessions), self._chunk, 4))


def play(episodes: int, chunk: int) -> list[EpisodeRecord]:
    """A whole run, and its records."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        settings = EvalSettings(
            n_episodes=episodes, record="none", runtime="external", listen="tcp://127.0.0.1:0", policy_servers=1
        )
        policy, env = PolicyChoice(f"{HERE}:AtOnce", None, {"chunk": chunk}), EnvChoice(f"{HERE}:Sleepy")
        run = threading.Thread(
            target=execute, args=(prepare(RunConfig(policy, env, settings, 1000, directory)), SilentObserver())
        )
        run.start()
        while not (directory / CONNECT_FILE).exists():
            time.sleep(0.05)
        address, token = read_join_file(directory)
        words = [sys.executable, "-m", "robotrials", "worker", f"--connect={address}", f"--n={WORKERS}"]
        with subprocess.Popen(words, env={**os.environ, "ROBOTRIALS_TOKEN": token}, stdout=subprocess.DEVNULL):
            run.join()
        with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
            return list(ledger.accepted())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--chunk", type=int, default=1, help="actions a look")
    options = parser.parse_args()
    records = play(options.episodes, options.chunk)
    first: dict[str, float] = {}
    for record in records:
        first[record.worker] = min(first.get(record.worker, record.started_at), record.started_at)
    assert len(first) == WORKERS
    stand = max(first.values())
    wall = max(record.started_at + record.timings.total for record in records) - stand
    # Of an episode that was under way when the last worker stood, what was left of it.
    left = 0.0
    for record in records:
        share = min(1.0, max(0.0, record.started_at + record.timings.total - stand) / record.timings.total)
        left += record.steps * STEP_S * share
    n_steps = sum(record.steps for record in records)
    slept = sum(record.timings.simulate for record in records) / n_steps
    waited = sum(record.timings.wait + record.timings.infer for record in records) / n_steps
    bound = left / WORKERS
    print(f"{len(records)} episodes, {WORKERS} workers over TCP, {options.chunk} actions a look")
    as_slept = wall / (bound * slept / STEP_S)
    print(f"  bound {bound:.1f} s, wall {wall:.1f} s: {wall / bound:.3f} of it; {as_slept:.3f} with steps as slept")
    print(f"  a step of 20 ms took {1e3 * slept:.2f} ms, waiting for the policy {1e3 * waited:.2f} ms a step")
    figures = {"bound_s": round(bound, 2), "wall_s": round(wall, 2), "ratio": round(wall / bound, 3)}
    figures["ratio_as_slept"] = round(as_slept, 3)
    parts = {"step_ms": round(1e3 * slept, 2), "wait_ms": round(1e3 * waited, 2)}
    print(json.dumps({"bench": "distributed", **vars(options), **figures, **parts}))


if __name__ == "__main__":
    main()
