"""Where a Gymnasium environment says whether it has succeeded: ``--env.success``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.benchmarks.scoring import split_success
from robotrials.errors import ConfigError
from robotrials.plan.options import nearest

KNOWN_KEYS = ("is_success", "success", "succeed")
"""Entries of ``info`` that are looked for when nothing is said, in this order: of Gymnasium-Robotics and LeRobot's own
environments, of Meta-World and ManiSkill, of gym-hil."""

_REWARD = re.compile(r"reward\s*>=\s*(.+)")
FORMS = "info:KEY, terminated or reward>=NUMBER"
SUCCESS_HELP = f"where success is: {FORMS}; when it counts: once or end; or both, info:KEY,end"


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
    text, _ = split_success(text)
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
    raise ConfigError(f"--env.success={text}: write {FORMS}")


def known_success(info: Mapping[str, Any], ended: bool) -> bool | None:
    """What one step's info says under a known key, in its ``final_info`` first: an environment that resets itself in
    its last step keeps the last info there.

    Before the end, saying nothing means not yet; at the end it is None: nobody said.

    Raises:
        ConfigError: what it says is no truth value.
    """
    final = info.get("final_info")
    for place in (final if isinstance(final, Mapping) else {}, info):
        for key in KNOWN_KEYS:
            if key in place:
                return truth(place[key], f"{key} in the environment's info")
    return None if ended else False


def says_success(info: Mapping[str, Any]) -> bool:
    """Whether ``known_success`` finds anything in it."""
    final = info.get("final_info")
    return any(key in info or (isinstance(final, Mapping) and key in final) for key in KNOWN_KEYS)


def find(info: Mapping[str, Any], what: str) -> SuccessRule:
    """The rule for an environment, called ``what``, whose step has returned ``info``.

    Raises:
        ConfigError: none of the known keys is in it: success is never guessed.
    """
    for key in KNOWN_KEYS:
        if key in info:
            return SuccessRule(key=key)
    raise no_success(info, what)


def no_success(info: Mapping[str, Any], what: str) -> ConfigError:
    """The refusal of an environment that says success nowhere; success is never guessed."""
    seen = ", ".join(sorted(map(str, info))) or "nothing"
    return ConfigError(
        f"{what} does not say what success is: its info holds {seen}, and none of {', '.join(KNOWN_KEYS)}. "
        f"Say where it is: --env.success={FORMS}"
    )


def missing_key(key: str, info: Mapping[str, Any], what: str) -> ConfigError:
    """The refusal of ``--env.success=info:KEY`` where the last ``info`` of an episode lacks it, too."""
    keys = sorted(map(str, info))
    return ConfigError(
        f"--env.success=info:{key}: the info of {what} has no such key{nearest(key, keys)}, not with the last step of "
        f"an episode, either; it holds {', '.join(keys) or 'nothing'}"
    )
