"""Several scenes in one process: the simulator in one thread, and a player for each of its slots in another.

Simulators that step many scenes at once must be driven by the thread that made them, and move all scenes together;
players know nothing of this. Each has a ``SceneSlot``, asks it for a scene of the task it is to play, plays an episode
there, and leaves. The stage steps once when every slot with an episode has said what to do, and builds another task's
scenes when nobody plays any more in those that stand.
"""

from __future__ import annotations

import logging
import queue
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from robotrials.benchmarks.base import Env, Observation, StepOutcome
from robotrials.benchmarks.scene_group import ManyScenes, SceneGroup
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.global_random import seed_global_generators, undisturbed
from robotrials.plan.task import TaskSpec

log = logging.getLogger(__name__)

_TICK_S = 1.0

Kind = Literal["take", "reset", "observe", "step", "render", "leave", "end"]


@dataclass(frozen=True)
class _Request:
    """What slot ``slot`` asks of the simulator's thread."""

    slot: int
    kind: Kind
    argument: Any
    answer: Future[Any]


class SceneSlot:
    """Slot ``slot`` of a stage, for the player in it."""

    def __init__(self, slot: int, stage: SceneHost) -> None:
        self.slot = slot
        self._stage = stage
        self.is_waiting: Callable[[], None] = lambda: None
        """Called now and then while this player waits and the others go on: waiting for them is no hang."""

    @property
    def is_broken(self) -> bool:
        """The scenes that stand have failed, for whomever of their players it was."""
        return self._stage.is_broken

    def take(self, benchmark: ManyScenes, task: TaskSpec) -> Env:
        """A scene of ``task``, once there is one; to be reset, played, and left. The others wait for its steps from
        its reset on.

        Raises:
            Whatever building the scenes raises.
        """
        self.ask("take", (benchmark, task))
        return SlotEnv(self)

    def leave(self) -> None:
        """The episode here is over; safe to call twice."""
        self.ask("leave")

    def ask(self, kind: Kind, argument: Any = None) -> Any:
        request = _Request(self.slot, kind, argument, Future())
        seen = self._stage.put(request)
        while True:
            try:
                return request.answer.result(timeout=_TICK_S)
            except TimeoutError:
                if request.answer.done():
                    return request.answer.result()
                if seen != self._stage.moves:
                    seen = self._stage.moves
                    self.is_waiting()


class SlotEnv(Env):
    """The scene of one slot, as the environment that its player knows."""

    def __init__(self, place: SceneSlot) -> None:
        self._place = place

    def reset(self, episode: EpisodeSpec) -> None:
        self._place.ask("reset", episode)

    def observe(self, cameras: Sequence[str]) -> Observation:
        observation: Observation = self._place.ask("observe", cameras)
        return observation

    def step(self, action: np.ndarray) -> StepOutcome:
        outcome: StepOutcome = self._place.ask("step", action)
        return outcome

    def render(self) -> np.ndarray:
        frame: np.ndarray = self._place.ask("render")
        return frame

    def close(self) -> None:
        """As ``SceneSlot.leave``: the simulator is the stage's to close."""
        self._place.leave()


class SceneHost:
    """``n_slots`` places, and the simulator they share.

    When a step raises, every player that was waiting for it gets the exception, and so does each that goes on in these
    scenes: they are built anew for whoever takes a place next.
    """

    def __init__(self, n_slots: int) -> None:
        self._n_slots = n_slots
        self._requests: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        self._group: SceneGroup | None = None
        self._task: TaskSpec | None = None
        self._wanted: list[_Request] = []
        self._here: set[int] = set()
        """Slots that were taken and not left yet."""
        self._playing: set[int] = set()
        """Those of them that were reset: the group waits for their actions."""
        self._acting: dict[int, _Request] = {}
        self._broken: BaseException | None = None
        self.moves = 0
        """Grows with all that the simulator does."""

    @property
    def is_broken(self) -> bool:
        return self._broken is not None

    def put(self, request: _Request) -> int:
        """Have it done; the count of moves before."""
        moves = self.moves
        self._requests.put(request)
        return moves

    def run(self, players: Sequence[Callable[[SceneSlot], None]]) -> None:
        """Run ``players[k]`` in slot k, and the simulator in this thread, until all have returned.

        Raises:
            BaseException: what a player raised, once all have ended; the first slot's, if several did.
        """
        errors: dict[int, BaseException] = {}
        places = [SceneSlot(slot, self) for slot in range(self._n_slots)]
        threads = [
            threading.Thread(target=_play, args=(player, place, errors), name=f"slot-{place.slot}", daemon=True)
            for player, place in zip(players, places, strict=True)
        ]
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            request = self._requests.get()
            left -= request.kind == "end"
            if request.kind == "step":
                self._acting[request.slot] = request
            elif request.kind == "take":
                self._leave(request.slot)
                self._wanted.append(request)
            else:
                with undisturbed():
                    _answer(request, self._do)
            self.moves += 1
            if self._acting and self._playing <= self._acting.keys():
                self._step()
            self._give_places()
        for thread in threads:
            thread.join()
        self._close()
        if errors:
            raise errors[min(errors)]

    def _do(self, request: _Request) -> Any:
        if request.kind in ("leave", "end"):
            return self._leave(request.slot)
        if self._broken is not None:
            raise self._broken
        assert self._group is not None
        if request.kind == "reset":
            self._playing.discard(request.slot)  # if it cannot be set, nobody shall wait for it
            seed_global_generators(request.argument)
            self._group.reset(request.slot, request.argument)
            self._playing.add(request.slot)
            return None
        if request.kind == "observe":
            return self._group.observe(request.slot, request.argument)
        return self._group.render(request.slot)

    def _leave(self, slot: int) -> None:
        self._here.discard(slot)
        self._playing.discard(slot)

    def _step(self) -> None:
        acting, self._acting = self._acting, {}
        try:
            if self._broken is not None:
                raise self._broken
            assert self._group is not None
            with undisturbed():
                outcomes = self._group.step({slot: request.argument for slot, request in acting.items()})
            outcomes = {slot: outcomes[slot] for slot in acting}
        except BaseException as error:  # noqa: BLE001  raised where the steps were asked for
            self._broken = error
            for request in acting.values():
                request.answer.set_exception(error)
        else:
            for slot, request in acting.items():
                outcome = outcomes[slot]
                if isinstance(outcome, Exception):
                    request.answer.set_exception(outcome)
                else:
                    request.answer.set_result(outcome)
        self.moves += 1

    def _give_places(self) -> None:
        """To those who want the task that stands; to the others once nobody plays, first come, first served."""
        while self._wanted:
            benchmark, task = self._wanted[0].argument
            stands = self._group is not None and self._broken is None
            if stands and any(request.argument[1] == self._task for request in self._wanted):
                task = self._task
            elif self._here:
                return
            else:
                self._build(benchmark, task)
                continue
            served = [request for request in self._wanted if request.argument[1] == task]
            self._wanted = [request for request in self._wanted if request.argument[1] != task]
            for request in served:
                self._here.add(request.slot)
                request.answer.set_result(None)

    def _build(self, benchmark: ManyScenes, task: TaskSpec) -> None:
        """The scenes of ``task`` in the place of those that stand; if they cannot be built, who wants them is told."""
        try:
            self._close()
            self._group = benchmark.make_group(task, self._n_slots)
            self._task = task
        except BaseException as error:  # noqa: BLE001  raised where the scenes were asked for
            served = [request for request in self._wanted if request.argument[1] == task]
            self._wanted = [request for request in self._wanted if request.argument[1] != task]
            for request in served:
                request.answer.set_exception(error)
        self.moves += 1

    def _close(self) -> None:
        group, self._group, self._task, self._broken = self._group, None, None, None
        if group is None:
            return
        try:
            group.close()
        except Exception:  # noqa: BLE001  scenes that cannot even be closed must not take the process with them
            log.error("closing the scenes failed\n%s", traceback.format_exc())


def _play(player: Callable[[SceneSlot], None], place: SceneSlot, errors: dict[int, BaseException]) -> None:
    try:
        player(place)
    except BaseException as error:  # noqa: BLE001  raised by run, in the caller's thread
        errors[place.slot] = error
    finally:
        place.ask("end")


def _answer(request: _Request, do: Callable[[_Request], Any]) -> None:
    try:
        request.answer.set_result(do(request))
    except BaseException as error:  # noqa: BLE001  raised where it was asked for
        request.answer.set_exception(error)
