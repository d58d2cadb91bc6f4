"""What was measured, as numbers that the model takes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from robotrials.tuning.protocol import Played


@dataclass(frozen=True)
class EpisodeCost:
    """Means over what was played, in seconds: ``reset`` and ``rest`` (the engine's own) an episode, ``step`` a step,
    ``render`` and ``infer`` a look, ``film`` a step that is filmed. ``steps`` an episode, ``steps_a_look``.
    ``busy`` is the share of a worker's own time in which it wants a core; the rest it sleeps. ``transfer``: of a look
    at a policy server, what is neither the policy's nor waiting for others."""

    reset: float
    step: float
    render: float
    infer: float
    rest: float
    film: float
    steps: float
    steps_a_look: float
    busy: float
    transfer: float = 0.0
    lengths: tuple[int, ...] = ()
    """Of the episodes that were played to their end."""
    is_cut: bool = False
    """None was: ``steps`` is the limit."""

    @property
    def looks(self) -> float:
        return max(1.0, self.steps / self.steps_a_look)

    @property
    def own_s(self) -> float:
        """Seconds of an episode that the worker spends by itself, without the policy."""
        return self.reset + self.rest + self.steps * self.step + self.looks * self.render


@dataclass(frozen=True)
class ServerCost:
    """A policy in a process of its own: seconds of a pass by rows, with the ``max_batch`` it has; ``other``: by other
    values of that option, full. ``max_batch`` None: all that wait."""

    load_s: float
    infer: Mapping[int, float]
    other: Mapping[int, float]
    max_batch: int | None
    own_device: bool
    memory: float
    gpu_memory: float | None = None

    def pass_s(self, rows: int, max_batch: int | None) -> float:
        """Between two sizes that were timed, in proportion; beyond the last, by its slope."""
        if max_batch is not None and max_batch != self.max_batch and max_batch in self.other:
            return self.other[max_batch]
        sizes = sorted(self.infer)
        if rows in self.infer or len(sizes) == 1:
            return self.infer.get(rows, self.infer[sizes[0]])
        above = next((size for size in sizes if size >= rows), sizes[-1])
        below = sizes[max(0, sizes.index(above) - 1)]
        slope = (self.infer[above] - self.infer[below]) / (above - below)
        return max(1e-9, self.infer[below] + slope * (rows - below))


@dataclass(frozen=True)
class MeasuredCosts:
    """All that the model knows. ``costs`` by task; ``start_s`` from starting a worker until it can play, when as many
    start as there are cores; ``build_s`` to build a task's scene; ``coordinator_s`` what comes before and after."""

    cores: int
    memory: float
    gpus: int
    gpu_memory: float | None
    costs: Mapping[str, EpisodeCost]
    start_s: float
    build_s: float
    coordinator_s: float
    worker_memory: float
    server: ServerCost | None
    elsewhere: bool = False
    """The policy answers from a server that is none of the run's."""
    worker_gpu_memory: float | None = None
    rendering: Mapping[str, float] = field(default_factory=dict)
    """Seconds a look by device, where there was a choice."""

    def cost(self, task: str, max_steps: int) -> EpisodeCost:
        """Of a task that was not played: the mean of those that were, as long as its limit is to theirs."""
        if task in self.costs:
            return self.costs[task]
        return _mean_cost(list(self.costs.values()), max_steps)


def cost_of(played: Sequence[Played], max_steps: int, served: bool = False) -> EpisodeCost:
    """Of one task; ``served``: the policy was in a server. Episodes that were cut count as at least so long."""
    steps, looks = sum(p.steps for p in played), sum(p.looks for p in played)
    plain = [p for p in played if not p.filmed] or list(played)
    plain_looks = sum(p.looks for p in plain)
    render = sum(p.render_s for p in plain) / plain_looks
    filmed = [p for p in played if p.filmed]
    film = (
        sum(p.render_s - render * p.looks + p.film_s for p in filmed) / sum(p.steps for p in filmed) if filmed else 0.0
    )
    known = [p.reset_s + p.simulate_s + p.render_s + p.infer_s + p.wait_s + p.film_s for p in played]
    rest = fmean(max(0.0, p.total_s - k) for p, k in zip(played, known, strict=True))
    own = sum(p.total_s - p.wait_s - (p.infer_s if served else 0.0) for p in played)
    # What it computed, and what it would have, had there been a core.
    wanted = sum(p.cpu_s + p.queued_s for p in played)
    ended = [p.steps for p in played if not p.cut]
    return EpisodeCost(
        reset=fmean(p.reset_s for p in played),
        step=sum(p.simulate_s for p in played) / steps,
        render=render,
        infer=0.0 if served else sum(p.infer_s for p in played) / looks,
        rest=rest,
        film=max(0.0, film),
        steps=expected_steps([(p.steps, p.cut) for p in played], max_steps),
        steps_a_look=steps / looks,
        busy=min(1.0, wanted / own) if own else 1.0,
        # Where several shared the server, the one that waited least waited least for the others.
        transfer=min(p.wait_s / p.looks for p in played) if served else 0.0,
        lengths=tuple(ended) if len(ended) == len(played) else (),
        is_cut=not ended,
    )


def expected_steps(lengths: Sequence[tuple[int, bool]], limit: int) -> float:
    """Mean number of steps of an episode of at most ``limit``, from lengths of which some were cut (True): the area
    under the Kaplan-Meier estimate of survival (Kaplan & Meier 1958), those that outlast all that was seen going on to
    the limit.

    >>> expected_steps([(100, False), (300, True)], 500)  # one ends at 100; the other, for all we know, at the limit
    300.0
    """
    ends = sorted({steps for steps, cut in lengths if not cut and steps < limit})
    alive, mean, since = 1.0, 0.0, 0
    for end in ends:
        mean += alive * (end - since)
        at_risk = sum(steps >= end for steps, _ in lengths)
        alive *= 1.0 - sum(steps == end and not cut for steps, cut in lengths) / at_risk
        since = end
    return mean + alive * (limit - since)


def _mean_cost(costs: Sequence[EpisodeCost], max_steps: int) -> EpisodeCost:
    names = ("reset", "step", "render", "infer", "rest", "film", "steps_a_look", "busy", "transfer")
    means: dict[str, Any] = {name: fmean(getattr(cost, name) for cost in costs) for name in names}
    steps = min(float(max_steps), fmean(cost.steps for cost in costs))
    return EpisodeCost(**means, steps=steps, is_cut=all(cost.is_cut for cost in costs))


def draw_lengths(cost: EpisodeCost, count: int, draw: random.Random) -> list[float]:
    """Lengths of ``count`` episodes: some that were seen, or the mean of each."""
    if len(cost.lengths) < 3:
        return [cost.steps] * count
    return [float(draw.choice(cost.lengths)) for _ in range(count)]


def by_task(played: Iterable[Played]) -> dict[str, list[Played]]:
    found: dict[str, list[Played]] = {}
    for one in played:
        found.setdefault(one.task, []).append(one)
    return found
