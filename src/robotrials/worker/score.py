"""What an episode comes to: success, reward and why it ended, from the outcomes of its steps."""

from __future__ import annotations

import numpy as np

from robotrials.benchmarks.scoring import Scoring
from robotrials.errors import ContractError
from robotrials.plan.episode import EpisodeSpec
from robotrials.results.record import ENDED_AT_ONCE, SOLVED_AT_ONCE, SUCCESS_LOST, EndReason


class Score:
    """One episode of the task called ``name``."""

    def __init__(self, name: str, episode: EpisodeSpec, scoring: Scoring) -> None:
        self._name = name
        self._limit = episode.max_steps
        self._scoring = scoring
        self.steps = 0
        self.reward_sum = 0.0
        self._reward_max = -float("inf")
        self._once = self._last = self._at_once = False
        self._raised: str | None = None

    def add(self, reward: float, terminated: bool, truncated: bool, success: object) -> EndReason | None:
        """Count one step; why the episode ends with it, None if it goes on.

        Raises:
            ContractError: success is no truth value.
        """
        self.steps += 1
        self._last = success if success is True or success is False else self._truth(success)
        self._once = self._once or self._last
        self._at_once = self._at_once or (self._last and self.steps == 1)
        self.reward_sum += reward
        self._reward_max = max(self._reward_max, reward)
        if terminated:
            return EndReason.SUCCESS if self.success else EndReason.FAILURE
        if truncated or self.steps >= self._limit:
            return EndReason.SUCCESS if self.success else EndReason.TIME_LIMIT
        return None

    def raised(self, error: Exception) -> EndReason:
        """``reset`` or ``step`` has raised what means failure, whatever came before.

        Raises:
            Exception: ``error``, if it does not.
        """
        if not self._scoring.is_failure(error):
            raise error
        self._raised = f"{type(error).__name__}: {error}"
        return EndReason.EXCEPTION

    @property
    def success(self) -> bool:
        if self._raised is not None:
            return False
        return self._last if self._scoring.at_end else self._once

    @property
    def reward_max(self) -> float:
        """Of the steps that were taken; 0 of none."""
        return self._reward_max if self.steps else 0.0

    @property
    def exception(self) -> str | None:
        """What was raised, if that is why it ended."""
        return self._raised

    def marks(self, end: EndReason) -> tuple[str, ...]:
        """What makes the outcome doubtful: see ``EpisodeRecord.marks``."""
        at_once = self.steps == 1 and end is EndReason.FAILURE
        found = {
            SOLVED_AT_ONCE: self._at_once and self._limit > 1,
            ENDED_AT_ONCE: at_once and self._limit > 1,
            SUCCESS_LOST: self._once and not self._last,
        }
        return tuple(mark for mark, holds in found.items() if holds)

    def _truth(self, value: object) -> bool:
        """A success signal that is no plain bool: exactly 0 or 1 of another type is one, progress or NaN is not."""
        if value is None:
            raise ContractError(
                f"{self._name} returned no success signal at step {self.steps}; "
                "a missing signal is not a failure: the benchmark's adapter must read it from the simulator"
            )
        if isinstance(value, (bool, int, float, np.generic)) and value in (0, 1):
            return bool(value)
        raise ContractError(f"{self._name} returned {value!r} as success at step {self.steps}; right is True or False")
