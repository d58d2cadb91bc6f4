"""Stopping early (``--until``) so that which episodes count does not depend on how the work was spread.

The rule is given the episodes of the plan in balanced order (the first of every task, the second of every task, ...)
and only as far as all before them have settled. The first beginning of that order that decides it is what counts.
Episodes that had finished beyond it, because some workers were faster, stay in the ledger as surplus and count for
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.config import RunConfig
from robotrials.plan.plan import Plan
from robotrials.results.compare.pairing import digest_of, outcomes_of
from robotrials.results.counting import balanced
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord
from robotrials.results.stored import read_run
from robotrials.stats.stopping import Decider, Until, VersusDecider, WidthDecider, parse_until


class EarlyStop:
    """Follows a run: told of every settled episode, in whatever order; knows when enough of the order has settled."""

    def __init__(self, plan: Plan, decider: Decider) -> None:
        self._order = balanced(plan)
        self._decider = decider
        self._settled: dict[int, bool | None] = {}
        self._next = 0

    @property
    def decided(self) -> bool:
        return self._decider.decided

    @property
    def counted(self) -> int:
        """Episodes of the balanced order that the rule has been given: all that count, once it is decided."""
        return self._next

    def settle(self, record: EpisodeRecord) -> None:
        """``record`` is its episode's result; an error counts as settled."""
        self._settled[record.episode] = record.success
        while not self.decided and self._next < len(self._order):
            spec = self._order[self._next]
            if spec.id not in self._settled:
                return
            self._next += 1
            ends_round = self._next == len(self._order) or self._order[self._next].index != spec.index
            self._decider.add((spec.suite, spec.task, spec.index), self._settled[spec.id], ends_round)

    def is_enough(self, record: EpisodeRecord) -> bool:
        """``settle``, then: is it decided?"""
        self.settle(record)
        return self.decided

    def words(self) -> str:
        return self._decider.words()

    def state(self) -> dict[str, Any]:
        return self._decider.state()

    def counted_ids(self) -> frozenset[int] | None:
        """None while nothing is decided: then all count."""
        return frozenset(spec.id for spec in self._order[: self._next]) if self.decided else None


@dataclass(frozen=True)
class StopPlan:
    """What ``--until`` comes to for one run: makes an ``EarlyStop`` that has seen nothing yet. ``reference`` describes
    the other run of ``vs=``, so that a resumed run finds out when it has changed."""

    rule: Until
    plan: Plan
    make: Callable[[], Decider]
    reference: Mapping[str, Any] | None = None

    def follow(self, records: Iterable[EpisodeRecord] = ()) -> EarlyStop:
        """An ``EarlyStop`` that knows ``records``."""
        stop = EarlyStop(self.plan, self.make())
        for record in records:
            stop.settle(record)
        return stop


@dataclass
class _StoredDecider:
    """A decision that run.json holds, so that the run that was compared with need not be there any more."""

    stored: Mapping[str, Any]
    given: int = 0
    decided: bool = field(default=False, init=False)

    def add(self, key: tuple[str, str, int], success: bool | None, ends_round: bool) -> None:
        self.given += 1
        self.decided = self.given >= self.stored["counted"]

    def words(self) -> str:
        return str(self.stored.get("words", ""))

    def state(self) -> dict[str, Any]:
        return dict(self.stored.get("state") or {})


def _as_stored(rule: Until, plan: Plan, described: Mapping[str, Any] | None, ledger: Path) -> StopPlan | None:
    """What this rule came to before; None where it was not decided, or episodes that count have no outcome: with
    these, it may come to something else."""
    stored = (described or {}).get("stopping") or {}
    if stored.get("rule") != rule.text or not isinstance(stored.get("counted"), int) or not stored.get("decided"):
        return None
    stop = StopPlan(rule, plan, lambda: _StoredDecider(stored), stored.get("reference"))
    return stop if was_decided(stop, ledger) else None


def plan_stop(
    config: RunConfig, plan: Plan, described: Mapping[str, Any] | None = None, ledger: Path | None = None
) -> StopPlan | None:
    """Read ``--until``; None without it. ``described`` and ``ledger`` are of the run as far as it is: one that is
    decided stays so, whatever has become of the run that it was compared with.

    Raises:
        ConfigError: no such rule, a shard, or a run to compare with that has not played these episodes.
    """
    if config.until is None:
        return None
    if config.eval.num_shards > 1:
        raise ConfigError("--until looks at the whole plan, and a shard sees a slice of it: leave one of them out")
    rule = parse_until(config.until)
    if rule.width is not None:
        width = rule.width
        return StopPlan(rule, plan, lambda: WidthDecider(width))
    assert rule.versus is not None
    path = Path(rule.versus).expanduser().absolute()
    rule = Until(f"vs={path}", versus=str(path))
    stored = None if ledger is None else _as_stored(rule, plan, described, ledger)
    if stored is not None:
        return stored
    outcomes = _reference(path, plan, config.env.type)
    reference = {"path": str(path), "pairs": len(outcomes), "outcomes": digest_of(outcomes)}
    return StopPlan(rule, plan, lambda: VersusDecider(outcomes, path.name), reference)


def describe_stop(stop: StopPlan, follower: EarlyStop, n_finished: int) -> dict[str, Any]:
    """What run.json says of it (``stopping``). ``counted`` is None when the plan was played to its end, undecided."""
    counted = follower.counted if follower.decided else None
    return {
        "rule": stop.rule.text,
        "decided": follower.decided,
        "counted": counted,
        "planned": len(stop.plan),
        "surplus": n_finished - counted if counted is not None else 0,
        "words": follower.words(),
        "state": follower.state(),
        "reference": None if stop.reference is None else dict(stop.reference),
    }


def was_decided(stop: StopPlan, ledger_path: Path) -> bool:
    """Whether the episodes in a ledger decide it, none of those that count having erred: nothing is left to do then."""
    if not ledger_path.exists():
        return False
    with Ledger.open(ledger_path, read_only=True) as ledger:
        follower = stop.follow(ledger.accepted())
        counted = follower.counted_ids()
        if counted is None:
            return False
        return not any(record.is_error for record in ledger.accepted() if record.episode in counted)


def check_reference(stop: StopPlan, described: Mapping[str, Any] | None) -> None:
    """
    Raises:
        ConfigError: the run to compare with has other outcomes than when this run last looked.
    """
    before = ((described or {}).get("stopping") or {}).get("reference")
    if before and stop.reference and before["path"] == stop.reference["path"] and before != dict(stop.reference):
        raise ConfigError(
            f"{before['path']} has changed since this run began: what it was compared with is gone. Compare with a "
            "finished run, in another --output_dir"
        )


def _reference(path: Path, plan: Plan, env: str) -> dict[tuple[str, str, int], bool]:
    """The other run's outcomes of the episodes of ``plan``: the same task, number, seed and initial state."""
    outcomes, strange = outcomes_of(read_run(path), plan, env)
    if not outcomes:
        why = strange or "it has finished none of the episodes of this plan"
        raise ConfigError(f"--until=vs={path} compares episode by episode, and cannot: {why}")
    return outcomes
