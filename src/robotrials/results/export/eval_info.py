"""The files other tools read: ``eval_info.json`` in lerobot-eval's shape, ``eval_config.json`` and ``metrics.json``.

The shape is that of LeRobot 0.6.1 (``lerobot/scripts/lerobot_eval.py``), so that what reads its files reads these. What
differs, on purpose:

* strict JSON: a number that does not exist (a rate over no finished episode, a NaN reward) is null, never NaN;
* an errored episode is neither success nor failure: it is missing from the lists and stands in ``errors``;
* means of a group and overall weigh every task the same, which is the mean over episodes unless tasks differ in theirs;
* more keys: ``n_success``, ``n_errors``, ``n_planned``, ``pc_success_ci95`` ([low, high] in percent), ``seeds``, ...
* of an unfinished run the lists hold the episodes that count (``counting.py``); others that ended are in
  ``out_of_order``, and ``note`` says why;
* paths of videos are relative to the folder of the file, so that a run can be moved.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from robotrials.errors import LedgerError
from robotrials.plan.plan import Plan
from robotrials.plan.task import TaskSpec
from robotrials.results.counting import Counting, everything
from robotrials.results.filesystem import write_atomically
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord
from robotrials.results.rundir import RunDirectory
from robotrials.results.summary import Rates, RunSummary
from robotrials.stats.intervals import NAMES


def interval_words(method: str) -> str:
    """What the intervals of a file are, in words."""
    name = NAMES[method]
    return f"95 %: {name} for a task; over several, {name} at the effective number of episodes, tasks weighing the same"


def write_exports(
    directory: RunDirectory,
    plan: Plan,
    ledger: Ledger,
    summary: RunSummary,
    described: Mapping[str, Any],
    eval_s: float,
    counting: Counting | None = None,
) -> None:
    """Write all three files, each whole or not at all. ``described`` is the content of run.json, ``eval_s`` the wall
    seconds of all sessions together, ``counting`` as for ``summarize``.

    Raises:
        LedgerError: they cannot be written (disk full); the ledger has everything, so resuming writes them again.
    """
    config = described["config"]
    files = {
        "eval_info.json": {**eval_info(plan, ledger, summary, eval_s, counting), **_stopping(described)},
        "eval_config.json": config,
        "metrics.json": {**metrics(plan, summary, config, eval_s), **_stopping(described)},
    }
    for name, content in files.items():
        path = directory.path / name
        try:
            write_atomically(path, strict_json(content).encode())
        except OSError as error:
            raise LedgerError(
                f"{path} cannot be written: {error}; "
                "the ledger has every result, so `robotrials resume` writes it again"
            ) from error


def eval_info(
    plan: Plan, ledger: Ledger, summary: RunSummary, eval_s: float, counting: Counting | None = None
) -> dict[str, Any]:
    """The content of eval_info.json: per task with its episodes in order, per group, and overall."""
    figures = {(suite.name, task.name): task for suite in summary.suites for task in suite.tasks}
    metrics_of = {task.key: _EpisodeLists(figures[task.key]) for task in plan.tasks}
    counting = counting or everything(plan)
    for record in ledger.accepted():
        episode = plan.episode(record.episode)
        lists = metrics_of[(episode.suite, episode.task)]
        if record.episode in counting.counted:
            lists.add(episode.index, episode.seed, record)
        elif record.episode in counting.out_of_order:
            lists.set_aside(episode.index, episode.seed, record)
    groups = {}
    for suite in summary.suites:
        of_suite = [metrics_of[(suite.name, task.name)] for task in suite.tasks]
        groups[suite.name] = {**_aggregate(suite), **_paths(of_suite)}
    n_results = summary.overall.n_planned - summary.overall.n_missing
    return {
        "per_task": [_task_entry(task, metrics_of[task.key]) for task in plan.tasks],
        "per_group": groups,
        "overall": {
            **_aggregate(summary.overall),
            "eval_s": eval_s,
            "eval_ep_s": eval_s / max(1, n_results),
            **_paths(list(metrics_of.values())),
        },
        "interval": interval_words(summary.method),
        **_note(summary),
        **_labels(summary),
    }


def metrics(plan: Plan, summary: RunSummary, config: Mapping[str, Any], eval_s: float) -> dict[str, Any]:
    """The content of metrics.json: the run in one flat object, for continuous integration."""
    policy = config["policy"]
    asked_for = config["env"]["options"].get("task")
    return {
        "env": config["env"]["type"],
        "task": str(asked_for) if asked_for else ",".join(suite.name for suite in summary.suites),
        "policy": policy.get("path") or policy.get("type"),
        **_aggregate(summary.overall),
        "eval_s": eval_s,
        "complete": summary.complete,
        **_shard(config),
        "interval": interval_words(summary.method),
        **_note(summary),
        **_labels(summary),
        "task_descriptions": {task.name: task.instruction for task in plan.tasks},
        "per_task": {f"{suite.name}/{task.name}": _aggregate(task) for suite in summary.suites for task in suite.tasks},
    }


def _stopping(described: Mapping[str, Any]) -> dict[str, Any]:
    """How ``--until`` ended the run, if it was asked for: the intervals beside it are those of runs of fixed length."""
    stopping = described.get("stopping")
    return {"stopping": stopping} if stopping else {}


def _note(summary: RunSummary) -> dict[str, str]:
    """Why results of an unfinished run are in no rate."""
    return {"note": summary.out_of_order} if summary.out_of_order else {}


def _labels(summary: RunSummary) -> dict[str, Any]:
    """Figures by the tasks' own groups; lerobot-eval calls suites groups, hence the other name."""
    return {"per_label": {figures.name: _aggregate(figures) for figures in summary.groups}} if summary.groups else {}


def _shard(config: Mapping[str, Any]) -> dict[str, Any]:
    """Says of a slice of a plan that it is one: its rate is no result of the whole."""
    settings = config.get("eval", {})
    count = settings.get("num_shards", 1)
    return {"shard": {"id": settings["shard_id"], "of": count}} if count > 1 else {}


def strict_json(content: Any) -> str:
    """``content`` as JSON that every parser reads: NaN and infinities become null."""
    return json.dumps(_finite(content), indent=2, allow_nan=False) + "\n"


class _EpisodeLists:
    """One task's episodes, in order: parallel lists of the finished ones, and the errors."""

    def __init__(self, figures: Rates) -> None:
        self.figures = figures
        self.columns: dict[str, list[Any]] = {
            "sum_rewards": [],
            "max_rewards": [],
            "successes": [],
            "video_paths": [],
            "predicted_video_paths": [],  # lerobot-eval has the key; only world models fill it
            "episodes": [],
            "seeds": [],
            "steps": [],
            "nonfinite_observations": [],
        }
        self.errors: list[dict[str, Any]] = []
        self.out_of_order: list[dict[str, Any]] = []

    def set_aside(self, index: int, seed: int, record: EpisodeRecord) -> None:
        """A result that does not count yet: listed apart, with what reads the file needs to know it again."""
        self.out_of_order.append(
            {
                "episode": index,
                "seed": seed,
                "success": record.success,
                "end": record.end.value,
                "steps": record.steps,
                "sum_reward": record.reward_sum,
                "max_reward": record.reward_max,
                "video": record.video,
                "error": record.error,
            }
        )

    def add(self, index: int, seed: int, record: EpisodeRecord) -> None:
        if record.video is not None:
            self.columns["video_paths"].append(record.video)
        if record.is_error:
            self.errors.append({"episode": index, "seed": seed, "attempt": record.attempt, "error": record.error})
            return
        values = {
            "sum_rewards": record.reward_sum,
            "max_rewards": record.reward_max,
            "successes": record.success,
            "episodes": index,
            "seeds": seed,
            "steps": record.steps,
            "nonfinite_observations": record.nonfinite,
        }
        for column, value in values.items():
            self.columns[column].append(value)


def _task_entry(task: TaskSpec, lists: _EpisodeLists) -> dict[str, Any]:
    counts = _aggregate(lists.figures)
    counts.pop("n_episodes")
    return {
        "task_group": task.suite,
        "task_id": task.id,
        "task": task.name,
        "metrics": {**lists.columns, "errors": lists.errors, **_apart(lists), **counts},
    }


def _apart(lists: _EpisodeLists) -> dict[str, Any]:
    return {"out_of_order": lists.out_of_order} if lists.out_of_order else {}


def _aggregate(figures: Rates) -> dict[str, Any]:
    rate, interval = figures.rate, figures.interval
    return {
        "avg_sum_reward": figures.avg_sum_reward,
        "avg_max_reward": figures.avg_max_reward,
        "pc_success": None if rate is None else 100.0 * rate,
        "pc_success_ci95": None if interval is None else [100.0 * bound for bound in interval],
        "n_episodes": figures.n_finished,
        "n_success": figures.n_success,
        "n_errors": figures.n_errors,
        "n_nonfinite": figures.n_nonfinite,
        "n_planned": figures.n_planned,
        **({"n_out_of_order": figures.n_out_of_order} if figures.n_out_of_order else {}),
    }


def _paths(lists: list[_EpisodeLists]) -> dict[str, list[str]]:
    return {
        key: [path for task in lists for path in task.columns[key]] for key in ("video_paths", "predicted_video_paths")
    }


def _finite(content: Any) -> Any:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return content
