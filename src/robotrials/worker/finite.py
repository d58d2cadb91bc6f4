"""Numbers that are not finite in what a benchmark shows: counted, or an error of the episode (``--eval.nonfinite``)."""

from __future__ import annotations

import math

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.errors import NonFiniteError
from robotrials.plan.task import TaskSpec

_REMEDY = "; --eval.nonfinite=warn counts such episodes instead"


class FiniteCheck:
    """Looks at every observation of one episode. Images are uint8 and hold nothing else; the rest is small."""

    def __init__(self, task: TaskSpec, refuses: bool = False) -> None:
        """``refuses``: NaN and infinity are errors."""
        self._task = task
        self._refuses = refuses
        self._keys = tuple(key for key, feature in task.observations.items() if feature.dtype.startswith("float"))
        self._looks = 0
        self._first: dict[str, int] = {}
        self.count = 0
        """Observations that held NaN or infinity."""

    def look(self, seen: Observation, step: int) -> None:
        """
        Raises:
            NonFiniteError: it holds NaN or infinity, and such are refused.
        """
        self._looks += 1
        found = False
        for key in self._keys:
            value = seen.get(key)
            # One pass and a search of bytes takes 2 us; np.isfinite(value).all() takes 3.5.
            if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
                continue
            if b"\0" in np.isfinite(value).tobytes():
                self._note(key, value, step)
                found = True
        self.count += found

    def reward(self, total: float) -> None:
        """Look at the sum of an episode's rewards.

        Raises:
            NonFiniteError: it is not finite, and such are refused.
        """
        if self._refuses and not math.isfinite(total):
            raise NonFiniteError(f"{self._task.name}: the rewards of the episode sum to {total}{_REMEDY}")

    def words(self) -> str:
        """``observation.state held NaN or infinity in 3 of 5 observations, first at step 2``; empty if none did."""
        if not self.count:
            return ""
        keys, first = ", ".join(self._first), min(self._first.values())
        return f"{keys} held NaN or infinity in {self.count:,} of {self._looks:,} observations, first at step {first}"

    def _note(self, key: str, value: np.ndarray, step: int) -> None:
        self._first.setdefault(key, step)
        if self._refuses:
            # Without the numbers themselves: the same fault of many episodes is then one line of the table.
            raise NonFiniteError(
                f"{self._task.name}: {int((~np.isfinite(value)).sum())} of {value.size} numbers of {key} are NaN or "
                f"infinite at step {step}{_REMEDY}"
            )
