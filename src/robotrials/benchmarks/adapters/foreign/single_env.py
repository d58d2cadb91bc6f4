"""One environment, whether it came as a ``gymnasium.Env`` or as a vector environment of one (LeRobot's habit)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.gym.action import ActionFitter
from robotrials.benchmarks.adapters.gym.answers import Step, as_numpy, read_reset, read_step, require_gymnasium
from robotrials.benchmarks.adapters.gym.picture import DRAWS, FILM, picture_of
from robotrials.errors import ContractError

_ABSENT = object()
_FINAL_OBSERVATION = ("final_obs", "final_observation", "terminal_observation")
"""Entries of info, of Gymnasium 1, of Gymnasium before, and of Stable-Baselines3."""


class SingleEnv:
    """Steps without a batch axis: observations, rewards and infos are those of the one environment.

    A vector that keeps its environments in ``envs`` (Gymnasium's SyncVectorEnv) is opened, so that it resets nothing
    by itself; of any other the first row is read. One that resets itself in the step that ends an episode shows the
    next episode from then on: its last observation and info are taken from ``final_obs`` and ``final_info``, and what
    it would draw is not drawn.

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
        self._who = type(self.innermost).__name__
        self._resets_itself = self._batched and _resets_in_the_same_step(made)
        self.shows_the_next = False
        """The episode has ended, and what it shows is the next one."""
        self._fit: ActionFitter | None = None  # made at the first step: what is no Box is refused before, by name

    @property
    def observation_space(self) -> Any:
        return self._env.single_observation_space if self._batched else self._env.observation_space

    @property
    def action_space(self) -> Any:
        return self._env.single_action_space if self._batched else self._env.action_space

    def reset(self, seed: int) -> Any:
        """The first observation.

        Raises:
            ContractError: what it returns is not Gymnasium's API.
        """
        self.shows_the_next = False
        try:
            observation = read_reset(self._env.reset(seed=seed), self._who)
        except (TypeError, ValueError):
            self.require_gymnasium(seed)
            raise
        return first_row(observation) if self._batched else observation

    def step(self, action: np.ndarray) -> Step:
        """(A,) in, fitted to the action space; observation, reward, terminated, truncated and info out.

        Raises:
            ContractError: as ``reset`` does.
        """
        if self._fit is None:
            self._fit = ActionFitter(self.action_space)
        action = self._fit(action)
        if not self._batched:
            return read_step(self._env.step(action), self._who)
        answer = self._env.step(action[None])
        if isinstance(answer, (tuple, list)) and len(answer) == 5:
            answer = (*(first_row(part) for part in answer[:4]), first_row_of_info(answer[4]))
        step = read_step(answer, self._who)
        return self._of_the_episode(step) if step.terminated or step.truncated else step

    def _of_the_episode(self, last: Step) -> Step:
        """The last step, with what it has shown before a reset of its own."""
        final, seen = last.info.get("final_info"), final_observation(last.info)
        self.shows_the_next = self._resets_itself or seen is not None or isinstance(final, Mapping)
        info = final if isinstance(final, Mapping) else last.info
        if self._resets_itself and info is last.info:
            info = {}  # it is of the next episode: nothing was said of this one
        return last._replace(observation=last.observation if seen is None else seen, info=info)

    def render(self) -> np.ndarray | None:
        """What it draws, (H, W, 3) uint8; None if it draws nothing, or the next episode.

        Raises:
            ContractError: what it draws is no picture.
        """
        mode = getattr(self._env, "render_mode", None)
        if self.shows_the_next or (mode not in DRAWS and not self._batched):
            return None
        return picture_of(self._env.render(), self._who, mode == FILM)

    def require_gymnasium(self, seed: int) -> None:
        """What is wrong with its answers, where a wrapper has failed on them.

        Raises:
            ContractError: see ``gym_answers.require_gymnasium``.
        """
        if not self._batched:
            require_gymnasium(self.innermost, self._who, seed)

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
    def name(self) -> str:
        """What messages call it: its class."""
        return self._who

    @property
    def spec(self) -> Any:
        """How Gymnasium has it registered; None if it was not made by an id."""
        return getattr(self.innermost, "spec", None)

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


def first_row(value: Any) -> Any:
    """The first row of a batch, or of every batch in a map; what is no batch stays."""
    if isinstance(value, Mapping):
        return {key: first_row(part) for key, part in value.items()}
    value = as_numpy(value)
    if isinstance(value, (list, tuple)):
        return value[0] if value else None
    return value[0] if isinstance(value, np.ndarray) and value.ndim else value


def first_row_of_info(info: Any) -> Any:
    """The info of the first environment: a map of batches, or a batch of maps, without Gymnasium's masks (``_key``)."""
    if isinstance(info, (list, tuple)) and len(info) == 1:
        return info[0]
    if not isinstance(info, Mapping):
        return info
    return {key: first_row(value) for key, value in info.items() if not str(key).startswith("_")}


def final_observation(info: Mapping[str, Any]) -> Any:
    """What an environment that has reset itself in its last step showed before; None where it does not say."""
    return next((info[key] for key in _FINAL_OBSERVATION if info.get(key) is not None), None)


def _resets_in_the_same_step(made: Any) -> bool:
    """Whether a vector environment says so, as Gymnasium's do since 1.1."""
    mode = (getattr(made, "metadata", None) or {}).get("autoreset_mode")
    return "samestep" in str(getattr(mode, "value", mode)).lower().replace("_", "")
