"""Which episodes two runs have in common: the same task in the same scene, or what keeps them from being paired."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from robotrials.errors import ConfigError
from robotrials.plan.plan import Plan
from robotrials.results.compare.same_tasks import other_names, renamed
from robotrials.results.rundir import differences
from robotrials.results.stored import StoredEpisode, StoredRun, stored_plan

_LEAST_SHARE = 0.5
"""Pairs must make up this share of the smaller run: below it, more is lost by dropping episodes than pairing gains."""


@dataclass(frozen=True)
class Pair:
    """One episode in both runs; both have finished."""

    baseline: StoredEpisode
    other: StoredEpisode


@dataclass(frozen=True)
class Pairing:
    """Whether two runs are compared pair by pair, and why or why not, in words. ``dropped`` finished episodes have no
    finished partner. ``sequential``: one of the runs was watched for this very comparison (``--until=vs=``), so only
    the anytime p is valid; ``stopped``: and it stopped on it."""

    paired: bool
    why: str
    dropped: int = 0
    notes: tuple[str, ...] = ()
    sequential: bool = False
    stopped: bool = False


def pair_up(
    first: StoredRun,
    second: StoredRun,
    first_name: str,
    second_name: str,
    shared: Sequence[tuple[str, str]],
    by_order: bool = False,
) -> tuple[Pairing, list[Pair]]:
    """The pairs of finished episodes, in the order of ``first``, and what to say of them.

    An episode's scene is its task, seed and initial state. With ``by_order`` the number within the task stands in for
    the seed, for files that do not name it.
    """
    tasks = set(shared)
    ours = [e for e in first.episodes if (e.suite, e.task) in tasks and e.success is not None]
    theirs = [e for e in second.episodes if (e.suite, e.task) in tasks and e.success is not None]
    notes = tuple(_setup_differences(first, second))
    for name, episodes in ((first_name, ours), (second_name, theirs)):
        if not by_order and any(episode.seed is None for episode in episodes):
            why = (
                f"not paired: {name} does not say which seeds its episodes had"
                " (if both ran the same seeds in the same order: --pair_by_order)"
            )
            return Pairing(False, why, notes=notes), []
    # Where one file does not know initial states, the seed has to do.
    states = all(e.init_state is not None for e in (*ours[:1], *theirs[:1]))

    def scene(episode: StoredEpisode) -> Hashable:
        which = episode.index if by_order else (episode.seed, episode.init_state if states else None)
        return (episode.suite, episode.task, which)

    # A scene that was played twice is two pairs, not one episode against both.
    partners: dict[Hashable, list[StoredEpisode]] = {}
    for episode in reversed(theirs):
        partners.setdefault(scene(episode), []).append(episode)
    pairs = [Pair(e, partners[scene(e)].pop()) for e in ours if partners.get(scene(e))]
    if not pairs or len(pairs) < _LEAST_SHARE * min(len(ours), len(theirs)):
        return Pairing(
            False, _why_not(first, second, first_name, second_name, len(pairs), ours, theirs), notes=notes
        ), []
    dropped = len(ours) + len(theirs) - 2 * len(pairs)
    same = "number within the task" if by_order else "seed and initial state" if states else "seed"
    why = f"paired: {len(pairs):,} episodes of the same task and {same}"
    if dropped:
        why += f"; {dropped:,} without a finished partner {'is' if dropped == 1 else 'are'} left out"
    return Pairing(True, why, dropped, notes), pairs


def outcomes_of(other: StoredRun, plan: Plan, env: str) -> tuple[dict[tuple[str, str, int], bool], str | None]:
    """The outcomes in ``other`` of the episodes of ``plan``, which is of the benchmark ``env``: the same task, number,
    seed and initial state; and the first episode that is another scene there, in words."""
    other = renamed(other, other_names(other, env, plan.tasks))
    scenes = {
        (e.suite, e.task, e.index): (e.seed, e.init_state, e.success) for e in other.episodes if e.success is not None
    }
    outcomes: dict[tuple[str, str, int], bool] = {}
    strange = None
    for spec in plan:
        key = (spec.suite, spec.task, spec.index)
        if key not in scenes:
            continue
        seed, state, success = scenes[key]
        if seed == spec.seed and (state is None or spec.init_state is None or state == spec.init_state):
            outcomes[key] = bool(success)
        elif strange is None:
            strange = (
                f"{spec.name} has seed {seed} and initial state {state} there, {spec.seed} and {spec.init_state} here"
            )
    return outcomes, strange


def digest_of(outcomes: Mapping[tuple[str, str, int], bool]) -> str:
    """What tells these outcomes from others."""
    text = "\n".join(f"{key} {success}" for key, success in sorted(outcomes.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def was_decided(run: StoredRun) -> bool:
    """Whether ``--until`` stopped it: without, the plan was played to its end, or is not yet."""
    return (run.stopping or {}).get("counted") is not None


def watched_against(run: StoredRun, other: StoredRun) -> bool:
    """Whether ``--until=vs=`` compared ``run`` with ``other`` while it ran: by its place, or where that has moved by
    its outcomes."""
    stopping = run.stopping or {}
    kind, _, place = str(stopping.get("rule", "")).partition("=")
    if kind != "vs":
        return False
    reference = stopping.get("reference") or {}
    if Path(reference.get("path") or place).resolve() in (other.path.resolve(), other.folder.resolve()):
        return True
    if "outcomes" not in reference:
        return False
    try:
        outcomes, _ = outcomes_of(other, stored_plan(run.described, run.path), run.env)
    except ConfigError:
        return False
    return bool(outcomes) and digest_of(outcomes) == reference["outcomes"]


def _why_not(
    first: StoredRun,
    second: StoredRun,
    first_name: str,
    second_name: str,
    n_pairs: int,
    ours: Sequence[StoredEpisode],
    theirs: Sequence[StoredEpisode],
) -> str:
    if not ours or not theirs:
        return f"not paired: {first_name if not ours else second_name} has no finished episode"
    few = f"only {n_pairs:,} episodes are the same in both; " if n_pairs else ""
    by_number = {(e.suite, e.task, e.index): e for e in theirs}
    for episode in ours:
        other = by_number.get((episode.suite, episode.task, episode.index))
        if other is None or (other.seed, other.init_state) == (episode.seed, episode.init_state):
            continue
        what, one, two = "initial states", episode.init_state, other.init_state
        if other.seed != episode.seed:
            what, one, two = "seeds", episode.seed, other.seed
        return f"not paired: {few}the {what} differ ({episode.name} has {one} in {first_name}, {two} in {second_name})"
    return f"not paired: {few}{first_name} and {second_name} finished other episodes"


def _setup_differences(first: StoredRun, second: StoredRun) -> list[str]:
    """What differs between the runs beside the policy: it may explain a difference."""
    one, other = first.described.get("identity"), second.described.get("identity")
    if not one or not other:
        return []
    lines = []
    keys = ("robotrials", "python", "benchmark", "exact")
    for line in differences({key: one.get(key) for key in keys}, {key: other.get(key) for key in keys}):
        lines.append(f"differs beside the policy: {line}")
    limits = {task.key: task.max_steps for task in first.tasks}
    changed = [t for t in second.tasks if t.key in limits and limits[t.key] != t.max_steps]
    if changed:
        task = changed[0]
        lines.append(f"differs beside the policy: step limit of {task.name}: {limits[task.key]} -> {task.max_steps}")
    return lines
