"""``--eval.dataset``: where the dataset of a run goes, whether it may, and its making from what the workers kept."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robotrials.datasets.layout import DatasetLayout
from robotrials.datasets.lerobot_v3 import KeptEpisode, write_dataset
from robotrials.datasets.spool import spool_folder
from robotrials.engine.observer import Observer
from robotrials.errors import ConfigError, DatasetError, NotInstalledError
from robotrials.install import install_command
from robotrials.plan.config import EvalSettings
from robotrials.plan.plan import Plan
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord
from robotrials.results.rundir import RunDirectory
from robotrials.version import __version__

RECORDINGS = "recordings"
"""Folder of lerobot-eval's ``--eval.recording=true`` within the output directory."""
_MARK = "meta/robotrials.json"
"""Says within a dataset which run it is of. LeRobot leaves files that it does not know alone."""


@dataclass(frozen=True)
class DatasetPlan:
    """A dataset that a run shall make. ``repo_id`` and ``private`` are for a push to the Hub, not done here."""

    path: Path
    layout: DatasetLayout
    repo_id: str | None
    private: bool


@dataclass(frozen=True)
class DatasetMade:
    """A dataset that a run has made, of ``frames`` steps in all. ``erred`` episodes are not in it. ``nonfinite``: by
    column, how many numbers are NaN or infinity, and so are in no statistic."""

    plan: DatasetPlan
    episodes: int
    frames: int
    erred: int
    nonfinite: Mapping[str, int] = field(default_factory=dict)


def plan_dataset(
    settings: EvalSettings, plan: Plan, output_dir: Path, existing: Mapping[str, Any] | None
) -> DatasetPlan | None:
    """What ``--eval.dataset`` or ``--eval.recording`` asks for, checked; None when neither does. ``existing`` is the
    run.json in ``output_dir``.

    Raises:
        ConfigError: something else lies where it shall go, the tasks do not fit into one dataset, no such camera, or
            episodes of the run have finished without being kept.
        NotInstalledError: pyarrow is missing.
    """
    path = settings.dataset or (output_dir / RECORDINGS if settings.recording else None)
    if path is None:
        if settings.recording_repo_id:
            raise ConfigError("--eval.recording_repo_id needs --eval.recording=true or --eval.dataset=DIR")
        if settings.dataset_cameras != "all":
            raise ConfigError("--eval.dataset_cameras needs --eval.dataset=DIR")
        return None
    layout = DatasetLayout.of_tasks(plan.tasks, settings.dataset_cameras)
    if importlib.util.find_spec("pyarrow") is None:
        raise NotInstalledError(f"--eval.dataset needs pyarrow: {install_command('dataset')}")
    claim = _claim_of(existing, path, output_dir)
    _check_place(path, output_dir, claim)
    if existing is not None:
        _check_kept(output_dir, claim)
    return DatasetPlan(path, layout, settings.recording_repo_id, settings.recording_private)


def claim(dataset: DatasetPlan, described: dict[str, Any], output_dir: Path) -> None:
    """Note in the content of run.json, before anything is written, that the dataset there is this run's."""
    if _claim_of(described, dataset.path, output_dir) is None:
        described["dataset"] = {"path": _told(dataset.path, output_dir), "id": uuid.uuid4().hex, "written": None}
    described["dataset"] |= {"repo_id": dataset.repo_id, "private": dataset.private}


def make_dataset(
    dataset: DatasetPlan,
    directory: RunDirectory,
    plan: Plan,
    ledger: Ledger,
    described: dict[str, Any],
    observer: Observer,
) -> DatasetMade | None:
    """Join what the workers kept, unless that is done already; None when no episode has an outcome.

    It appears under its path whole. While episodes may still be tried again, the workers' files stay.

    Raises:
        DatasetError: a file is missing or damaged, or the disk is full.
    """
    erred = sum(record.is_error for record in ledger.accepted())
    finished = len(ledger.accepted_ids()) - erred
    kept = sum(_is_kept(record) for record in ledger.accepted())
    note = described["dataset"]
    if not kept:
        return None
    if not note["written"] or note["written"]["episodes"] != kept:
        observer.on_message(f"writing the dataset of {kept:,} episodes to {dataset.path}")
        part, old = (dataset.path.with_name(f".{dataset.path.name}.{note['id']}.{end}") for end in ("tmp", "old"))
        for leftover in (part, old):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            size = write_dataset(part, dataset.layout, _kept(directory.path, plan, ledger))
            mark = {
                "id": note["id"],
                "robotrials": __version__,
                "identity": described["identity"],
                "nonfinite": dict(size.nonfinite),
            }
            (part / _MARK).write_text(json.dumps(mark, indent=2) + "\n", encoding="utf-8")
            with contextlib.suppress(FileNotFoundError):
                os.replace(dataset.path, old)
            os.replace(part, dataset.path)
        except OSError as error:
            raise DatasetError(
                f"the dataset {dataset.path} cannot be written: {error}; the results are safe, and so is what it is "
                "made from: mend that and resume the run"
            ) from error
        shutil.rmtree(old, ignore_errors=True)
        note["written"] = {"episodes": size.episodes, "frames": size.frames, "nonfinite": dict(size.nonfinite)}
        directory.write_run_json(described)
    if finished == len(plan):
        shutil.rmtree(directory.path / "spool", ignore_errors=True)
    written = note["written"]
    return DatasetMade(dataset, written["episodes"], written["frames"], erred, written.get("nonfinite", {}))


def _is_kept(record: EpisodeRecord) -> bool:
    """It has an outcome and steps: one whose reset raised a failure has none, and cannot stand in a dataset."""
    return not record.is_error and record.steps > 0


def _kept(run_dir: Path, plan: Plan, ledger: Ledger) -> Iterator[KeptEpisode]:
    """The episodes with an outcome, in the order of the plan."""
    for record in ledger.accepted():
        if _is_kept(record) and record.episode in plan:  # a run that stopped early may have finished more
            spec = plan.episode(record.episode)
            yield KeptEpisode(spec, plan.task_of(spec), record, spool_folder(run_dir, spec.id, record.attempt))


def _told(path: Path, output_dir: Path) -> str:
    """``path`` as run.json tells it: so that a directory that is moved takes the dataset within it along."""
    return str(path.relative_to(output_dir) if path.is_relative_to(output_dir) else path)


def _claim_of(described: Mapping[str, Any] | None, path: Path, output_dir: Path) -> Mapping[str, Any] | None:
    """What run.json notes of the dataset at ``path``, None if it is not known there."""
    note: Mapping[str, Any] | None = (described or {}).get("dataset")
    return note if note is not None and note["path"] == _told(path, output_dir) else None


def _check_place(path: Path, output_dir: Path, claim: Mapping[str, Any] | None) -> None:
    if output_dir.is_relative_to(path):
        raise ConfigError(f"--eval.dataset={path} holds --output_dir: give the dataset a folder of its own")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    owner = None
    with contextlib.suppress(OSError, ValueError, AttributeError):
        owner = json.loads((path / _MARK).read_text(encoding="utf-8")).get("id")
    if claim is None or owner != claim["id"]:
        raise ConfigError(f"--eval.dataset={path} exists and is not of this run: choose another folder, or empty it")


def _check_kept(output_dir: Path, claim: Mapping[str, Any] | None) -> None:
    """Refuse a dataset that would lack episodes of the run which have finished already."""
    path = output_dir / "ledger.sqlite"
    if not path.exists():
        return
    with Ledger.open(path, read_only=True) as ledger:
        finished = [record for record in ledger.accepted() if _is_kept(record)]
    if claim is not None and claim["written"] and claim["written"]["episodes"] == len(finished):
        return
    lost = sum(not spool_folder(output_dir, record.episode, record.attempt).is_dir() for record in finished)
    if lost:
        raise ConfigError(
            f"--eval.dataset: {lost:,} episodes of {output_dir} have finished without being kept for this dataset: "
            "start the run in another --output_dir, or go on without a dataset"
        )
