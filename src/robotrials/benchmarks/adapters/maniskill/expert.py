"""ManiSkill's motion planners as experts.

A planner drives the environment itself: it is one long function that plans, steps, looks and plans on. Here it runs in
a thread of its own, and its ``env.step`` hands the action to whoever asked for one, then waits for the next question.
Only one of the two threads ever runs, so the result is that of one thread.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Expert

log = logging.getLogger(__name__)

_SOLUTIONS = "mani_skill.examples.motionplanning.panda.solutions."


class _EpisodeOver(BaseException):
    """Raised out of the planner's ``env.step`` when nobody will ask for an action again. Not an ``Exception``, so that
    a planner that tries again whatever went wrong is left as well."""


class ActionsOf:
    """The actions of a function that wants to step an environment, one at a time.

    ``play`` is called with ``step``, which takes an action and returns when it has been taken. ``next()`` returns the
    action of the next call of ``step``, or None when ``play`` has returned.

    >>> actions = ActionsOf(lambda step: [step(k) for k in (1, 2)])
    >>> actions.next(), actions.next(), actions.next()
    (1, 2, None)
    """

    def __init__(self, play: Callable[[Callable[[Any], None]], Any]) -> None:
        self._play = play
        self._asked = threading.Semaphore(0)
        self._answered = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._action: Any = None
        self._over = self._closing = False
        self._error: BaseException | None = None

    def next(self) -> Any:
        """
        Raises:
            Exception: whatever ``play`` raised.
        """
        if self._over:
            return None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="planner", daemon=True)
            self._thread.start()
        self._asked.release()
        self._answered.acquire()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return None if self._over else self._action

    def close(self) -> None:
        """Leave ``play`` where it stands; safe to call twice."""
        self._closing = True
        if self._thread is not None and not self._over:
            self._asked.release()
            self._thread.join()
        self._over = True

    def _run(self) -> None:
        self._asked.acquire()
        try:
            if not self._closing:
                self._play(self._step)
        except _EpisodeOver:
            pass
        except BaseException as error:  # noqa: BLE001  raised where the action was asked for
            self._error = error
        self._over = True
        self._answered.release()

    def _step(self, action: Any) -> None:
        self._action = action
        self._answered.release()
        self._asked.acquire()
        if self._closing:
            raise _EpisodeOver


class PlannerExpert(Expert):
    """One of ManiSkill's solutions, on a scene that has just been reset.

    When the plan has been played, or no plan is found, it holds the last position it went to: an episode it has not
    solved by then runs to its step limit.
    """

    def __init__(self, sim: Any, solution: str) -> None:
        solve = importlib.import_module(_SOLUTIONS + solution).solve
        self._actions = ActionsOf(lambda step: solve(_Driven(sim, step)))
        self._last: Any = None
        self._sim = sim

    def act(self) -> np.ndarray:
        """(8,): seven joint positions in radians, and the gripper."""
        # Planners print where they find no path.
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            action = self._actions.next()
        for line in said.getvalue().splitlines():
            log.info("the planner says: %s", line)
        if action is not None:
            self._last = np.asarray(action, dtype=np.float32)
        elif self._last is None:
            joints = self._sim.agent.robot.get_qpos()[0].cpu().numpy()
            self._last = np.append(joints[:7], 1.0).astype(np.float32)
        held: np.ndarray = self._last.copy()
        return held

    def close(self) -> None:
        self._actions.close()


class _Driven:
    """What a planner takes for the environment: it may look at all of the simulator, but ``step`` only hands out."""

    def __init__(self, sim: Any, step: Callable[[Any], None]) -> None:
        self.unwrapped = sim
        self._hand_out = step

    def reset(self, seed: Any = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """The scene stands already."""
        return {}, {}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self._hand_out(np.array(action))
        info = self.unwrapped.get_info()
        return {}, None, info.get("success"), False, info

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unwrapped, name)
