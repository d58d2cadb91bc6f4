"""Which pending episodes must not be played just anywhere: suspects of a shared loss, and those that need a new
process. Pure bookkeeping, for the queue.

Suspects: when a process with several scenes or a policy server is lost, every episode in it is, and nobody knows by
whose fault. Each is then played beside no other such in one process or at one server, so that the next loss names it.

A new process: an environment that was rebuilt may still fail because its process is worn out (leaked descriptors, a
driver in a bad state). What has failed twice is then played by a process that began after that, which the coordinator
starts in the place of the old one. Where that does not help either, errors are the episodes' own, and processes are
replaced ever more rarely.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from robotrials.control.messages import Fault

_NOT_THE_PROCESS = (Fault.POLICY, Fault.CONNECTION)
"""Errors that a policy server answers for, not the worker."""
_FREE_IN_VAIN = 2
"""So many new processes in a row may have been in vain before they are started more rarely."""


class Held(Protocol):
    """What is asked of a lease that is out."""

    @property
    def episode_id(self) -> int: ...

    @property
    def process(self) -> str: ...

    @property
    def server(self) -> str: ...


class Suspects:
    """Episodes that were lost together with others, by what they were lost with."""

    def __init__(self) -> None:
        self._by_fault: dict[Fault, set[int]] = {Fault.SCENES: set(), Fault.CONNECTION: set()}

    def __bool__(self) -> bool:
        return any(self._by_fault.values())

    def add(self, episode: int, fault: Fault) -> bool:
        """Whether ``fault`` is such a loss, and the episode's first of that kind, which does not count as a try."""
        suspects = self._by_fault.get(fault)
        if suspects is None or episode in suspects:
            return False
        suspects.add(episode)
        return True

    def discard(self, episode: int) -> None:
        for suspects in self._by_fault.values():
            suspects.discard(episode)

    def barred(self, process: str, server: str, held: Iterable[Held]) -> set[int]:
        """Episodes that must not be played in ``process``, at ``server``, beside the leases that are out."""
        alone, apart = self._by_fault[Fault.SCENES], self._by_fault[Fault.CONNECTION]
        barred: set[int] = set()
        for lease in held:
            if lease.process == process and lease.episode_id in alone:
                barred |= alone
            if lease.server == server and lease.episode_id in apart:
                barred |= apart
        return barred


@dataclass
class _Renewals:
    """How often a new process was in vain, and how many that are due are left out because of it."""

    in_vain: int = 0
    left_out: int = 0

    def may_begin(self) -> bool:
        if self.left_out:
            self.left_out -= 1
            return False
        return True

    def helped(self) -> None:
        self.in_vain = self.left_out = 0

    def failed(self) -> None:
        self.in_vain += 1
        if self.in_vain > _FREE_IN_VAIN:
            self.left_out = 2 ** min(self.in_vain - _FREE_IN_VAIN, 20)


class NewProcesses:
    """Episodes that wait for a process which began after their last error."""

    def __init__(self, max_attempts: int) -> None:
        self._after_tries = min(2, max_attempts - 1)
        """So many tries are made first; of the last one, whatever the limit, a new process is part."""
        self._since: dict[int, int] = {}
        self._born: dict[str, int] = {}
        self._now = 0
        self._renewals = _Renewals()

    def __bool__(self) -> bool:
        return bool(self._since)

    def __contains__(self, episode: int) -> bool:
        return episode in self._since

    def note(self, episode: int, fault: Fault, tries: int) -> None:
        """The attempt erred, after ``tries`` that count; the episode waits for a new process if the next needs one."""
        if self._since.pop(episode, None) is not None:
            self._renewals.failed()
        is_due = fault is Fault.PROCESS or (fault not in _NOT_THE_PROCESS and tries >= self._after_tries)
        if is_due and self._renewals.may_begin():
            self._now += 1
            self._since[episode] = self._now

    def finished(self, episode: int) -> None:
        """The episode was played to its end."""
        if self._since.pop(episode, None) is not None:
            self._renewals.helped()

    def given_up(self, episode: int) -> None:
        if self._since.pop(episode, None) is not None:
            self._renewals.failed()

    def lift(self) -> None:
        """Nobody will start a process any more: all may be played anywhere."""
        self._since.clear()

    def plays(self, process: str) -> None:
        """``process`` takes an episode: it began now, if this is its first."""
        if process not in self._born:
            self._now += 1
            self._born[process] = self._now

    def forget(self, process: str) -> None:
        self._born.pop(process, None)

    def barred(self, process: str) -> set[int]:
        """Episodes that wait for a process which began later than ``process``."""
        born = self._born.get(process)
        if born is None:
            return set()
        return {episode for episode, since in self._since.items() if born < since}
