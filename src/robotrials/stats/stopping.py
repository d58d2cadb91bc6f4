"""When a run may stop early: what ``--until`` says, and whether the episodes so far decide it. Pure: no files, no
clock."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from robotrials.errors import ConfigError
from robotrials.stats.sequential import PairedTest, width_sequence

_WIDTH = re.compile(r"width\s*(?:<=|<|=)\s*([0-9.]+)\s*(%?)")

EXAMPLES = "--until='width<=0.06' or --until='vs=RUN_DIRECTORY'"


class Decider(Protocol):
    """Is given the episodes in balanced order, one by one; once ``decided``, it stays so."""

    @property
    def decided(self) -> bool: ...

    def add(self, key: tuple[str, str, int], success: bool | None, ends_round: bool) -> None:
        """``key`` is (suite, task, index); ``success`` None for an error; ``ends_round``: every task has had equally
        many."""

    def words(self) -> str:
        """How it stands, in a line."""

    def state(self) -> dict[str, Any]:
        """How it stands, as JSON values."""


@dataclass(frozen=True)
class Until:
    """``--until``, read: a width that the interval must reach, or the run that is the other side of a comparison."""

    text: str
    width: float | None = None
    versus: str | None = None


def parse_until(text: str) -> Until:
    """
    Raises:
        ConfigError: it is neither a width nor a run.
    """
    stripped = text.strip()
    if found := _WIDTH.fullmatch(stripped):
        try:
            width = float(found.group(1)) / (100.0 if found.group(2) else 1.0)
        except ValueError:
            width = 0.0
        if not 0.0 < width < 1.0:
            raise ConfigError(f"--until={text}: a width is a fraction between 0 and 1, such as width<=0.06 (or 6%)")
        return Until(f"width<={width:g}", width=width)
    name, equals, run = stripped.partition("=")
    if name.strip() == "vs" and equals and run.strip():
        return Until(f"vs={run.strip()}", versus=run.strip())
    raise ConfigError(f"--until={text} is no rule to stop by; write {EXAMPLES}")


@dataclass
class WidthDecider:
    """Stops when the confidence sequence of the mean rate is narrow enough. Looks after whole rounds, in which every
    task weighs the same; a round in which an episode erred is passed over."""

    width: float
    successes: int = 0
    n: int = 0
    decided: bool = False
    _round: list[bool | None] = field(default_factory=list)

    @property
    def interval(self) -> tuple[float, float]:
        return width_sequence(self.successes, self.n, self.width)

    def add(self, key: tuple[str, str, int], success: bool | None, ends_round: bool) -> None:
        self._round.append(success)
        if not ends_round:
            return
        outcomes = [outcome for outcome in self._round if outcome is not None]
        if len(outcomes) == len(self._round):
            self.successes += sum(outcomes)
            self.n += len(outcomes)
            low, high = self.interval
            self.decided = self.decided or high - low <= self.width
        self._round = []

    def words(self) -> str:
        low, high = self.interval
        found = f"valid interval [{100 * low:.1f}, {100 * high:.1f}] over {self.n:,} episodes"
        return f"{found}, {100 * (high - low):.1f} points wide (asked for: {100 * self.width:g})"

    def state(self) -> dict[str, Any]:
        return {"successes": self.successes, "episodes": self.n, "interval": list(self.interval)}


@dataclass
class VersusDecider:
    """Stops when the paired test by betting is decided at 5 %. ``reference`` holds the other run's outcomes by (suite,
    task, index); episodes that erred in either, or that the other has not, are no pairs."""

    reference: dict[tuple[str, str, int], bool]
    name: str
    test: PairedTest = field(default_factory=PairedTest)
    pairs: int = 0

    @property
    def decided(self) -> bool:
        return self.test.decided

    def add(self, key: tuple[str, str, int], success: bool | None, ends_round: bool) -> None:
        other = self.reference.get(key)
        if success is None or other is None:
            return
        self.pairs += 1
        self.test.add(success, other)

    def words(self) -> str:
        b, c = self.test.b, self.test.c
        stand = f"won {b:,}, lost {c:,} of {self.pairs:,} pairs against {self.name}, p = {self.test.anytime_p:.2g}"
        if not self.decided:
            return stand
        return f"{'better' if b > c else 'worse'}: {stand} (valid under looking)"

    def state(self) -> dict[str, Any]:
        # An infinite E is no JSON number; the p beside it says as much.
        return {"wins": self.test.b, "losses": self.test.c, "pairs": self.pairs, "anytime_p": self.test.anytime_p}
