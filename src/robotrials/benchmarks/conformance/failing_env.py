"""An environment whose named exceptions end an episode as a failure (``--env.failure_exceptions``), for check-env."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from robotrials.benchmarks.base import Env, Expert, Observation, StepOutcome
from robotrials.benchmarks.scoring import Scoring
from robotrials.plan.episode import EpisodeSpec


class FailingEnv(Env):
    """What ``make`` builds. After such an exception it is built anew, as a worker does."""

    def __init__(self, make: Callable[[], Env], scoring: Scoring) -> None:
        self._make = make
        self._scoring = scoring
        self._env = make()
        self._has_raised = False

    def reset(self, episode: EpisodeSpec) -> None:
        if self._has_raised:
            self._env.close()
            self._env, self._has_raised = self._make(), False
        self._env.reset(episode)

    def observe(self, cameras: Sequence[str]) -> Observation:
        return self._env.observe(cameras)

    def step(self, action: np.ndarray) -> StepOutcome:
        try:
            return self._env.step(action)
        except Exception as error:
            if not self._scoring.is_failure(error):
                raise
            self._has_raised = True
            return StepOutcome(0.0, True, False, False)

    def render(self) -> np.ndarray:
        return self._env.render()

    def close(self) -> None:
        self._env.close()

    def expert(self) -> Expert:
        return self._env.expert()
