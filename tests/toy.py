"""A tiny benchmark and policies for tests of the engine: real processes, no simulator.

Used by import path, as a user's own would be: ``--env.type=tests.toy:Toy``. A point moves along a line towards its
goal, which depends on the seed, so every episode has its own length. ``trouble`` names what goes wrong, and where.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Benchmark, BenchmarkConfig, Env, Expert, Observation, StepOutcome
from robotrials.plan.config import option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, Feature, TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session

MAX_STEPS = 60


@dataclass(frozen=True)
class ToyConfig(BenchmarkConfig):
    task: str = option("a", "comma list of task names")
    trouble: str = option("", "kind@task/index, such as raise@a/1; several with +")
    scratch: str = option("", "folder where troubles that happen once leave a mark")
    step_s: float = option(0.0, "seconds a step takes")


class Toy(Benchmark):
    name = "toy"
    extra = "toy"
    modules = ("numpy",)
    packages = ("numpy",)
    Config = ToyConfig

    def tasks(self) -> list[TaskSpec]:
        return [
            TaskSpec(
                suite="toys",
                name=name,
                id=position,
                instruction=f"Go to the goal of {name}",
                max_steps=MAX_STEPS,
                control_hz=20.0,
                observations={
                    "observation.image": Feature((32, 32, 3), "uint8"),
                    "observation.state": Feature((2,)),
                },
                action=ActionSpec(1, (-1.0,), (1.0,)),
                record_key="observation.image",
            )
            for position, name in enumerate(self.config.task.split(","))
        ]

    def make(self, task: TaskSpec) -> Env:
        if f"build@{task.name}" in self.config.trouble.split("+"):
            raise OSError("the scene file is missing")
        return ToyEnv(self.config)


_LASTS = 3
"""Episodes that a process of a benchmark which wears it out can play."""


class _Wear:
    """Of this process: what building the environment anew does not mend."""

    n = 0

    def next(self) -> int:
        self.n += 1
        return self.n


_wear = _Wear()


class ToyEnv(Env):
    """``renders`` counts images; state is (position, goal)."""

    def __init__(self, config: ToyConfig) -> None:
        self.config = config
        self.renders = 0
        self.position = self.goal = 0.0
        self._step = 0

    def reset(self, episode: EpisodeSpec) -> None:
        self.episode = episode
        self.goal = float(episode.rng("goal").uniform(2.0, 9.0))
        self.position, self._step = 0.0, 0
        self.slip = np.random.default_rng(episode.seed)

    def observe(self, cameras: Sequence[str]) -> Observation:
        seen: Observation = {"observation.state": np.array([self.position, self.goal], np.float32)}
        if self._troubled("nan") and self._step >= 2:
            seen["observation.state"] = np.array([self.position, np.nan], np.float32)
        for camera in cameras:
            seen[camera] = self.render()
        return seen

    def step(self, action: np.ndarray) -> StepOutcome:
        self._step += 1
        self._maybe_fail()
        if self.config.step_s:
            time.sleep(self.config.step_s)
        self.position += float(action[0]) * 0.5 + float(self.slip.normal(0.0, 0.02))
        success = np.bool_(abs(self.position - self.goal) < 0.3)  # as simulators give it
        reward = -abs(self.position - self.goal)
        if self._troubled("no_success"):
            return StepOutcome(reward, False, False, None)
        return StepOutcome(reward, success, False, success)

    def render(self) -> np.ndarray:
        self.renders += 1
        image = np.full((32, 32, 3), 40, np.uint8)
        column = int(np.clip(self.position * 3, 0, 31))
        image[:, column] = 255
        return image

    def close(self) -> None:
        pass

    def expert(self) -> Expert:
        return ToyExpert(self)

    def _troubled(self, kind: str) -> bool:
        spec = f"{kind}@{self.episode.task}/{self.episode.index}"
        return any(item in (spec, f"{kind}@{self.episode.task}/*") for item in self.config.trouble.split("+"))

    def _maybe_fail(self) -> None:
        if self._step != 3:
            return
        if self._troubled("raise"):
            raise RuntimeError("the physics exploded")
        if self._troubled("wear") and _wear.next() > _LASTS:
            raise RuntimeError("the driver gives no more contexts")
        if self._troubled("once") and self._first_time():
            raise RuntimeError("a hiccup")
        if self._troubled("die_once") and self._first_time():
            os.kill(os.getpid(), signal.SIGKILL)
        if self._troubled("fork"):
            child = os.fork()
            if not child:
                sys.exit(0)
            os.waitpid(child, 0)
        if self._troubled("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self._troubled("hang_once") and self._first_time():
            time.sleep(3600)

    def _first_time(self) -> bool:
        mark = Path(self.config.scratch) / f"{self.episode.task}-{self.episode.index}"
        if mark.exists():
            return False
        mark.touch()
        return True


class Dice(Toy):
    """The toy, whose floor shakes by NumPy's global generator."""

    def make(self, task: TaskSpec) -> Env:
        return ShakyEnv(self.config)


class ShakyEnv(ToyEnv):
    def reset(self, episode: EpisodeSpec) -> None:
        super().reset(episode)
        self.position = 0.1 * float(np.random.randn())

    def step(self, action: np.ndarray) -> StepOutcome:
        return super().step(action + 0.2 * float(np.random.randn()))


class ToyExpert(Expert):
    def __init__(self, env: ToyEnv) -> None:
        self.env = env

    def act(self) -> np.ndarray:
        return np.array([np.clip(self.env.goal - self.env.position, -1.0, 1.0)])


class Seer(Policy):
    """Reads the image and the state, plays chunks of ``n`` actions over a window of ``history`` observations, with
    noise from the episode's generator."""

    def __init__(self, n: int = 5, history: int = 1, noise: float = 0.1) -> None:
        self.n, self.history, self.noise = n, history, noise
        self.seen: list[Observation] = []

    def spec(self) -> PolicySpec:
        return PolicySpec(
            name="seer",
            observations={"observation.image": Feature((32, 32, 3), "uint8"), "observation.state": Feature((2,))},
            action_dim=1,
            n_action_steps=self.n,
            n_obs_steps=self.history,
        )

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        self.seen.extend(observations)
        chunks = []
        for session, observation in zip(sessions, observations, strict=True):
            state = np.asarray(observation["observation.state"]).reshape(-1, 2)[-1]
            gap = np.clip((state[1] - state[0]) / (0.5 * self.n), -1.0, 1.0)
            chunks.append(np.full((self.n, 1), gap) + session.rng.normal(0, self.noise, (self.n, 1)))
        return np.stack(chunks)


class Steady(Seer):
    """Goes on whatever it sees."""

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        return np.ones((len(sessions), self.n, 1))


class DiesOnce(Seer):
    """Its process ends without a word at the third call it gets, unless ``mark`` exists."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self.mark, self.calls = Path(mark), 0

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        self.calls += 1
        if self.calls == 3 and not self.mark.exists():
            self.mark.touch()
            os._exit(7)
        return super().act(sessions, observations)


class DiesInOne(Seer):
    """Its process ends whenever it acts in the episode with seed 1003."""

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        if any(session.episode.seed == 1003 for session in sessions):
            os._exit(7)
        return super().act(sessions, observations)


class OtherWeights(DiesOnce):
    """As one whose checkpoint is overwritten before its process dies: its successor loads another."""

    def describe(self) -> dict[str, Any]:
        return {"revision": "second" if self.mark.exists() else "first"}


class WrongOnce(Seer):
    """Not a number at the first step of the episode with seed ``WRONG_SEED``."""

    WRONG_SEED = 1002

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        actions = super().act(sessions, observations)
        return actions * np.nan if sessions[0].episode.seed == self.WRONG_SEED else actions


class WrongFirst(WrongOnce):
    WRONG_SEED = 1000


class WrongShape(Policy):
    def spec(self) -> PolicySpec:
        return PolicySpec(name="wrong-shape")

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        return np.zeros((1, 1, 7))


class NotANumber(Policy):
    """Finite at first, NaN from the third call of episodes with an odd seed."""

    def spec(self) -> PolicySpec:
        return PolicySpec(name="not-a-number")

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Session:
        session = super().new_session(episode, task, env)
        session.calls = 0  # type: ignore[attr-defined]
        return session

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        (session,) = sessions
        session.calls += 1  # type: ignore[attr-defined]
        bad = session.calls >= 3 and session.episode.seed % 2  # type: ignore[attr-defined]
        return np.full((1, 1, 1), np.nan if bad else 1.0)


class WantsSonar(Policy):
    def spec(self) -> PolicySpec:
        return PolicySpec(name="bat", observations={"observation.sonar": Feature((4,))})

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        raise AssertionError("must be refused before the first step")


class Unbuildable(Policy):
    def __init__(self) -> None:
        raise ValueError("weights are corrupt")

    def spec(self) -> PolicySpec:
        raise AssertionError

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        raise AssertionError
