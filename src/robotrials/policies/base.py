"""The interface every policy stands behind.

A policy says what it needs (``PolicySpec``), and acts for many episodes at once. What it must remember of an episode
lives in that episode's ``Session``, never in the policy: two episodes can therefore not disturb each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.global_random import Generators
from robotrials.plan.task import Feature, TaskSpec


@dataclass(frozen=True)
class PolicySpec:
    """What a policy looks at and hands out.

    ``observations`` maps the keys it reads to the shape it expects (None: any shape). ``n_obs_steps`` > 1 asks for the
    last so many observations, oldest first on a leading axis (the first one repeated at the start, as LeRobot does).
    ``n_action_steps`` actions of each chunk are played before the policy looks again. ``action_dim`` None: whatever
    the task has. ``needs_env`` policies run in the worker and see the simulator itself. ``max_batch`` sessions at most
    are given to one call of ``act`` (None: all that wait).
    """

    name: str
    observations: Mapping[str, Feature | None] = field(default_factory=dict)
    action_dim: int | None = None
    n_action_steps: int = 1
    n_obs_steps: int = 1
    needs_env: bool = False
    max_batch: int | None = None


@dataclass
class Session:
    """One running episode, as its policy sees it. Subclass it to keep state; it dies with the episode.

    ``rng`` depends on the episode alone: draw every random number from it.
    """

    episode: EpisodeSpec
    task: TaskSpec
    rng: np.random.Generator
    env: Env | None = None
    generators: Generators | None = field(default=None, init=False, repr=False, compare=False)
    """What the global generators of Python, NumPy and torch give this session (``own_generators``)."""


class Policy(ABC):
    """A policy in this process. Its constructor takes the ``--policy.*`` options as keyword arguments.

    A class with ``served`` set lives in a policy server, because it is heavy or gains by batching; others are made in
    every worker.
    """

    served: ClassVar[bool] = False

    draws_globally: ClassVar[bool] = True
    """Whether it may draw from the global generators of Python, NumPy or torch. True is always right: each session then
    sees numbers of its own there. False is a promise that spares each call 0.1 ms."""

    plain: ClassVar[bool] = False
    """Making one costs next to nothing, so planning makes one to see whether it fits."""

    has_own_device: bool = False
    """``act`` computes on a GPU or the like, not on the cores that simulators need."""

    infer_s: float | None = None
    """For a policy that acts elsewhere: seconds of the last ``act`` that were computation; the rest was waiting."""

    @abstractmethod
    def spec(self) -> PolicySpec:
        """What it needs and hands out; constant over its life."""

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Session:
        """Begin an episode. ``env`` is given to ``needs_env`` policies only."""
        return Session(episode, task, episode.rng("policy"), env)

    def describe(self) -> dict[str, Any]:
        """What a run records of it beside its spec, as JSON values."""
        return {}

    @abstractmethod
    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """Action chunks (B, T, A) float for B sessions, T >= 1; of each chunk the first ``n_action_steps`` are played.

        A call that raises leaves the sessions as they were, their generators excepted: it may come again, row by row.
        ``observations[i]`` belongs to ``sessions[i]`` and holds the keys of ``spec().observations``; with
        ``n_obs_steps`` > 1 its arrays have a leading time axis.
        """
