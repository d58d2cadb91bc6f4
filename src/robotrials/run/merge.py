"""``robotrials merge``: lay out the whole plan again, check the shards against it, and write the one run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from robotrials.benchmarks.registry import make_benchmark
from robotrials.engine.observer import Observer
from robotrials.errors import ConfigError
from robotrials.plan.config import RunConfig
from robotrials.plan.plan import Plan, build_plan
from robotrials.plan.task_check import checked
from robotrials.results.counting import what_counts
from robotrials.results.export.eval_info import write_exports
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import RunDirectory, identity_hash
from robotrials.results.shards import (
    ShardRun,
    check_coverage,
    check_same_run,
    copy_files,
    merge_ledgers,
    merged_description,
    read_shard,
)
from robotrials.results.summary import RunSummary, summarize
from robotrials.run.dataset import DatasetMade, claim, make_dataset, plan_dataset
from robotrials.run.description import config_from_json, describe_run


@dataclass(frozen=True)
class Merged:
    """The one run. ``missing`` episodes have no result in any shard."""

    config: RunConfig
    plan: Plan
    summary: RunSummary
    output_dir: Path
    missing: int
    mixed: bool
    dataset: DatasetMade | None = None


def merge_runs(
    paths: Sequence[Path],
    output_dir: Path,
    observer: Observer,
    allow_mixed: bool = False,
    partial: bool = False,
    dataset: Path | None = None,
) -> Merged:
    """Merge the shards at ``paths`` into a new run directory, which appears whole or not at all.

    If the shards kept their episodes for a dataset, it is made in ``dataset``, by default within the run directory.

    Raises:
        ConfigError: no or a wrong directory, gaps, overlaps, or something lies at ``output_dir``.
        IdentityError: the shards are of different runs; the message names what differs.
        LedgerError, DatasetError: files are damaged, or cannot be written.
    """
    output_dir = Path(os.path.abspath(output_dir.expanduser()))
    if output_dir.exists() and (not output_dir.is_dir() or any(output_dir.iterdir())):
        raise ConfigError(f"--output_dir={output_dir} is there already: a merge needs a new folder")
    shards = [read_shard(path.expanduser().absolute()) for path in paths]
    if not shards:
        raise ConfigError(
            "merge takes the run directories of the shards: robotrials merge DIR DIR ... --output_dir=DIR"
        )
    notes = check_same_run(shards, allow_mixed)
    plan, config = _whole_plan(shards[0], output_dir)
    missing = check_coverage(shards, plan, partial)
    shards.sort(key=lambda shard: (shard.shard["id"], str(shard.path)))
    kept = _kept_config(shards, config, dataset)
    if missing and kept is not None:
        observer.on_message("no dataset is made while episodes are missing; resuming the merged run makes it")
    part = output_dir.with_name(f".{output_dir.name}.merging")
    shutil.rmtree(part, ignore_errors=True)
    identity = shards[0].identity
    described = merged_description(shards, describe_run(kept or config, identity, identity_hash(identity), plan), notes)
    made = None
    with RunDirectory(part) as directory:
        with Ledger.create(directory.ledger_path, described["identity"]) as ledger:
            merge_ledgers(shards, ledger)
            copy_files(shards, directory)
            counting = what_counts(described, plan, ledger.accepted_ids(), ledger.attempt_counts())
            summary = summarize(ledger, plan, config.stats.interval, counting)
            wall = sum(session.get("wall_s") or 0.0 for session in described["sessions"])
            write_exports(directory, plan, ledger, summary, described, wall, counting)
            directory.write_run_json(described)
        if output_dir.is_dir():
            output_dir.rmdir()
        os.replace(part, output_dir)
    if kept is not None:
        planned = plan_dataset(kept.eval, plan, output_dir, None)
        assert planned is not None
        with RunDirectory(output_dir) as directory, Ledger.open(directory.ledger_path) as ledger:
            claim(planned, described, directory.path)
            directory.write_run_json(described)
            if not missing:
                made = make_dataset(planned, directory, plan, ledger, described, observer)
    return Merged(kept or config, plan, summary, output_dir, missing, bool(described["mixed"]), made)


def _whole_plan(shard: ShardRun, output_dir: Path) -> tuple[Plan, RunConfig]:
    """The plan that the shards are slices of, laid out again from their configuration.

    Raises:
        ConfigError: this machine lays out another one.
    """
    config = config_from_json(shard.described["config"], output_dir)
    config = replace(config, eval=replace(config.eval, num_shards=1, shard_id=0, dataset=None, recording=False))
    assert config.seed is not None
    plan = build_plan(checked(make_benchmark(config.env).tasks()), config.eval.n_episodes, config.seed)
    if plan.hash() != shard.identity.get("plan"):
        raise ConfigError(
            f"the plan of {shard.path} cannot be laid out here as it was there: the benchmark has other tasks, "
            "or is of another version. Merge with the versions that run.json names"
        )
    return plan, config


def _kept_config(shards: Sequence[ShardRun], config: RunConfig, dataset: Path | None) -> RunConfig | None:
    """``config`` with the dataset that the shards kept their episodes for; None if they did not."""
    if any(shard.described.get("dataset") is None for shard in shards):
        if dataset is not None:
            raise ConfigError(
                "--dataset: the shards were run without --eval.dataset, so there is nothing to make it of"
            )
        return None
    there = config_from_json(shards[0].described["config"], shards[0].path).eval
    assert config.output_dir is not None
    path = Path(os.path.abspath(dataset.expanduser())) if dataset is not None else config.output_dir / "dataset"
    settings = replace(
        config.eval,
        dataset=path,
        dataset_cameras=there.dataset_cameras,
        recording_repo_id=there.recording_repo_id,
        recording_private=there.recording_private,
    )
    return replace(config, eval=settings)
