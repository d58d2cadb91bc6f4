"""Where a Gymnasium environment says whether it has succeeded: ``--env.success``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.errors import ConfigError

KNOWN_KEYS = ("is_success", "success", "succeed")
"""Entries of ``info`` that are looked for when nothing is said, in this order: of Gymnasium-Robotics and LeRobot's own
environments, of Meta-World and ManiSkill, of gym-hil."""

_REWARD = re.compile(r"reward\s*>=\s*(.+)")
_FORMS = "info:KEY, terminated or reward>=NUMBER"


@dataclass(frozen=True)
class SuccessRule:
    """``key`` of info, or ``reward`` to reach, or, with neither, that the environment terminates."""

    key: str | None = None
    reward: float | None = None

    def read(self, reward: float, terminated: bool, truncated: bool, info: Mapping[str, Any]) -> bool | None:
        """Whether one step succeeded; None when the episode ends and ``info`` has not said.

        Before the end a missing key means not yet: some environments report it only with the last step.

        Raises:
            ConfigError: the entry is not one truth value.
        """
        if self.reward is not None:
            return reward >= self.reward
        if self.key is None:
            return terminated
        if self.key not in info:
            return None if terminated or truncated else False
        return truth(info[self.key], f"--env.success=info:{self.key}")


def truth(value: Any, what: str) -> bool:
    """``value`` as a truth value: a bool, or a number that is exactly 0 or 1, alone or in an array of one.

    A share of subtasks, NaN and -1 are all true to Python, and no success.

    Raises:
        ConfigError: it is none; the message begins with ``what``.
    """
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf" or array.item() not in (0, 1):
        raise ConfigError(f"{what}: it holds {value!r}, which is no truth value")
    return bool(array.item())


def parse(text: str) -> SuccessRule | None:
    """The rule that ``--env.success`` writes; None for an empty text, which leaves it to ``find``.

    Raises:
        ConfigError: it is none of the forms.
    """
    text = text.strip()
    if not text:
        return None
    if text == "terminated":
        return SuccessRule()
    if text.startswith("info:") and text[5:].strip():
        return SuccessRule(key=text[5:].strip())
    match = _REWARD.fullmatch(text)
    if match:
        try:
            reward = float(match[1])
        except ValueError:
            reward = math.nan
        if math.isfinite(reward):
            return SuccessRule(reward=reward)
    raise ConfigError(f"--env.success={text}: write {_FORMS}")


def find(info: Mapping[str, Any], what: str) -> SuccessRule:
    """The rule for an environment, called ``what``, whose step has returned ``info``.

    Raises:
        ConfigError: none of the known keys is in it: success is never guessed.
    """
    for key in KNOWN_KEYS:
        if key in info:
            return SuccessRule(key=key)
    seen = ", ".join(sorted(map(str, info))) or "nothing"
    raise ConfigError(
        f"{what} does not say what success is: its info holds {seen}, and none of {', '.join(KNOWN_KEYS)}. "
        f"Say where it is: --env.success={_FORMS}"
    )
