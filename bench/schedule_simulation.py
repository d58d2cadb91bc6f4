"""2,000 LIBERO episodes on 64 cores and one GPU, in simulated time: our schedule against bound, shards and lock step.

    python bench/schedule_simulation.py [--look_ms=270] [--pass_ms=5] [--row_ms=0.5] ...

The queue is the real one (``running.queue.EpisodeQueue``); the batching rule is the policy server's: one pass in
flight, and it takes whatever waits. Only time is simulated. Costs are measured inputs: LIBERO's from bench/libero.py
(docs/benchmarks.md), a pass of a small VLA on a large GPU from its users' figures. Ways to do the same work:

bound       no waiting and no loading: all that cores must do, divided by 64, each look with a pass of its own
queue       robotrials: one shared queue, no barrier
neighbours  the same workers, but each with its fixed share, of neighbours in the plan: one or two tasks
balanced    the same, each with its share of every task
lock step   one task after the other, its fifty episodes side by side: nobody goes on before the slowest has
"""

from __future__ import annotations

import argparse
import functools
import heapq
import itertools
import json
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from robotrials.engine.queue import EpisodeQueue, LeasedEpisode
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan, build_plan
from robotrials.plan.shards import Shard, slice_plan
from robotrials.plan.task import ActionSpec, TaskSpec

# LeRobot's step limits of LIBERO's suites.
LIMITS = {"libero_spatial": 280, "libero_object": 280, "libero_goal": 300, "libero_10": 520}
N_EPISODES = 50


@dataclass(frozen=True)
class Costs:
    """Milliseconds, but ``chunk`` actions a look and ``workers``."""

    step_ms: float
    look_ms: float
    reset_ms: float
    load_ms: float
    pass_ms: float
    row_ms: float
    chunk: int
    max_batch: int
    workers: int
    jitter: float

    def inference(self, rows: int) -> float:
        return self.pass_ms + self.row_ms * rows


@dataclass(frozen=True)
class Episode:
    """What will happen in it, whoever plays it: the milliseconds of its reset and between its looks."""

    reset: float
    looks: tuple[float, ...]

    @property
    def alone(self) -> float:
        return self.reset + sum(self.looks)


def make_plan() -> Plan:
    action = ActionSpec(7, (-1.0,) * 7, (1.0,) * 7)
    tasks = [
        TaskSpec(suite, f"{suite}_{i}", i, "simulated", limit, 20.0, {}, action)
        for suite, limit in LIMITS.items()
        for i in range(10)
    ]
    return build_plan(tasks, N_EPISODES, 1000)


def fates(plan: Plan, costs: Costs, seed: int) -> dict[int, Episode]:
    """Tasks differ in how often and how fast they succeed; what fails runs to its limit."""
    found, kinds = {}, random.Random(seed)
    nature = {task.key: (kinds.uniform(0.3, 1.0), kinds.uniform(0.25, 0.6)) for task in plan.tasks}
    for episode in plan:
        rng = random.Random(f"{seed}-{episode.id}")
        rate, pace = nature[(episode.suite, episode.task)]
        share = min(1.0, rng.gauss(pace, 0.12)) if rng.random() < rate else 1.0
        steps = max(costs.chunk, int(episode.max_steps * share))
        looks = []
        for first in range(0, steps, costs.chunk):
            work = costs.look_ms + costs.step_ms * min(costs.chunk, steps - first)
            looks.append(work * rng.uniform(1 - costs.jitter, 1 + costs.jitter))
        found[episode.id] = Episode(costs.reset_ms, tuple(looks))
    return found


class Simulation:
    """Workers and one policy server, event by event. ``next_of`` hands a worker its next episode, ``tell`` hears how
    long one took."""

    def __init__(
        self,
        costs: Costs,
        episodes: dict[int, Episode],
        next_of: Callable[[int], EpisodeSpec | None],
        tell: Callable[[int, float], None] = lambda worker, ms: None,
    ) -> None:
        self._costs, self._episodes, self._next_of, self._tell = costs, episodes, next_of, tell
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_busy = False
        self._loaded: dict[int, tuple[str, str]] = {}
        self.now = self.busy_ms = self.gpu_ms = 0.0
        self.rows = self.passes = 0

    def run(self) -> float:
        """Milliseconds until the last episode is over."""
        for worker in range(self._costs.workers):
            self._at(0.0, functools.partial(self._begin, worker))
        while self._events:
            self.now, _, action = heapq.heappop(self._events)
            action()
        return self.now

    def _at(self, delay: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + delay, next(self._order), action))

    def _begin(self, worker: int) -> None:
        spec = self._next_of(worker)
        if spec is None:
            return
        key, episode, began = (spec.suite, spec.task), self._episodes[spec.id], self.now
        load = 0.0 if self._loaded.get(worker) == key else self._costs.load_ms
        self._loaded[worker] = key
        self.busy_ms += load + episode.alone
        looks = iter(episode.looks)
        self._at(load + episode.reset, lambda: self._look(worker, looks, began))

    def _look(self, worker: int, looks: Iterator[float], began: float) -> None:
        """The picture is part of the work before the next look: whether it comes first makes no difference in time."""
        work = next(looks, None)
        if work is None:
            self._tell(worker, self.now - began)
            self._begin(worker)
            return
        self._waiting.append(lambda: self._at(work, lambda: self._look(worker, looks, began)))
        self._infer()

    def _infer(self) -> None:
        if self._is_busy or not self._waiting:
            return
        batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._costs.max_batch))]
        self._is_busy = True
        took = self._costs.inference(len(batch))
        self.gpu_ms, self.rows, self.passes = self.gpu_ms + took, self.rows + len(batch), self.passes + 1
        self._at(took, lambda: self._answer(batch))

    def _answer(self, batch: list[Callable[[], None]]) -> None:
        self._is_busy = False
        for go_on in batch:
            go_on()
        self._infer()


def by_queue(plan: Plan, costs: Costs, episodes: dict[int, Episode]) -> Simulation:
    queue = EpisodeQueue(plan)
    held: dict[int, LeasedEpisode] = {}

    def next_of(worker: int) -> EpisodeSpec | None:
        leased = queue.lease(f"w{worker}")
        if leased is None:
            return None
        held[worker] = leased
        return leased.episode

    simulation = Simulation(costs, episodes, next_of, lambda worker, ms: queue.finish(held[worker], ms / 1000))
    simulation.run()
    assert queue.is_finished
    return simulation


def by_shares(shares: list[list[EpisodeSpec]], costs: Costs, episodes: dict[int, Episode]) -> float:
    left = [deque(share) for share in shares]
    return Simulation(costs, episodes, lambda worker: left[worker].popleft() if left[worker] else None).run()


def neighbours(plan: Plan, n: int) -> list[list[EpisodeSpec]]:
    everything = list(plan)
    return [everything[len(everything) * i // n : len(everything) * (i + 1) // n] for i in range(n)]


def balanced(plan: Plan, n: int) -> list[list[EpisodeSpec]]:
    return [list(slice_plan(plan, Shard(i, n))) for i in range(n)]


def in_lock_step(plan: Plan, costs: Costs, episodes: dict[int, Episode]) -> float:
    total = 0.0
    for _, group in itertools.groupby(plan, key=lambda spec: (spec.suite, spec.task)):
        batch = [episodes[spec.id] for spec in group]
        assert len(batch) <= costs.workers
        total += costs.load_ms + max(each.reset for each in batch)
        for looks in itertools.zip_longest(*(each.looks for each in batch), fillvalue=0.0):
            total += costs.inference(len(batch)) + max(looks)
    return total


def bound(costs: Costs, episodes: dict[int, Episode]) -> float:
    n_looks = sum(len(each.looks) for each in episodes.values())
    cores = (sum(each.alone for each in episodes.values()) + n_looks * costs.inference(1)) / costs.workers
    gpu = n_looks / costs.max_batch * costs.inference(costs.max_batch)
    return max(cores, gpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--step_ms", type=float, default=10.0, help="a step without a picture (measured)")
    parser.add_argument("--look_ms", type=float, default=270.0, help="two pictures, drawn by a core (measured)")
    parser.add_argument("--reset_ms", type=float, default=142.0, help="a further reset of the same task (measured)")
    parser.add_argument("--load_ms", type=float, default=5600.0, help="another task's model (measured)")
    parser.add_argument("--pass_ms", type=float, default=5.0, help="a forward pass of no rows")
    parser.add_argument("--row_ms", type=float, default=0.5, help="each row of it")
    parser.add_argument("--chunk", type=int, default=10)
    parser.add_argument("--max_batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--jitter", type=float, default=0.2, help="how far the cost of a look varies, as a share")
    parser.add_argument("--seed", type=int, default=0)
    options = vars(parser.parse_args())
    seed = options.pop("seed")
    costs, plan = Costs(**options), make_plan()
    episodes = fates(plan, costs, seed)
    least, queue = bound(costs, episodes), by_queue(plan, costs, episodes)
    times = {
        "bound": least,
        "queue": queue.now,
        "neighbours": by_shares(neighbours(plan, costs.workers), costs, episodes),
        "balanced": by_shares(balanced(plan, costs.workers), costs, episodes),
        "lock_step": in_lock_step(plan, costs, episodes),
    }
    print(f"{len(plan)} episodes of {len(plan.tasks)} tasks, {costs.workers} cores, one GPU; {costs}")
    for name, ms in times.items():
        print(f"  {name.replace('_', ' '):<10} {ms / 1000:8.1f} s   {ms / least:5.2f} of the bound")
    cores, gpu = queue.busy_ms / queue.now / costs.workers, queue.gpu_ms / queue.now
    print(f"  queue: cores busy {cores:.0%}, GPU {gpu:.0%}, {queue.rows / queue.passes:.1f} rows a pass")
    figures = {name: round(ms / 1000, 1) for name, ms in times.items()}
    print(json.dumps({"bench": "schedule_simulation", **options, "seed": seed, "seconds": figures}))


if __name__ == "__main__":
    main()
