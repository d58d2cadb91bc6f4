"""From the run directories of shards to the directory of the one run: what fits together, and what is copied.

A merge takes each attempt as its shard wrote it down, so the outcomes of the merged run are those that the plan would
have come to unsharded, bit for bit.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError, IdentityError
from robotrials.plan.plan import Plan
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import RunDirectory, differences, load_run_json

_SHOWN = 5
_BATCH = 1000


@dataclass(frozen=True)
class ShardRun:
    """One run directory to be merged: the content of its run.json, and the episodes that have a result there."""

    path: Path
    described: dict[str, Any]
    episodes: frozenset[int]

    @property
    def shard(self) -> dict[str, int]:
        """``{"id": k, "of": n}``."""
        found: dict[str, int] = self.described["identity"]["shard"]
        return found

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of the whole run that this is a shard of."""
        return {key: value for key, value in self.described["identity"].items() if key != "shard"}


def read_shard(path: Path) -> ShardRun:
    """
    Raises:
        ConfigError: no run lies there, or a whole one.
        LedgerError: its ledger is missing or damaged.
    """
    described = load_run_json(path)
    if not all(isinstance(described.get(key), dict) for key in ("config", "identity", "plan")):
        raise ConfigError(f"{path / 'run.json'} does not describe a run: it lacks config, identity or plan")
    if not isinstance(described["identity"].get("shard"), dict):
        raise ConfigError(
            f"{path} holds a whole run, not a shard (--eval.num_shards): there is nothing to merge it with"
        )
    with Ledger.open(path / "ledger.sqlite", read_only=True) as ledger:
        return ShardRun(path, described, frozenset(ledger.accepted_ids()))


def check_same_run(shards: Sequence[ShardRun], allow_mixed: bool) -> list[dict[str, Any]]:
    """What differs between the first shard and the others, as run.json notes it; empty when all are of one run.

    Raises:
        IdentityError: they are of different plans; or they differ in anything else and ``allow_mixed`` is not set.
    """
    first, notes = shards[0], []
    for other in shards[1:]:
        changes = differences(first.identity, other.identity)
        if first.described.get("policy") is not None and other.described.get("policy") is not None:
            loaded = differences(first.described["policy"], other.described["policy"])
            changes += [f"policy as loaded: {line}" for line in loaded]
        if not changes:
            continue
        same_plan = first.identity.get("plan") == other.identity.get("plan")
        if not same_plan or not allow_mixed:
            hint = (
                "--allow_mixed=true merges them all the same, and records it"
                if same_plan
                else "these are other episodes (tasks, seeds, or how many): they are no shards of one run"
            )
            raise IdentityError(
                f"{first.path} and {other.path} are not of one run. What differs (first -> second):\n  "
                + "\n  ".join(changes)
                + f"\n{hint}"
            )
        notes.append({"shard": other.shard, "changes": changes})
    return notes


def check_coverage(shards: Sequence[ShardRun], plan: Plan, partial: bool) -> int:
    """How many episodes of ``plan`` no shard has a result for.

    Raises:
        ConfigError: two shards have the same episode; an episode is of none of the plan; or some are missing and
            ``partial`` is not set.
    """
    owner: dict[int, ShardRun] = {}
    for shard in shards:
        twice = sorted(number for number in shard.episodes if number in owner)
        if twice:
            raise ConfigError(
                f"{owner[twice[0]].path} and {shard.path} both hold {_named(twice, plan)}: "
                "each episode may count once; leave one of the two out"
            )
        owner.update(dict.fromkeys(shard.episodes, shard))
    missing = sorted(episode.id for episode in plan if episode.id not in owner)
    if missing and not partial:
        raise ConfigError(
            f"{len(missing):,} of {len(plan):,} episodes have no result: {_named(missing, plan)}. {_whose_gap(shards)}"
            "; --partial=true merges what is there, and `robotrials resume` of the merged run plays the rest"
        )
    return len(missing)


def merge_ledgers(shards: Sequence[ShardRun], target: Ledger) -> None:
    """Copy every attempt of every shard, results as results."""
    for shard in shards:
        with Ledger.open(shard.path / "ledger.sqlite", read_only=True) as ledger:
            batch = []
            results = {(r.episode, r.attempt, r.worker, r.started_at) for r in ledger.accepted()}
            marks = ledger.marks()
            for episode in sorted(ledger.attempt_counts()):
                for r in ledger.attempts_of(episode):
                    is_result = (r.episode, r.attempt, r.worker, r.started_at) in results
                    batch.append((replace(r, marks=marks.get(episode, ())) if is_result else r, is_result))
                if len(batch) >= _BATCH:
                    target.record(batch)
                    batch = []
            target.record(batch)


def copy_files(shards: Sequence[ShardRun], directory: RunDirectory) -> None:
    """Videos under the names that the ledgers give them, logs under the number of their shard, and what was kept for a
    dataset.

    Raises:
        ConfigError: a file cannot be copied.
    """
    for shard in shards:
        pairs = [("videos", directory.videos), ("logs", directory.logs / f"shard-{shard.shard['id']}")]
        pairs.append(("spool", directory.path / "spool"))
        for name, target in pairs:
            source = shard.path / name
            if not source.is_dir():
                continue
            try:
                shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*.tmp", ".*.part"))
            except (OSError, shutil.Error) as error:
                raise ConfigError(f"{source} cannot be copied to {target}: {error}") from error


def merged_description(
    shards: Sequence[ShardRun], whole: dict[str, Any], notes: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The content of the merged run's run.json: ``whole``, a new run's, with machines and sessions of the shards."""
    return {
        **whole,
        "machine": shards[0].described.get("machine"),
        "policy": next((s.described["policy"] for s in shards if s.described.get("policy") is not None), None),
        "order": shards[0].described.get("order"),
        "mixed": [note for shard in shards for note in shard.described.get("mixed", [])] + list(notes),
        "sessions": [session for shard in shards for session in shard.described.get("sessions", [])],
        "merged_from": [
            {
                "shard": shard.shard,
                "directory": str(shard.path),
                "episodes": len(shard.episodes),
                "machine": shard.described.get("machine"),
            }
            for shard in shards
        ],
    }


def _named(numbers: Sequence[int], plan: Plan) -> str:
    names = [plan.episode(number).name if number in plan else f"episode {number}" for number in numbers[:_SHOWN]]
    more = f" and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else ""
    return ", ".join(names) + more


def _whose_gap(shards: Sequence[ShardRun]) -> str:
    """Which shards were not given, or else that one of the given has not finished."""
    counts = {shard.shard["of"] for shard in shards}
    if len(counts) == 1:
        (count,) = counts
        absent = sorted(set(range(count)) - {shard.shard["id"] for shard in shards})
        if absent:
            return f"Not given: shard {', '.join(map(str, absent[:_SHOWN]))} of {count}"
    unfinished = [shard for shard in shards if len(shard.episodes) < shard.described["plan"]["n_episodes"]]
    with contextlib.suppress(IndexError):
        return f"Not finished: {unfinished[0].path}: robotrials resume {unfinished[0].path}"
    return "No shard that was given has them"
