"""Policies that draw from the global generators of Python, NumPy and torch, for tests of exactness. Named by file."""

from __future__ import annotations

import importlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session


def throw(generator: str) -> float:
    if generator == "python":
        return random.gauss(0.0, 1.0)
    if generator == "numpy":
        return float(np.random.randn())  # drawn in pairs, of which the second waits
    return float(importlib.import_module("torch").randn(()))  # imported when the first episode plays


class Gambler(Policy):
    """Goes towards the goal, with noise from a global generator: from the constructor, where an episode begins, and at
    each call after the first ``quiet`` ones."""

    def __init__(self, generator: str = "numpy", quiet: int = 0) -> None:
        self.generator, self.quiet = generator, quiet
        self.gain = 1.0 + 0.1 * throw(generator) if not quiet else 1.0

    def spec(self) -> PolicySpec:
        return PolicySpec("gambler", {"observation.state": None}, n_action_steps=2)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        return np.stack([self.row(*pair) for pair in zip(sessions, observations, strict=True)])

    def row(self, session: Session, observation: Observation) -> np.ndarray:
        position, goal = np.asarray(observation["observation.state"], np.float64)
        return np.array([[np.tanh(self.gain * (goal - position)) + 0.3 * throw(self.generator)] for _ in range(2)])


class GamblerServed(Gambler):
    served = True


@dataclass
class Memory(Session):
    calls: int = 0
    luck: float = 0.0


class Rememberer(Gambler):
    """Keeps state in its session, and draws late, where several sessions already share a batch."""

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Memory:
        luck = 0.0 if self.quiet else throw(self.generator)
        return Memory(episode, task, episode.rng("policy"), env, luck=luck)

    def row(self, session: Session, observation: Observation) -> np.ndarray:
        assert isinstance(session, Memory)
        session.calls += 1
        position, goal = np.asarray(observation["observation.state"], np.float64)
        noise = throw(self.generator) if session.calls > self.quiet else 0.1 * session.rng.normal()
        return np.full((2, 1), 0.5 * np.sign(goal - position) + 0.2 * noise + 0.1 * session.luck + 0.01 * session.calls)
