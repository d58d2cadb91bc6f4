"""How fast a layout runs, by the figures that were measured: a small simulation of workers, cores and policy servers.

Workers simulate, look, wait for their actions. Cores are shared evenly among whoever wants one. A policy server runs
one pass at a time over what waits, as ``serving.batcher`` does; on the processor it takes a core like any worker.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from robotrials.tuning.costs import EpisodeCost, MeasuredCosts, ServerCost, draw_lengths

_SPREAD = 0.2
"""Of the time between two looks: steps differ, and without it simulated workers march in step."""
_LOOKS_A_WORKER = 25
_LOOKS = 1000
"""Of all workers together; where there are many of them, none needs as many."""
_WARM_LOOKS = 5
_MOMENT = 1e-9


@dataclass(frozen=True)
class RunLayout:
    """``max_batch``: rows of a pass at most (None: as the policy says); ``servers`` 0: the policy is in the worker."""

    workers: int
    servers: int = 0
    max_batch: int | None = None


@dataclass(frozen=True)
class Pace:
    """Steady state: looks a second of all workers, mean rows of a pass, and the busy shares of cores and servers."""

    looks_per_s: float
    rows: float
    cores_busy: float
    servers_busy: float


@dataclass(frozen=True)
class Work:
    """A look and what comes with it: ``think`` seconds on a core, ``sleep`` without one, ``transfer`` a row to the
    server and back, which is the server's work."""

    think: float
    sleep: float
    transfer: float = 0.0


def work_of(cost: EpisodeCost, filmed: float, with_policy: bool) -> Work:
    """Of an average look; resets, films (of the share ``filmed`` of episodes) and the rest are spread over it."""
    own = cost.own_s / cost.looks + (cost.infer if with_policy else 0.0)
    own += filmed * cost.film * cost.steps_a_look
    return Work(own * cost.busy, own * (1.0 - cost.busy), cost.transfer)


def pace(work: Work, layout: RunLayout, cores: int, server: ServerCost | None, answer_s: float = 0.0) -> Pace:
    """``answer_s``: what a policy elsewhere takes, which waits for nobody here."""
    if layout.servers == 0 or server is None:
        each = work.think + work.sleep + answer_s
        rate = min(layout.workers / max(each, 1e-9), cores / max(work.think, 1e-9))
        return Pace(rate, 1.0, min(1.0, rate * work.think / cores), 0.0)
    return _Simulation(work, layout, cores, server).run()


def bound(work: Work, layout: RunLayout, cores: int, server: ServerCost | None, answer_s: float = 0.0) -> Pace:
    """What no schedule of this layout can exceed: nobody waits, and every pass is of the best size."""
    if layout.servers == 0 or server is None:
        return pace(work, layout, cores, server, answer_s)
    most = _cap(server, layout, -(-layout.workers // layout.servers))
    sizes = [size for size in {1, most, *server.infer} if size <= most]
    row_s = min(server.pass_s(size, layout.max_batch) / size + work.transfer for size in sizes)
    on_core = work.think + (0.0 if server.own_device else row_s)
    rate = min(layout.workers / (work.think + work.sleep + row_s), cores / on_core, layout.servers / row_s)
    return Pace(rate, 1.0, rate * on_core / cores, rate * row_s / layout.servers)


def _cap(server: ServerCost, layout: RunLayout, clients: int) -> int:
    """Rows of a pass at most."""
    limit = layout.max_batch if layout.max_batch is not None else server.max_batch
    return max(1, min(limit or clients, clients))


@dataclass
class _Server:
    waiting: deque[int] = field(default_factory=deque)
    playing: list[int] = field(default_factory=list)
    last_pass: float = 0.0
    held_until: float = 0.0
    clients: int = 0


class _Simulation:
    """Workers are ``thinking`` (on cores), ``sleeping``, or at their server.

    Whoever is on a core gets an equal share, so one clock serves all of them: ``virtual`` is the core time that each
    has had since the beginning, and what ends next is the least of the ends on that clock.
    """

    def __init__(self, work: Work, layout: RunLayout, cores: int, server: ServerCost) -> None:
        self._work, self._layout, self._cores, self._cost = work, layout, cores, server
        self._draw = random.Random(0)
        self._now = self._virtual = 0.0
        self._thinking: list[tuple[float, int]] = [(self._spread(work.think), w) for w in range(layout.workers)]
        heapq.heapify(self._thinking)
        self._sleeping: list[tuple[float, int]] = []
        self._passes: list[tuple[float, int]] = []
        """When each pass ends and in which server: on the clock of the cores, or on that of a device of its own."""
        self._servers = [_Server() for _ in range(layout.servers)]
        for worker in range(layout.workers):
            self._servers[worker % layout.servers].clients += 1
        self._asked: set[int] = set()
        """Servers that wait with requests."""

    def run(self) -> Pace:
        warm = _WARM_LOOKS * self._layout.workers
        wanted = warm + min(_LOOKS_A_WORKER * self._layout.workers, max(_LOOKS, _WARM_LOOKS * self._layout.workers))
        done = passes = rows = 0
        since = cores_busy = servers_busy = 0.0
        while done < wanted:
            self._start_passes()
            on_cores = len(self._thinking) + (0 if self._cost.own_device else len(self._passes))
            speed = min(1.0, self._cores / on_cores) if on_cores else 1.0
            step = self._next_step(speed)
            is_counted = done >= warm
            if is_counted and since == 0.0:
                since = self._now
            self._now += step
            self._virtual += step * speed
            if is_counted:
                cores_busy += step * min(self._cores, on_cores)
                servers_busy += step * len(self._passes)
            self._stop_thinking()
            for ended in self._end_passes():
                done += ended
                if is_counted:
                    passes, rows = passes + 1, rows + ended
        elapsed = max(self._now - since, 1e-9)
        return Pace(
            rows / elapsed,
            rows / max(1, passes),
            cores_busy / elapsed / self._cores,
            servers_busy / elapsed / self._layout.servers,
        )

    def _spread(self, seconds: float) -> float:
        return max(_MOMENT, seconds * self._draw.uniform(1.0 - _SPREAD, 1.0 + _SPREAD))

    @property
    def _pass_clock(self) -> float:
        return self._now if self._cost.own_device else self._virtual

    def _start_passes(self) -> None:
        all_busy = not self._cost.own_device and len(self._thinking) >= self._cores
        for number in sorted(self._asked):
            server = self._servers[number]
            cap = _cap(self._cost, self._layout, server.clients)
            size = min(cap, len(server.waiting))
            if size < cap and all_busy and self._now < server.held_until - _MOMENT:
                continue
            server.playing = [server.waiting.popleft() for _ in range(size)]
            server.last_pass = self._cost.pass_s(size, self._layout.max_batch) + size * self._work.transfer
            heapq.heappush(self._passes, (self._pass_clock + server.last_pass, number))
            self._asked.discard(number)

    def _next_step(self, speed: float) -> float:
        """Seconds until something ends, at this speed on cores."""
        ends = [self._servers[number].held_until - self._now for number in self._asked]
        if self._thinking:
            ends.append((self._thinking[0][0] - self._virtual) / speed)
        if self._passes:
            ends.append((self._passes[0][0] - self._pass_clock) / (1.0 if self._cost.own_device else speed))
        if self._sleeping:
            ends.append(self._sleeping[0][0] - self._now)
        return max(min(ends), 0.0)

    def _stop_thinking(self) -> None:
        """Workers that have simulated until their next look sleep, or ask."""
        while self._thinking and self._thinking[0][0] <= self._virtual + _MOMENT:
            _, worker = heapq.heappop(self._thinking)
            heapq.heappush(self._sleeping, (self._now + self._spread(self._work.sleep), worker))
        while self._sleeping and self._sleeping[0][0] <= self._now + 2 * _MOMENT:
            _, worker = heapq.heappop(self._sleeping)
            number = worker % len(self._servers)
            server = self._servers[number]
            if not server.waiting:
                server.held_until = self._now + server.last_pass
            server.waiting.append(worker)
            if not server.playing:
                self._asked.add(number)

    def _end_passes(self) -> list[int]:
        """The rows of each pass that has ended; its workers go on."""
        ended = []
        while self._passes and self._passes[0][0] <= self._pass_clock + _MOMENT:
            _, number = heapq.heappop(self._passes)
            server = self._servers[number]
            ended.append(len(server.playing))
            for worker in server.playing:
                heapq.heappush(self._thinking, (self._virtual + self._spread(self._work.think), worker))
            server.playing = []
            if server.waiting:
                self._asked.add(number)
        return ended


@dataclass(frozen=True)
class TaskLoad:
    """``episodes`` of a task are left to play, ``filmed`` of them are filmed."""

    name: str
    episodes: int
    max_steps: int
    filmed: int = 0


@dataclass(frozen=True)
class Prediction:
    """``wall_s`` of the whole command; ``parts`` are seconds of an average episode, by what takes them."""

    layout: RunLayout
    wall_s: float
    start_s: float
    pace: Pace
    parts: Mapping[str, float]
    memory: float


def predict(
    figures: MeasuredCosts, tasks: Sequence[TaskLoad], layout: RunLayout, pace: Callable[..., Pace] = pace
) -> Prediction:
    """The wall time of a run of ``tasks``: start, the schedule of all episodes at the steady pace, the end. With
    ``bound`` in the place of ``pace``: what it will at least be."""
    draw = random.Random(0)
    episodes: list[float] = []
    cost = _mixture(figures, tasks)
    filmed = sum(task.filmed for task in tasks) / max(1, sum(task.episodes for task in tasks))
    in_worker = layout.servers == 0 and not figures.elsewhere
    work = work_of(cost, filmed, in_worker)
    found = pace(work, layout, figures.cores, figures.server, cost.infer if figures.elsewhere else 0.0)
    # How much longer a look takes in this layout than its own work alone.
    stretch = (layout.workers / found.looks_per_s) / max(work.think + work.sleep, 1e-9)
    for task in tasks:
        own = figures.cost(task.name, task.max_steps)
        for number, steps in enumerate(draw_lengths(own, task.episodes, draw)):
            looks = max(1.0, steps / own.steps_a_look)
            seconds = own.reset + own.rest + steps * own.step + looks * own.render
            seconds += looks * own.infer if in_worker else 0.0
            seconds += steps * own.film if number < task.filmed else 0.0
            episodes.append(seconds * stretch)
    builds = max(len(tasks), layout.workers) * figures.build_s
    start = _start(figures, layout)
    wall = (
        figures.coordinator_s
        + start
        + builds / min(layout.workers, figures.cores)
        + _makespan(episodes, layout.workers)
    )
    parts = {
        "reset": cost.reset + cost.rest,
        "simulate": cost.steps * cost.step,
        "render": cost.looks * cost.render,
        "film": filmed * cost.film * cost.steps,
        "transfer": cost.looks * cost.transfer,
        "infer": cost.looks * (cost.infer if figures.server is None else _alone(figures.server)),
    }
    memory = layout.workers * figures.worker_memory + layout.servers * (figures.server.memory if figures.server else 0)
    return Prediction(layout, wall, start, found, parts, memory)


def _alone(server: ServerCost) -> float:
    return server.pass_s(1, server.max_batch)


def _mixture(figures: MeasuredCosts, tasks: Sequence[TaskLoad]) -> EpisodeCost:
    """The cost of the plan's average episode."""
    total = sum(task.episodes for task in tasks)
    costs = [(task.episodes / total, figures.cost(task.name, task.max_steps)) for task in tasks]
    steps = sum(share * cost.steps for share, cost in costs)
    looks = sum(share * cost.looks for share, cost in costs)
    return EpisodeCost(
        reset=sum(share * cost.reset for share, cost in costs),
        step=sum(share * cost.step * cost.steps for share, cost in costs) / steps,
        render=sum(share * cost.render * cost.looks for share, cost in costs) / looks,
        infer=sum(share * cost.infer * cost.looks for share, cost in costs) / looks,
        rest=sum(share * cost.rest for share, cost in costs),
        film=sum(share * cost.film * cost.steps for share, cost in costs) / steps,
        steps=steps,
        steps_a_look=steps / looks,
        busy=sum(share * cost.busy for share, cost in costs),
        transfer=sum(share * cost.transfer for share, cost in costs),
    )


def _start(figures: MeasuredCosts, layout: RunLayout) -> float:
    """As many workers as there are cores start in ``start_s``; more take turns, and what counts is the average of them.
    A server loads beside them."""
    spare = max(1, figures.cores - layout.servers)
    workers = figures.start_s * max(1.0, 0.5 * (1.0 + layout.workers / spare))
    if layout.servers == 0 or figures.server is None:
        return workers
    return max(figures.server.load_s * max(1.0, layout.servers / figures.cores), workers)


def _makespan(seconds: Sequence[float], workers: int) -> float:
    """Whoever is free takes the next, long ones first."""
    free = [0.0] * workers
    for one in sorted(seconds, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + one)
    return max(free)
