"""Which layout to use, and what holds it back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from robotrials.tuning.costs import MeasuredCosts
from robotrials.tuning.model import Prediction, RunLayout, TaskLoad, bound, predict

_WORTH = 1.03
"""A layout with more processes must be so much faster than one with fewer."""
_MEMORY_SHARE = 0.85
"""Of what is free, for all processes of the run."""
_MOST_WORKERS_A_CORE = 6
_SERVER_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True)
class Advice:
    """``best`` to use, ``usual`` what the run would be without advice, ``bottleneck`` in a word of ``parts`` (or
    ``memory``), ``why`` in a sentence. ``served``: whether the policy is in servers."""

    best: Prediction
    usual: Prediction
    bottleneck: str
    why: str


def advise(
    figures: MeasuredCosts,
    tasks: Sequence[TaskLoad],
    usual: RunLayout,
    may_be: Callable[[RunLayout], bool] = lambda layout: True,
) -> Advice:
    """The fastest layout that fits into memory, the smallest among equals, of those that ``may_be``."""
    as_usual = predict(figures, tasks, usual)
    ordered = sorted(filter(may_be, layouts(figures, tasks, usual)), key=_size) or [usual]
    fitting: list[Prediction] = []
    fastest = math.inf
    for layout in ordered:
        # What cannot be worth its size against a smaller one is not simulated.
        if predict(figures, tasks, layout, bound).wall_s * _WORTH >= fastest:
            continue
        prediction = predict(figures, tasks, layout)
        if fits(figures, prediction):
            fitting.append(prediction)
            fastest = min(fastest, prediction.wall_s)
    best = min(
        (p for p in fitting if p.wall_s <= fastest * _WORTH),
        key=lambda p: (*_size(p.layout), p.wall_s),
        default=predict(figures, tasks, ordered[0]),
    )
    bottleneck, why = _bottleneck(figures, best)
    return Advice(best, as_usual, bottleneck, why)


def _size(layout: RunLayout) -> tuple[int, int]:
    return layout.workers + layout.servers, layout.max_batch or 0


def fits(figures: MeasuredCosts, prediction: Prediction) -> bool:
    """Whether the layout's processes go into the memory there is, of the machine and of its GPUs."""
    layout, room = prediction.layout, figures.gpu_memory
    on_gpu = layout.workers * (figures.worker_gpu_memory or 0.0)
    on_gpu += layout.servers * ((figures.server.gpu_memory if figures.server else None) or 0.0)
    return prediction.memory <= _MEMORY_SHARE * figures.memory and (room is None or on_gpu <= _MEMORY_SHARE * room)


def layouts(figures: MeasuredCosts, tasks: Sequence[TaskLoad], usual: RunLayout) -> Iterator[RunLayout]:
    """What is tried: workers from one a core upwards, servers, and the batches that were timed."""
    episodes = sum(task.episodes for task in tasks)
    counts = sorted({min(max(1, n), episodes) for n in _worker_counts(figures.cores, usual)})
    if usual.servers == 0 or figures.server is None:
        yield from (RunLayout(n) for n in counts)
        return
    own = figures.server.own_device
    most = max(usual.servers, figures.gpus if own else figures.cores)
    batches = [None, *sorted(figures.server.other)]
    for servers in sorted({n for n in _SERVER_COUNTS if n <= most} | {usual.servers, most}):
        for batch in batches:
            yield from (RunLayout(n, servers, batch) for n in counts if n >= servers)


def _worker_counts(cores: int, usual: RunLayout) -> Iterator[int]:
    yield from (1, usual.workers, cores // 2, cores - 1, cores, cores + 1, cores + 2, cores + 4, cores + 8)
    yield from (factor * cores for factor in range(2, _MOST_WORKERS_A_CORE + 1))


def _bottleneck(figures: MeasuredCosts, best: Prediction) -> tuple[str, str]:
    """Whatever is busy all the time; among what the cores do, what takes most of it."""
    own = {name: seconds for name, seconds in best.parts.items() if name != "infer"}
    on_cores = dict(best.parts) if figures.server is None or not figures.server.own_device else own
    if figures.elsewhere:
        on_cores = own
    largest = max(on_cores, key=lambda name: on_cores[name])
    share = on_cores[largest] / max(sum(on_cores.values()), 1e-9)
    busy = 100 * best.pace.cores_busy
    if best.layout.servers and best.pace.servers_busy > max(0.9, best.pace.cores_busy):
        rows = best.pace.rows
        return (
            "infer",
            f"the policy server is busy {100 * best.pace.servers_busy:.0f} % of the time, {rows:.1f} rows a pass",
        )
    if best.pace.cores_busy > 0.85:
        return largest, f"cores are busy {busy:.0f} % of the time, {100 * share:.0f} % of it to {largest}"
    more = RunLayout(best.layout.workers + 1, best.layout.servers, best.layout.max_batch)
    added = figures.worker_memory + best.memory
    if added > _MEMORY_SHARE * figures.memory and more.workers:
        return "memory", f"another worker of {math.ceil(figures.worker_memory / 2**20)} MB does not fit into memory"
    return largest, f"the plan has too few episodes to keep more processes busy (cores {busy:.0f} %)"
