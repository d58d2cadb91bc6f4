"""What ``robotrials tune`` has measured on this machine, for later runs of the same policy and simulator.

A run that leaves the number of workers open (``--eval.batch_size=0``) is laid out by the same model as the advice. That
changes no outcome, so an old measurement can cost time, never a result.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from robotrials.benchmarks.scene_group import scenes_of
from robotrials.environments.folders import home
from robotrials.machine.memory import available_memory
from robotrials.machine.threads import available_cores
from robotrials.results.filesystem import write_atomically
from robotrials.run.prepare import PreparedRun
from robotrials.run.recording import RecordRule
from robotrials.tuning.advise import advise
from robotrials.tuning.costs import EpisodeCost, MeasuredCosts, ServerCost
from robotrials.tuning.model import RunLayout, TaskLoad

log = logging.getLogger(__name__)

_FORMAT = 1


def plan_tasks(prepared: PreparedRun) -> list[TaskLoad]:
    """The plan as the model takes it."""
    rule = RecordRule.parse(prepared.config.eval.record)
    found = {task.key: TaskLoad(task.name, 0, task.max_steps) for task in prepared.plan.tasks}
    for episode in prepared.plan:
        task = found[(episode.suite, episode.task)]
        filmed = task.filmed + (rule.mode(episode) != "no")
        found[(episode.suite, episode.task)] = replace(task, episodes=task.episodes + 1, filmed=filmed)
    return [task for task in found.values() if task.episodes]


def remember(prepared: PreparedRun, figures: MeasuredCosts) -> Path:
    """Keep ``figures`` for runs whose steps and passes cost the same; the file's path.

    Raises:
        OSError: it cannot be written.
    """
    costs = _what_costs(prepared)
    path = _path(costs)
    content = asdict(figures)
    if math.isinf(figures.memory):
        content["memory"] = None
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {"format": _FORMAT, "measured_at": time.time(), "of": costs, "figures": content}
    write_atomically(path, json.dumps(kept, indent=2).encode())
    return path


def laid_out(prepared: PreparedRun) -> tuple[PreparedRun, str | None]:
    """``prepared`` with as many workers and servers as are best by what was measured, and a sentence that says so; as
    it is, and None, where the layout was asked for, or nothing was measured."""
    settings = prepared.config.eval
    is_open = settings.runtime == "local" and settings.batch_size == 0 and scenes_of(prepared.benchmark) == 1
    if not is_open or prepared.is_finished or not prepared.n_workers:
        return prepared, None
    path = _path(_what_costs(prepared))
    known = _read(path) if path.exists() else None
    if known is None or (known[0].server is None) != (prepared.n_servers == 0):
        return prepared, None
    figures, measured_at = known
    usual = RunLayout(prepared.n_workers, prepared.n_servers)

    def may_be(layout: RunLayout) -> bool:
        # Another batch would make another run of it.
        return layout.max_batch is None and layout.servers == (settings.policy_servers or layout.servers)

    best = advise(figures, plan_tasks(prepared), usual, may_be).best.layout
    workers = min(best.workers, len(prepared.plan) - prepared.done + prepared.errors)
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(measured_at))
    words = f"workers as `robotrials tune` measured on {day}; --eval.batch_size=N says otherwise"
    return replace(prepared, n_workers=workers, n_servers=min(best.servers, workers)), words


def _what_costs(prepared: PreparedRun) -> dict[str, Any]:
    """All that what was measured depends on."""
    policy, identity = prepared.config.policy, prepared.identity
    return {
        "robotrials": identity["robotrials"],
        "machine": platform.node(),
        "cores": available_cores(),
        "python": identity["python"],
        "benchmark": identity["benchmark"],
        "policy": {
            "type": policy.type,
            "path": policy.path,
            "options": {key: str(value) for key, value in sorted(policy.options.items())},
        },
        "rename_map": identity["rename_map"],
        "exact": identity["exact"],
        "rendering": prepared.rendering.device if prepared.rendering else None,
    }


def _path(costs: Mapping[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(costs, sort_keys=True).encode()).hexdigest()[:16]
    return home() / "tuning" / f"{digest}.json"


def _read(path: Path) -> tuple[MeasuredCosts, float] | None:
    """The figures and when they were measured; None from a file that is damaged, which is no reason not to run."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["format"] != _FORMAT:
            return None
        found = kept["figures"]
        server = found["server"]
        if server is not None:
            sizes = {name: {int(rows): float(s) for rows, s in server[name].items()} for name in ("infer", "other")}
            server = ServerCost(**{**server, **sizes})
        costs = {
            name: EpisodeCost(**{**cost, "lengths": tuple(cost["lengths"])}) for name, cost in found["costs"].items()
        }
        now = {"costs": costs, "server": server, "memory": available_memory()}
        return MeasuredCosts(**{**found, **now}), float(kept["measured_at"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("what `robotrials tune` kept in %s cannot be read, so it is not used: %s", path, error)
        return None
