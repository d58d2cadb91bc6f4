"""The checks of ``robotrials check-env``: one method for each promise of a benchmark."""

from __future__ import annotations

import gc
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Benchmark, Env
from robotrials.benchmarks.conformance import trace as traces
from robotrials.benchmarks.conformance.episodes import ending_problem, lost, start_problem
from robotrials.benchmarks.conformance.failing_env import FailingEnv
from robotrials.benchmarks.conformance.fresh import play_elsewhere
from robotrials.benchmarks.conformance.memory import LEAST_EPISODES, growth, growth_problem, resident_mb
from robotrials.benchmarks.conformance.promises import PROMISES
from robotrials.benchmarks.conformance.shapes import entry_problem, keys_problem, picture_problem, trace_problem
from robotrials.benchmarks.conformance.trace import VIDEO, Trace, first_difference, play
from robotrials.benchmarks.registry import make_benchmark
from robotrials.benchmarks.scoring import scoring_of
from robotrials.errors import ConfigError, NoPictureError
from robotrials.plan.config import EnvChoice, option
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.global_random import seed_global_generators
from robotrials.plan.task import TaskSpec
from robotrials.plan.task_check import checked


@dataclass(frozen=True)
class CheckSettings:
    """How thoroughly to look."""

    episodes: int = option(3, "episodes that are compared")
    steps: int = option(40, "steps of each that are compared")
    memory: int = option(50, "episodes over which memory must not grow; 0 leaves it out")
    memory_seconds: float = option(90.0, "no longer than this for them")
    expert: bool = option(True, "let the scripted expert, where there is one, play every other episode")
    tasks: int = option(1, "how many of the selected tasks are checked")


@dataclass(frozen=True)
class PromiseResult:
    """What came of one promise: ``kept`` True or False, None where it could not be tried; ``detail`` says where and by
    how much, or what was measured."""

    task: str
    promise: str
    kept: bool | None
    detail: str = ""

    @property
    def sentence(self) -> str:
        return PROMISES[self.promise]

    def __str__(self) -> str:
        word = {True: "kept", False: "BROKEN", None: "not tried"}[self.kept]
        return f"{self.task}: {self.promise} {word}" + (f": {self.detail}" if self.detail else "")


class Broken(Exception):  # noqa: N818  it is the answer to a question
    """Raised by a check when the promise is broken; its words are the finding's detail."""


class NotTried(Exception):  # noqa: N818  it is no error
    """Raised by a check that cannot be made here."""


@dataclass
class TaskChecker:
    """The checks of one task. Each is a method called as its promise in ``PROMISES``, with underscores; it returns what
    it has measured, or raises ``Broken``."""

    choice: EnvChoice
    settings: CheckSettings
    benchmark: Benchmark
    number: int
    env: Env | None = None
    reference: dict[int, Trace] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan = traces.plan_of(self.benchmark, self.settings.episodes)
        self.plan = plan
        self.scoring = scoring_of(self.benchmark)
        self._ends: list[dict[str, np.ndarray]] = []
        self.task: TaskSpec = plan.tasks[self.number]
        self.episodes: list[EpisodeSpec] = [e for e in plan if plan.task_of(e) is self.task]
        self._scratch = tempfile.TemporaryDirectory(prefix="robotrials-check-")
        self._fresh: tuple[list[Trace], str, str] | None = None

    def run(self, on_begin: Callable[[str, str], None]) -> Iterator[PromiseResult]:
        with self._scratch:
            for promise in PROMISES:
                on_begin(self.task.name, promise)
                attempt: Callable[[], str | None] = getattr(self, promise.replace(" ", "_"))
                kept: bool | None = True
                try:
                    detail = attempt() or ""
                except Broken as broken:
                    kept, detail = False, str(broken)
                except NotTried as reason:
                    kept, detail = None, str(reason)
                except Exception as error:  # noqa: BLE001  whatever the benchmark raises breaks the promise being tried
                    kept, detail = False, f"{type(error).__name__}: {error}{_meant(error)}"
                    self._drop_env()
                yield PromiseResult(self.task.name, promise, kept, detail)

    # -- what it says of itself

    def tasks(self) -> str:
        again = make_benchmark(self.choice).tasks()
        if again != self.benchmark.tasks():
            raise Broken("two calls of tasks() give different tasks")
        task = self.task
        try:
            checked([task])
        except ConfigError as error:
            raise Broken(str(error)) from None
        return f"{len(again)} selected"

    def instruction(self) -> str:
        if not isinstance(self.task.instruction, str) or not self.task.instruction.strip():
            flag = ": --env.instruction=SENTENCE" if hasattr(self.benchmark.config, "instruction") else ""
            words = (
                f"the instruction is {self.task.instruction!r}; a language-conditioned policy needs a sentence{flag}"
            )
            raise Broken(words)
        return repr(self.task.instruction)

    # -- what it shows

    def shapes(self) -> str:
        env, task = self._env(), self.task
        self._reset(env, self.episodes[0])
        seen = env.observe(task.images)
        states = {key for key in task.observations if key not in task.images}
        _refuse(keys_problem(set(seen) - {"task"}, set(task.observations)), "observe(all cameras)")
        for key, feature in task.observations.items():
            _refuse(entry_problem(seen[key], feature), key)
        _refuse(keys_problem(set(env.observe(())) - {"task"}, states), "observe(no camera)")
        for camera in task.images:
            found = set(env.observe([camera])) - {"task"}
            _refuse(keys_problem(found, {*states, camera}), f"observe({camera})")
        picture = traces.picture_of(env)
        if picture is not None:
            _refuse(picture_problem(picture), "render()")
        if (
            task.record_key
            and picture is not None
            and not np.array_equal(picture, env.observe([task.record_key])[task.record_key])
        ):
            raise Broken(f"record_key is {task.record_key}, but render() gives another picture")
        for number in range(len(self.episodes)):
            _refuse(trace_problem(self._trace(number), task), f"episode {number},")
        return f"{len(task.observations)} entries, at every step"

    def picture(self) -> str:
        env = self._env()
        self._reset(env, self.episodes[0])
        try:
            pictures = [env.render()]
            env.step(next(traces.draw_actions(self.task.action, self.episodes[0])))
            pictures.append(env.render())
        except NoPictureError as error:
            raise (NotTried if error.by_design else Broken)(f"{error}; videos are left out") from None
        if not any(np.any(picture) for picture in pictures):
            raise Broken("render() is black all over, after the reset and after a step")
        return f"{pictures[0].shape[1]} x {pictures[0].shape[0]}"

    def own_arrays(self) -> None:
        env = self._env()
        self._reset(env, self.episodes[0])
        given = {k: v for k, v in env.observe(self.task.images).items() if isinstance(v, np.ndarray)}
        picture = traces.picture_of(env)
        if picture is not None:
            given[VIDEO] = picture
        kept = {key: value.copy() for key, value in given.items()}
        actions = traces.draw_actions(self.task.action, self.episodes[0])
        for _ in range(min(5, self.settings.steps)):
            outcome = env.step(next(actions))
            if outcome.terminated or outcome.truncated:
                break
        env.observe(self.task.images)
        traces.picture_of(env)
        changed = [key for key in given if not _same(given[key], kept[key])]
        if changed:
            raise Broken(f"{', '.join(changed)}: the array that was handed out changes with later steps; copy it")

    # -- an episode is a function of its spec

    def same_seed(self) -> str:
        for number in range(len(self.episodes)):
            self._compare(number, self._play(number), self._play(number), "played twice in a row")
        return f"{len(self.episodes)} episodes of up to {max(t.steps for t in self.reference.values())} steps"

    def own_seed(self) -> str:
        if self.task.n_init_states == 1:
            raise NotTried("it has a single initial state")
        first = self._trace(0)
        for number in range(1, len(self.episodes)):
            other = self._trace(number)
            shared = first.seen[0].keys() & other.seen[0].keys()
            if any(not _same(first.seen[0][key], other.seen[0][key]) for key in shared):
                return "the first observations differ"
        raise Broken(f"{len(self.episodes)} episodes with different seeds begin with the very same observation")

    def other_episodes(self) -> None:
        last = len(self.episodes) - 1
        env = self._env()
        self._play(last)
        play(env, self.task, self.episodes[last], max(2, self.settings.steps // 7))  # and left in the middle
        self._compare(0, self._trace(0), self._play(0), f"after episode {last}, played and then left in the middle")

    def rebuilt(self) -> str:
        others = [task for task in self.plan.tasks if task is not self.task]
        reference = self._trace(0)
        self._drop_env()
        if others:
            other = self.benchmark.make(others[0])
            episode = next(e for e in self.plan if self.plan.task_of(e) is others[0])
            play(other, others[0], episode, max(2, self.settings.steps // 4))
            other.close()
        between = f" and {others[0].name} in between" if others else ""
        self._compare(0, reference, self._play(0), f"in an environment built anew{between}")
        return f"close() and make(){between}"

    def looking(self) -> None:
        for number in range(min(2, len(self.episodes))):
            often = self._play(number, "always")
            self._compare(number, self._play(number, "never"), often, "never looked at, and looked at all the time")
            self._compare(number, self._trace(number), often, "looked at now and then, and all the time")

    def fresh_process(self) -> None:
        numbers = list(range(len(self.episodes)))[::-1]
        self._fresh = (*self._in_fresh_process(numbers),)
        found = self._fresh[0]
        self._compare(numbers[0], self._trace(numbers[0]), found[0], "here, and as the first of a fresh process")

    def order(self) -> None:
        if self._fresh is None:
            raise NotTried("the fresh process did not end well")
        for number, found in zip(list(range(len(self.episodes)))[::-1], self._fresh[0], strict=True):
            self._compare(number, self._trace(number), found, "here, and in reverse order elsewhere")

    def clean_output(self) -> None:
        if self._fresh is None:
            raise NotTried("the fresh process did not end well")
        for name, said in zip(("stdout", "stderr"), self._fresh[1:], strict=True):
            if said.strip():
                lines = said.strip().splitlines()
                raise Broken(f"{len(lines)} lines on {name}, such as: {lines[-1][:160]}")

    # -- how an episode goes

    def success(self) -> str:
        steps = 0
        for number in range(len(self.episodes)):
            trace = self._trace(number)
            for step, (reward, _, _, success) in enumerate(trace.outcomes, 1):
                steps += 1
                if step in trace.odd:
                    raise Broken(f"episode {number}, step {step}: success is {trace.odd[step]}; right is True or False")
                if success is None:
                    raise Broken(f"episode {number}, step {step}: success is None; read it from the simulator")
                if not math.isfinite(reward):
                    raise Broken(f"episode {number}, step {step}: the reward is {reward}")
        played = [self._trace(number) for number in range(len(self.episodes))]
        won, gone = sum(any(o[3] for o in trace.outcomes) for trace in played), lost(played)
        again = f"; {gone} were not solved any more at the last step: --env.success=end counts that one" if gone else ""
        return f"told at each of {steps} steps; {won} of {len(self.episodes)} episodes succeeded{again}"

    def start(self) -> None:
        if self.task.max_steps > 1:
            _refuse(start_problem([self._trace(number) for number in range(len(self.episodes))]), "")

    def step_limit(self) -> str:
        env, episode, limit = self._env(), self.episodes[0], self.task.max_steps
        self._reset(env, episode)
        actions = traces.draw_actions(self.task.action, episode)
        first = before = self._states(env)
        for step in range(1, limit + 1):
            try:
                outcome = env.step(next(actions))
            except Exception as error:
                raise Broken(f"step {step} of {limit} raises {type(error).__name__}: {error}{_meant(error)}") from error
            now = self._states(env)
            if outcome.truncated or outcome.terminated:
                self._ends = [first, before, now]
            before = now
            if outcome.truncated and step < limit:
                raise Broken(f"truncated after step {step}, but max_steps is {limit}")
            if outcome.terminated:
                return f"it ended by itself after {step} of {limit} steps, {'' if outcome.success else 'un'}solved"
        return f"{limit} steps played"

    def ending(self) -> str:
        if not self._ends:
            return "the environment ends no episode by itself within the step limit"
        _refuse(ending_problem(self._ends), "")
        return ""

    def _states(self, env: Env) -> dict[str, np.ndarray]:
        """What is observed without drawing; of an environment that shows pictures alone, these."""
        seen = env.observe(()) if len(self.task.images) < len(self.task.observations) else env.observe(self.task.images)
        return {key: np.array(value) for key, value in seen.items() if isinstance(value, np.ndarray)}

    def memory(self) -> str:
        if not self.settings.memory:
            raise NotTried("left out by --memory=0")
        env, deadline = self._env(), time.monotonic() + self.settings.memory_seconds
        sizes: list[float] = []
        for number in range(self.settings.memory):
            self._short_episode(env, self.episodes[number % len(self.episodes)], number)
            gc.collect()
            sizes.append(resident_mb())
            if time.monotonic() > deadline:
                break
        if len(sizes) < LEAST_EPISODES:
            raise NotTried(f"{len(sizes)} episodes in {self.settings.memory_seconds:.0f} s are too few to tell")
        _refuse(growth_problem(sizes), "")
        return growth(sizes)

    def _short_episode(self, env: Env, episode: EpisodeSpec, number: int) -> None:
        """A few steps and few pictures: what leaks, leaks in these."""
        self._reset(env, episode)
        actions = traces.draw_actions(self.task.action, episode)
        for _ in range(5):
            outcome = env.step(next(actions))
            if outcome.terminated or outcome.truncated:
                break
        env.observe(self.task.images)
        if number % 5 == 0:
            traces.picture_of(env)

    def close(self) -> None:
        env = self._env()
        self._reset(env, self.episodes[0])
        traces.picture_of(env)
        try:
            env.close()
            env.close()
            self.env = None
            self._env().close()  # one that was never reset
        finally:
            self.env = None

    # -- means

    def _env(self) -> Env:
        if self.env is None:
            self.env = FailingEnv(lambda: self.benchmark.make(self.task), self.scoring)
        return self.env

    def _drop_env(self) -> None:
        env, self.env = self.env, None
        if env is not None:
            env.close()

    def _reset(self, env: Env, episode: EpisodeSpec) -> None:
        seed_global_generators(episode)
        env.reset(episode)

    def _play(self, number: int, looks: traces.Looks = "some") -> Trace:
        expert = self.settings.expert and number % 2 == 0
        steps = min(self.settings.steps, self.task.max_steps)
        found = play(self._env(), self.task, self.episodes[number], steps, looks, expert)
        if looks == "some":
            self.reference.setdefault(number, found)
        return found

    def _trace(self, number: int) -> Trace:
        """The first playing of that episode, which all others are compared with."""
        return self.reference[number] if number in self.reference else self._play(number)

    def _compare(self, number: int, a: Trace, b: Trace, how: str) -> None:
        difference = first_difference(a, b)
        if difference:
            raise Broken(f"episode {number} (seed {self.episodes[number].seed}), {how}: {difference}")

    def _in_fresh_process(self, numbers: list[int]) -> tuple[list[Trace], str, str]:
        path = Path(self._scratch.name) / "traces.npz"
        order: dict[str, Any] = {
            "type": self.choice.type,
            "options": dict(self.choice.options),
            "task": self.number,
            "episodes": self.settings.episodes,
            "steps": min(self.settings.steps, self.task.max_steps),
            "expert": self.settings.expert,
            "numbers": numbers,
            "path": str(path),
        }
        try:
            said = play_elsewhere(order)
        except ChildProcessError as error:
            raise Broken(str(error)) from None
        if not path.exists():
            raise Broken("closing the environment ends the process")
        return traces.load(path, len(numbers)), *said


def _refuse(problem: str | None, what: str) -> None:
    if problem:
        raise Broken(f"{what} {problem}".lstrip())


def _meant(error: Exception) -> str:
    """How to say that an exception of the simulator's own means failure; empty for Python's and ours."""
    module = type(error).__module__
    if module == "builtins" or module.startswith(("robotrials.", "numpy")):
        return ""
    return f"; if it means failure: --env.failure_exceptions={module}.{type(error).__qualname__}"


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal; NaN equals itself, which ``shapes`` finds fault with."""
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
