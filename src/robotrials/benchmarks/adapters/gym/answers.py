"""What ``reset`` and ``step`` of a Gymnasium environment return, checked and in plain types.

Three things that simulators do are taken by a rule: a reward or flag in an array of one is that number, an ``info`` of
None is an empty one, and tensors are arrays. Anything else that is not Gymnasium's API is refused in one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from robotrials.errors import ContractError

_WRAP = "wrap it with shimmy's GymV21CompatibilityV0, or change it"


class Step(NamedTuple):
    """What one step returned."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]


def as_numpy(value: Any) -> Any:
    """Tensors, on whatever device, as arrays; anything else as it is."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def read_reset(answer: Any, who: str) -> Any:
    """The first observation of the environment called ``who``.

    Raises:
        ContractError: it is no pair of an observation and a map.
    """
    if isinstance(answer, tuple) and len(answer) == 2 and (answer[1] is None or isinstance(answer[1], Mapping)):
        return answer[0]
    raise ContractError(
        f"{who}: reset() returns {_kind(answer)}, as Gym before 0.26 did; right is (observation, info), "
        f"info a dict: {_WRAP}"
    )


def read_step(answer: Any, who: str) -> Step:
    """
    Raises:
        ContractError: these are not five values, or the reward is not one number, a flag not one truth value, info no
            map.
    """
    if not isinstance(answer, (tuple, list)) or len(answer) != 5:
        raise ContractError(
            f"{who}: step() returns {_kind(answer)}{_old(answer)}; right are five values, (observation, reward, "
            f"terminated, truncated, info): {_WRAP}"
        )
    observation, reward, terminated, truncated, info = answer
    if info is not None and not isinstance(info, Mapping):
        raise ContractError(f"{who}: step() returns {_kind(info)} as info; right is a dict")
    return Step(
        observation,
        _reward(reward, who),
        _flag(terminated, "terminated", who),
        _flag(truncated, "truncated", who),
        {} if info is None else info,
    )


def require_gymnasium(simulator: Any, who: str, seed: int) -> None:
    """What is wrong with the answers of ``simulator`` itself, below all wrappers, which would fail on them in words
    of their own. Call it when they did.

    Raises:
        ContractError: that is it.
    """
    try:
        first = simulator.reset(seed=seed)
    except TypeError as error:
        if "seed" in str(error):
            raise ContractError(f"{who}: reset() takes no seed, as Gym before 0.26: {_WRAP}") from error
        return
    read_reset(first, who)
    read_step(simulator.step(simulator.action_space.sample()), who)


def _reward(value: Any, who: str) -> float:
    number = np.asarray(as_numpy(value))
    if number.size != 1 or number.dtype.kind not in "biuf":
        raise ContractError(f"{who}: step() returns {_kind(value)} as reward; right is one number")
    return float(number.item())


def _flag(value: Any, name: str, who: str) -> bool:
    if isinstance(value, bool):
        return value
    flag = np.asarray(as_numpy(value))
    if flag.size != 1 or flag.dtype.kind not in "biuf" or flag.item() not in (0, 1):
        raise ContractError(f"{who}: step() returns {_kind(value)} as {name}; right is True or False")
    return bool(flag.item())


def _old(answer: Any) -> str:
    return ", as Gym before 0.26 did" if isinstance(answer, (tuple, list)) and len(answer) == 4 else ""


def _kind(value: Any) -> str:
    """What it is, short enough for a sentence."""
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return repr(value)
    if isinstance(value, tuple):
        return f"{len(value)} values"
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    article = "an" if name[:1].lower() in "aeiou" or name == "ndarray" else "a"
    return f"{article} {name}" + (f" of shape {tuple(shape)}" if shape is not None else "")
