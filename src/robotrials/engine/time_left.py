"""How long a run still takes: tasks, and episodes with and without a video, are estimated apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan
from robotrials.results.record import Timings

TaskKey = tuple[str, str]
Kind = tuple[TaskKey, bool]
"""A task, and whether its episode is filmed."""


@dataclass(frozen=True)
class Playing:
    """An episode that a worker plays: for how many seconds, and how many steps of it are known to be done."""

    episode: int
    seconds: float
    step: int


@dataclass
class _Mean:
    n: int = 0
    total: float = 0.0

    def add(self, value: float) -> None:
        self.n += 1
        self.total += value

    @property
    def value(self) -> float | None:
        return self.total / self.n if self.n else None


class TimeLeft:
    """Learns what episodes take; ``estimate`` is their sum over what is left, shared by those who play.

    What is not known is inferred: an episode without a video from one with, less what its film took; one with a video
    from one without, plus the mean film; a task that has not been played from the others, by its step limit.
    """

    def __init__(self, plan: Plan, is_filmed: Callable[[EpisodeSpec], bool]) -> None:
        self._kinds: dict[int, Kind] = {e.id: ((e.suite, e.task), is_filmed(e)) for e in plan}
        self._limits: dict[TaskKey, int] = {(e.suite, e.task): e.max_steps for e in plan}
        self._left = Counter(self._kinds.values())
        self._seen: dict[Kind, _Mean] = {}
        self._less_film: dict[TaskKey, _Mean] = {}
        self._film = _Mean()
        """Seconds of film for each step of the limit."""
        self._build = _Mean()
        """Seconds before the first episode of a task."""

    def settled(self, episode: int) -> None:
        """It needs no more time, whatever came of it."""
        self._left[self._kinds[episode]] -= 1

    def learn(self, episode: int, timings: Timings, kept_s: float | None = None) -> None:
        """An episode was played to its end; ``kept_s`` is for how long it kept its worker, which may have built the
        task's scene first."""
        task, filmed = kind = self._kinds[episode]
        if kept_s is not None and not self._knows(task):
            self._build.add(max(0.0, kept_s - timings.total))
        self._seen.setdefault(kind, _Mean()).add(timings.total)
        if filmed:
            self._less_film.setdefault(task, _Mean()).add(max(0.0, timings.total - timings.film))
            self._film.add(timings.film / max(1, self._limits[task]))

    def estimate(self, playing: Sequence[Playing], workers: int) -> float | None:
        """Seconds until all is settled, ``workers`` going on at once; None before anything was learnt."""
        if not self._seen:
            return None
        means = self._means(playing)
        left = self._left.copy()
        rests = []
        for one in playing:
            left[self._kinds[one.episode]] -= 1
            rests.append(self._rest(one, means[self._kinds[one.episode]]))
        waiting = sum(means[kind] * n for kind, n in left.items() if n > 0)
        to_build = {task for (task, _), n in left.items() if n > 0 and not self._knows(task)}
        waiting += (self._build.value or 0.0) * len(to_build)
        longest = max([*rests, *(means[kind] for kind, n in left.items() if n > 0)], default=0.0)
        return max((sum(rests) + waiting) / max(1, workers), longest)

    def _rest(self, one: Playing, mean: float) -> float:
        if one.seconds < mean:
            return mean - one.seconds
        # Longer than usual: probably as long again, and no longer than to its step limit.
        limit = self._limits[self._kinds[one.episode][0]]
        return one.seconds * min(1.0, (limit - one.step) / one.step) if 0 < one.step < limit else 0.0

    def _means(self, playing: Iterable[Playing]) -> dict[Kind, float]:
        means = {kind: self._expected(kind) for kind in self._left}
        # Short episodes end first: those that have gone on for longer count as well.
        late: dict[Kind, list[float]] = {}
        for one in playing:
            kind = self._kinds[one.episode]
            if kind in self._seen:
                late.setdefault(kind, []).append(max(one.seconds, means[kind]))
        for kind, seconds in late.items():
            seen = self._seen[kind]
            means[kind] = (seen.total + sum(seconds)) / (seen.n + len(seconds))
        return means

    def _knows(self, task: TaskKey) -> bool:
        return (task, False) in self._seen or (task, True) in self._seen

    def _expected(self, kind: Kind) -> float:
        task, filmed = kind
        known = self._of_task(task, filmed)
        if known is not None:
            return known
        limit = self._limits[task]
        others = [(self._of_task(other, filmed), self._limits[other]) for other in self._limits]
        rates = [seconds / max(1, steps) for seconds, steps in others if seconds is not None]
        return limit * sum(rates) / len(rates)

    def _of_task(self, task: TaskKey, filmed: bool) -> float | None:
        seen = self._seen.get((task, filmed))
        if seen is not None:
            return seen.value
        if not filmed:
            less = self._less_film.get(task)
            return less.value if less is not None else None
        plain = self._seen.get((task, False))
        if plain is None or plain.value is None:
            return None
        return plain.value + (self._film.value or 0.0) * self._limits[task]
