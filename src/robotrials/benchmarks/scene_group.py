"""Simulators that step many scenes at once (Isaac Lab, ManiSkill on a GPU), in terms of episodes that do not.

A ``SceneGroup`` has slots. Each holds one scene, takes one episode after the other, and is reset alone; ``step`` moves
all of them by one control step. What plays an episode knows ``Env`` only, so ``play_together`` gives each slot a player
with an ``Env`` of its own, in a thread of its own, and brings their steps together: the group steps once when every
slot that is playing has said what to do. Players never touch the simulator; whoever called ``play_together`` does, in
its own thread, because such simulators must be driven by the one that started them.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

import numpy as np

from robotrials.benchmarks.base import Benchmark, Env, Observation, StepOutcome
from robotrials.errors import ConfigError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec


class SceneGroup(ABC):
    """``n_slots`` scenes of one task in this process.

    ``exact`` says whether an episode comes out the same in any slot and beside any others. Where it does not, which is
    the rule on a GPU, a run must be given ``--eval.exact=false``.
    """

    n_slots: int
    exact: ClassVar[bool] = False

    @abstractmethod
    def reset(self, slot: int, episode: EpisodeSpec) -> None:
        """Set the scene of one slot; the others stay as they are."""

    @abstractmethod
    def observe(self, slot: int, cameras: Sequence[str]) -> Observation:
        """As ``Env.observe``. A group that draws all scenes in one go keeps the others' pictures until it steps."""

    @abstractmethod
    def step(self, actions: Mapping[int, np.ndarray]) -> dict[int, StepOutcome]:
        """One control step of all scenes, with the actions (D,) of some; the outcomes of those.

        Scenes without an action may stand still or drift: nobody is playing there. None may be reset by this.
        """

    @abstractmethod
    def render(self, slot: int) -> np.ndarray:
        """As ``Env.render``."""

    @abstractmethod
    def close(self) -> None:
        """As ``Env.close``."""


class ManyScenes(Benchmark):
    """A benchmark whose simulator steps many scenes at once; ``make`` gives a group of one as an ``Env``."""

    @property
    @abstractmethod
    def scenes(self) -> int:
        """Slots that its options ask for in each process, at least 1."""

    @abstractmethod
    def make_group(self, task: TaskSpec, n_slots: int) -> SceneGroup:
        """Build the simulator of one task with ``n_slots`` scenes in this process."""

    def make(self, task: TaskSpec) -> Env:
        return OneScene(self.make_group(task, 1))


class EnvGroup(SceneGroup):
    """Scenes that do not know of each other, stepped in turn: any benchmark as a group.

    It saves what one process costs beside its scenes: imports of a simulator and of torch, some hundreds of megabytes.
    """

    exact = True

    def __init__(self, envs: Sequence[Env]) -> None:
        if not envs:
            raise ConfigError("a group has at least one scene")
        self._envs = tuple(envs)
        self.n_slots = len(self._envs)

    def reset(self, slot: int, episode: EpisodeSpec) -> None:
        self._envs[slot].reset(episode)

    def observe(self, slot: int, cameras: Sequence[str]) -> Observation:
        return self._envs[slot].observe(cameras)

    def step(self, actions: Mapping[int, np.ndarray]) -> dict[int, StepOutcome]:
        return {slot: self._envs[slot].step(actions[slot]) for slot in sorted(actions)}

    def render(self, slot: int) -> np.ndarray:
        return self._envs[slot].render()

    def close(self) -> None:
        for env in self._envs:
            env.close()


class OneScene(Env):
    """A group of one slot, as the environment that it is."""

    def __init__(self, group: SceneGroup) -> None:
        self.group = group

    def reset(self, episode: EpisodeSpec) -> None:
        self.group.reset(0, episode)

    def observe(self, cameras: Sequence[str]) -> Observation:
        return self.group.observe(0, cameras)

    def step(self, action: np.ndarray) -> StepOutcome:
        return self.group.step({0: action})[0]

    def render(self) -> np.ndarray:
        return self.group.render(0)

    def close(self) -> None:
        self.group.close()


class SlotEnv(Env):
    """One slot of a group, for a player in another thread. ``leave`` when the episode is over: until then, and from
    its reset on, the group waits for its actions."""

    def __init__(self, slot: int, ask: Callable[[int, str, Any], Any]) -> None:
        self.slot = slot
        self._ask = ask

    def reset(self, episode: EpisodeSpec) -> None:
        self._ask(self.slot, "reset", episode)

    def observe(self, cameras: Sequence[str]) -> Observation:
        observation: Observation = self._ask(self.slot, "observe", cameras)
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        outcome: StepOutcome = self._ask(self.slot, "step", action)
        return outcome

    def render(self) -> np.ndarray:
        frame: np.ndarray = self._ask(self.slot, "render", None)
        return frame

    def leave(self) -> None:
        """The slot's scene is nobody's until it is reset; safe to call twice."""
        self._ask(self.slot, "leave", None)

    def close(self) -> None:
        """As ``leave``: the simulator is closed by whoever made the group."""
        self.leave()


def play_together(group: SceneGroup, players: Sequence[Callable[[SlotEnv], None]]) -> None:
    """Run ``players[k]`` on slot k, each in a thread, and the simulator in this one; returns when all have returned.

    A player plays any number of episodes. When ``group.step`` raises, every player that was waiting for it gets the
    exception, and so does each later call: the group is to be built anew.

    Raises:
        ConfigError: more players than slots.
        BaseException: what a player raised, once all have ended; the first slot's, if several did.
    """
    if len(players) > group.n_slots:
        raise ConfigError(f"{len(players)} players for a group of {group.n_slots} scenes")
    _Meeting(group).run(players)


class _Meeting:
    """The state of one ``play_together``: who is playing, and who waits for the next step."""

    def __init__(self, group: SceneGroup) -> None:
        self._group = group
        self._requests: queue.SimpleQueue[tuple[int, str, Any, Future[Any]]] = queue.SimpleQueue()
        self._playing: set[int] = set()
        self._waiting: dict[int, tuple[np.ndarray, Future[Any]]] = {}
        self._broken: BaseException | None = None

    def run(self, players: Sequence[Callable[[SlotEnv], None]]) -> None:
        errors: dict[int, BaseException] = {}
        threads = [
            threading.Thread(target=self._player, args=(slot, player, errors), name=f"slot-{slot}", daemon=True)
            for slot, player in enumerate(players)
        ]
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            slot, kind, argument, answer = self._requests.get()
            if kind == "end":
                left -= 1
            if kind == "step":
                self._waiting[slot] = (argument, answer)
            else:
                self._do(slot, kind, argument, answer)
            if self._waiting and self._playing <= self._waiting.keys():
                self._step()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[min(errors)]

    def _player(self, slot: int, player: Callable[[SlotEnv], None], errors: dict[int, BaseException]) -> None:
        try:
            player(SlotEnv(slot, self._ask))
        except BaseException as error:  # noqa: BLE001  raised by run, in the caller's thread
            errors[slot] = error
        finally:
            self._ask(slot, "end", None)

    def _ask(self, slot: int, kind: str, argument: Any) -> Any:
        answer: Future[Any] = Future()
        self._requests.put((slot, kind, argument, answer))
        return answer.result()

    def _do(self, slot: int, kind: str, argument: Any, answer: Future[Any]) -> None:
        try:
            if kind in ("leave", "end"):
                self._playing.discard(slot)
                answer.set_result(None)
                return
            if self._broken is not None:
                raise self._broken
            if kind == "reset":
                self._playing.discard(slot)  # if it cannot be set, nobody shall wait for it
                self._group.reset(slot, argument)
                self._playing.add(slot)
                answer.set_result(None)
            elif kind == "observe":
                answer.set_result(self._group.observe(slot, argument))
            else:
                answer.set_result(self._group.render(slot))
        except BaseException as error:  # noqa: BLE001  raised where it was asked for
            answer.set_exception(error)

    def _step(self) -> None:
        waiting, self._waiting = self._waiting, {}
        try:
            if self._broken is not None:
                raise self._broken
            outcomes = self._group.step({slot: action for slot, (action, _) in waiting.items()})
        except BaseException as error:  # noqa: BLE001  raised where the steps were asked for
            self._broken = error
            for _, answer in waiting.values():
                answer.set_exception(error)
            return
        for slot, (_, answer) in waiting.items():
            answer.set_result(outcomes[slot])
