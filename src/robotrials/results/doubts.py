"""What makes a success rate doubtful, counted over a run: episodes that were over at once, success that was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robotrials.plan.plan import Plan
from robotrials.results.record import ENDED_AT_ONCE, SOLVED_AT_ONCE, SUCCESS_LOST, EpisodeRecord

_NAMED = 3
"""Tasks that a note names."""

_WORDS = {
    SOLVED_AT_ONCE: "{n} solved at the first step ({of}): check that a scene is unsolved after its reset",
    ENDED_AT_ONCE: "{n} ended at the first step, unsolved ({of}): check that a scene begins in a valid state",
    SUCCESS_LOST: "{n} solved, and no longer at the last step ({of}): {how}",
}
_COUNTED = "counted as success; --env.success=end counts the last step alone"
_NOT_COUNTED = "not counted as success, by --env.success=end"


class Doubts:
    """``marks`` are the ledger's, of the episodes of ``plan``."""

    def __init__(self, plan: Plan, marks: Mapping[int, Sequence[str]]) -> None:
        self._plan = plan
        self._marks = marks
        self._found: dict[str, dict[str, int]] = {mark: {} for mark in _WORDS}
        self._counts_lost = True

    def add(self, record: EpisodeRecord) -> None:
        """One result that counts."""
        for mark in self._marks.get(record.episode, ()):
            if mark not in self._found:
                continue
            task = self._plan.episode(record.episode).task
            self._found[mark][task] = self._found[mark].get(task, 0) + 1
            if mark == SUCCESS_LOST:
                self._counts_lost = bool(record.success)

    def notes(self) -> tuple[str, ...]:
        """A sentence without its stop for each kind that was found."""
        how = _COUNTED if self._counts_lost else _NOT_COUNTED
        return tuple(
            _WORDS[mark].format(n=_episodes(sum(tasks.values())), of=_named(tasks), how=how)
            for mark, tasks in self._found.items()
            if tasks
        )


def _episodes(n: int) -> str:
    return "1 episode was" if n == 1 else f"{n:,} episodes were"


def _named(tasks: Mapping[str, int]) -> str:
    ranked = sorted(tasks, key=lambda name: -tasks[name])
    more = f" and {len(ranked) - _NAMED:,} more" if len(ranked) > _NAMED else ""
    return ", ".join(f"{name} {tasks[name]:,}" for name in ranked[:_NAMED]) + more
