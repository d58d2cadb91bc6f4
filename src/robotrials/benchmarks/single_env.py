"""One environment, whether it came as a ``gymnasium.Env`` or as a vector environment of one (LeRobot's habit)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from robotrials.benchmarks.gym_action import ActionFitter
from robotrials.errors import ContractError

_ABSENT = object()


class SingleEnv:
    """Steps without a batch axis: observations, rewards and infos are those of the one environment.

    A vector that keeps its environments in ``envs`` (Gymnasium's SyncVectorEnv) is opened, so that it resets nothing
    by itself; of any other the first row is read.

    Raises:
        ContractError: it holds more than one environment.
    """

    def __init__(self, made: Any) -> None:
        self._made = made
        inner = getattr(made, "envs", None)
        n = getattr(made, "num_envs", None)
        if n not in (None, 1) or (isinstance(inner, (list, tuple)) and len(inner) != 1):
            raise ContractError(f"{type(made).__name__} holds {n} environments; asked for was one")
        opened = isinstance(inner, (list, tuple))
        self._env = inner[0] if opened and inner is not None else made
        self._batched = n == 1 and not opened
        self._fit: ActionFitter | None = None  # made at the first step: what is no Box is refused before, by name

    @property
    def observation_space(self) -> Any:
        return self._env.single_observation_space if self._batched else self._env.observation_space

    @property
    def action_space(self) -> Any:
        return self._env.single_action_space if self._batched else self._env.action_space

    def reset(self, seed: int) -> Any:
        """The first observation."""
        observation, _ = self._env.reset(seed=seed)
        return first_row(observation) if self._batched else observation

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, Mapping[str, Any]]:
        """(A,) in, fitted to the action space; observation, reward, terminated, truncated and info out."""
        if self._fit is None:
            self._fit = ActionFitter(self.action_space)
        action = self._fit(action)
        if not self._batched:
            observation, reward, terminated, truncated, info = self._env.step(action)
            return observation, float(reward), bool(terminated), bool(truncated), info
        answer = self._env.step(action[None])
        observation, reward, terminated, truncated = (first_row(part) for part in answer[:4])
        info = {key: first_row(value) for key, value in answer[4].items() if not str(key).startswith("_")}
        return observation, float(reward), bool(terminated), bool(truncated), info

    def render(self) -> np.ndarray | None:
        """What it draws, (H, W, 3); None if it draws nothing."""
        if getattr(self._env, "render_mode", None) != "rgb_array" and not self._batched:
            return None
        frame = self._env.render()
        if isinstance(frame, (list, tuple)):
            frame = frame[0] if frame else None
        if frame is None:
            return None
        picture = np.asarray(as_numpy(frame))
        return np.array(picture[0] if picture.ndim == 4 else picture)

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute of the environment or of one that it wraps."""
        if self._batched:
            value = getattr(self._env, name, _ABSENT)
            return default if value is _ABSENT else first_row(value) if isinstance(value, (list, tuple)) else value
        layer = self._env
        while layer is not None:
            value = _get(layer, name)
            if value is not _ABSENT:
                return value
            layer = getattr(layer, "env", None)
        return default

    def sentence(self) -> str:
        """``task_description``, else ``task``, as lerobot-eval looks for them; some give it as a tuple of one."""
        for name in ("task_description", "task"):
            said = self.attribute(name)
            if isinstance(said, (list, tuple)) and said:
                said = said[0]
            if isinstance(said, str) and said:
                return said
        return ""

    @property
    def innermost(self) -> Any:
        return getattr(self._env, "unwrapped", self._env)

    def close(self) -> None:
        self._made.close()


def _get(layer: Any, name: str) -> Any:
    """``layer.name``, or a mark that it is absent: some wrappers raise on names they do not forward."""
    try:
        return getattr(layer, name, _ABSENT)
    except Exception:  # noqa: BLE001  a property that needs what is not there yet (a sentence before the first reset)
        return _ABSENT


def as_numpy(value: Any) -> Any:
    """Tensors, on whatever device, as arrays; anything else as it is."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def first_row(value: Any) -> Any:
    """The first row of a batch, or of every batch in a map; what is no batch stays."""
    if isinstance(value, Mapping):
        return {key: first_row(part) for key, part in value.items()}
    value = as_numpy(value)
    if isinstance(value, (list, tuple)):
        return value[0] if value else None
    return value[0] if isinstance(value, np.ndarray) and value.ndim else value
