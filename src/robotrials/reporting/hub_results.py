"""What a run says of a model on the Hub: entries for ``.eval_results/*.yaml`` and, on request, the model card's
``model-index``.

Both are written by huggingface_hub's own classes (1.4 or newer; ``EvalResultEntry``, ``EvalResult``), so that their
shape is the Hub's. The official entry has no field for the number of episodes, the interval or the seeds: they go into
its notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml

from robotrials.errors import ConfigError, NotInstalledError
from robotrials.install import install_command
from robotrials.reporting.loading import LoadedRun
from robotrials.results.summary import Rates

SOURCE_NAME = "robotrials eval"


@dataclass(frozen=True)
class Score:
    """One number to publish: success in percent on ``task_id`` of the benchmark, and ``notes`` on how it was found."""

    task_id: str
    percent: float
    low: float
    high: float
    notes: str


def huggingface_hub() -> Any:
    """The package, or NotInstalledError naming the extra."""
    try:
        import huggingface_hub
    except ImportError:
        raise NotInstalledError(f"this needs huggingface_hub: {install_command('hub')}") from None
    if not hasattr(huggingface_hub, "EvalResultEntry"):
        found = huggingface_hub.__version__
        raise NotInstalledError(f"huggingface_hub {found} knows no EvalResultEntry: pip install 'huggingface_hub>=1.4'")
    return huggingface_hub


def check_publishable(run: LoadedRun) -> None:
    """Refuse what is not a result: a number that may change is not put where others rank by it.

    Raises:
        ConfigError: episodes are missing or erred, or the run is a shard.
    """
    overall = run.summary.overall
    if run.described["config"]["eval"].get("num_shards", 1) > 1:
        raise ConfigError(f"{run.path} is a shard of a run: join the shards with `robotrials merge`, and push that")
    if not run.summary.complete or overall.rate is None:
        lacks = [
            f"{overall.n_missing:,} episodes were not run" if overall.n_missing else "",
            f"{overall.n_errors:,} ended in an error" if overall.n_errors else "",
        ]
        why = " and ".join(words for words in lacks if words) or "nothing has finished"
        raise ConfigError(
            f"{run.path} is partial, so it is not published: of {overall.n_planned:,} planned episodes {why}. "
            f"Finish it first: robotrials resume {run.path}"
        )


def scores(run: LoadedRun, task_id: str | None, own_notes: str | None) -> list[Score]:
    """A score for every suite, called as the suite is; with ``task_id`` one over all tasks, called that."""
    chosen: Iterable[tuple[str, Rates, int]]
    if task_id is not None:
        chosen = [(task_id, run.summary.overall, len(run.plan.tasks))]
    else:
        chosen = [(suite.name, suite, len(suite.tasks)) for suite in run.summary.suites]
    return [_score(run, name, figures, n_tasks, own_notes) for name, figures, n_tasks in chosen]


def _score(run: LoadedRun, task_id: str, figures: Rates, n_tasks: int, own_notes: str | None) -> Score:
    if figures.rate is None or figures.interval is None:  # check_publishable was not called
        raise ConfigError(f"{run.path} has no result for {task_id}")
    low, high = (100.0 * bound for bound in figures.interval)
    return Score(task_id, 100.0 * figures.rate, low, high, _notes(run, figures, n_tasks, low, high, own_notes))


def _notes(run: LoadedRun, figures: Rates, n_tasks: int, low: float, high: float, own_notes: str | None) -> str:
    seeds = sorted({run.plan.episode(record.episode).seed for record in run.records})
    identity = run.described.get("identity") or {}
    packages = {"robotrials": identity.get("robotrials"), **((identity.get("benchmark") or {}).get("packages") or {})}
    made_with = ", ".join(f"{name} {version}" for name, version in packages.items() if version)
    tasks = f" over {n_tasks} tasks of equal weight" if n_tasks > 1 else ""
    parts = [
        f"success rate in percent, {figures.n_success} of {figures.n_finished} episodes{tasks}",
        f"95% interval {low:.1f} to {high:.1f}",
        f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}",
        made_with,
    ]
    if stopped := _stopped_early(run):
        parts.append(stopped)
    if not run.described["config"]["eval"].get("exact", True):
        parts.append("not exact: numerics may depend on batching")
    if run.described.get("mixed"):
        parts.append("mixed: parts were made under different conditions")
    return "; ".join([own_notes.strip(), *parts] if own_notes else parts)


def _stopped_early(run: LoadedRun) -> str:
    """That ``--until`` chose the number of episodes, which the interval does not know; the other run by its name, as
    its place is of this machine."""
    stopping = run.described.get("stopping") or {}
    if stopping.get("counted") is None:
        return ""
    kind, _, place = str(stopping.get("rule", "")).partition("=")
    rule = f"vs={Path(place).name}" if kind == "vs" else stopping.get("rule")
    return f"stopped early by --until={rule} after {stopping['counted']:,} of {len(run.plan):,} planned episodes"


def made_on(run: LoadedRun) -> str:
    """When the last session began, ISO 8601 in UTC, to the second."""
    sessions = run.described.get("sessions") or ()
    began = [float(session["started_at"]) for session in sessions if session.get("started_at")]
    moment = max(began) if began else (run.path / "run.json").stat().st_mtime
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def results_yaml(run: LoadedRun, found: list[Score], dataset_id: str, source_url: str, existing: str | None) -> str:
    """The content of ``.eval_results/<name>.yaml``: a list of entries. Those of ``existing`` (what the file holds now)
    that are about other tasks stay.

    Raises:
        ConfigError: ``existing`` is not such a list.
    """
    hub = huggingface_hub()
    entries = [
        hub.EvalResultEntry(
            dataset_id=dataset_id,
            task_id=score.task_id,
            value=round(score.percent, 4),
            date=made_on(run),
            source_url=source_url,
            source_name=SOURCE_NAME,
            notes=score.notes,
        )
        for score in found
    ]
    ours = {(entry.dataset_id, entry.task_id) for entry in entries}
    kept = [entry for entry in _parse(existing) if (entry.dataset_id, entry.task_id) not in ours]
    content = hub.eval_result_entries_to_yaml([*kept, *entries])
    written: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
    return written


def _parse(existing: str | None) -> list[Any]:
    if existing is None:
        return []
    try:
        content = yaml.safe_load(existing)
        if not isinstance(content, list):
            raise ValueError(f"it holds a {type(content).__name__}, not a list")
        entries: list[Any] = huggingface_hub().parse_eval_result_entries(content)
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"the repository's file of results cannot be read, so it is left alone: {error}") from None
    return entries


def model_card(run: LoadedRun, found: list[Score], name: str, dataset_id: str | None, existing: str | None) -> str:
    """The content of README.md with these scores in its ``model-index``; older scores of the same kind are replaced.

    Raises:
        ConfigError: the metadata of the card that is there cannot be read.
    """
    hub = huggingface_hub()
    card = _card(existing)
    results = [
        hub.EvalResult(
            task_type="robotics",
            task_name="Robot control",
            dataset_type=dataset_id or run.env,
            dataset_name=f"{run.env} {score.task_id}" if score.task_id != run.env else run.env,
            dataset_config=score.task_id,
            metric_type="success_rate",
            metric_name="Success rate (%)",
            metric_value=round(score.percent, 4),
            metric_args={"interval_95": [round(score.low, 4), round(score.high, 4)], "notes": score.notes},
        )
        for score in found
    ]
    ours = {(result.dataset_type, result.dataset_config, result.metric_type) for result in results}
    kept = [
        result
        for result in card.data.eval_results or []
        if (result.dataset_type, result.dataset_config, result.metric_type) not in ours
    ]
    card.data.eval_results = kept + results
    card.data.model_name = card.data.model_name or name
    return str(card)


def _card(existing: str | None) -> Any:
    hub = huggingface_hub()
    if existing is None:
        return hub.ModelCard("---\n{}\n---\n")
    try:
        return hub.ModelCard(existing)
    except (yaml.YAMLError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"the metadata of the repository's README.md cannot be read: {error}") from None


def artifacts(run: LoadedRun, videos: bool = True) -> dict[str, Path]:
    """Path in the repository to file: what lerobot users expect under ``eval/<env>/``."""
    files = [run.path / name for name in ("eval_info.json", "eval_config.json", "metrics.json")]
    if videos:
        files += sorted((run.path / "videos").rglob("*.mp4"))
    return {f"{folder(run)}/{file.relative_to(run.path).as_posix()}": file for file in files if file.is_file()}


def folder(run: LoadedRun) -> str:
    return f"eval/{''.join(c if c.isalnum() or c in '._-' else '_' for c in run.env) or 'env'}"
