"""What ``--dry_run`` prints: the plan, task by task, and how it would be carried out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from robotrials.cli import draw
from robotrials.cli.facts import fact_lines
from robotrials.cli.plan_table import plan_table
from robotrials.environments import folders
from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.plan import Plan
from robotrials.plan.task import TaskSpec
from robotrials.results.rundir import identity_hash
from robotrials.run.dataset import DatasetPlan
from robotrials.run.prepare import PreparedRun


def plan_lines(prepared: PreparedRun, console: Console) -> list[Text]:
    """The table of tasks, then one line each for everything else that is decided."""
    config, plan = prepared.config, prepared.plan
    facts = [
        ("Episodes", _episodes(plan, prepared.done - prepared.errors)),
        *([("Shard", shard_words(prepared))] if shard_words(prepared) else []),
        ("Policy", policy_words(config.policy)),
        *(("Observes" if i == 0 else "", words) for i, words in enumerate(_observations(plan.tasks))),
        ("Workers", _workers(prepared)),
        *([("Simulator", _interpreter(prepared.config.env))] if prepared.config.env.python else []),
        *([("Rendering", prepared.rendering.words)] if prepared.rendering else []),
        ("Videos", config.eval.record),
        *([("Until", f"{config.until}; the first of every task, then the second, ...")] if config.until else []),
        *([("Dataset", _dataset(prepared.dataset))] if prepared.dataset is not None else []),
        ("Directory", str(prepared.output_dir)),
        ("Identity", identity_hash(prepared.identity)),
    ]
    return [*plan_table(plan, console), Text(), *fact_lines(facts, console)]


def policy_words(policy: PolicyChoice) -> str:
    """``onnx weights.onnx (threads=2)``."""
    words = [word for word in (policy.type, policy.path) if word]
    options = ", ".join(f"{name}={value}" for name, value in policy.options.items())
    return " ".join(words) + (f" ({options})" if options else "")


def shard_words(prepared: PreparedRun) -> str:
    """Which slice of the whole plan this is; empty for the whole."""
    settings = prepared.config.eval
    if settings.num_shards == 1:
        return ""
    return f"{settings.shard_id} of {settings.num_shards} (from 0); robotrials merge makes one run of all"


def policy_title(policy: PolicyChoice) -> str:
    """A short name for headings: the last part of the path, else the type (of ``module:Class`` the class)."""
    if policy.path:
        return Path(policy.path).name or policy.path
    return str(policy.type).rpartition(":")[2]


def _dataset(dataset: DatasetPlan) -> str:
    cameras = ", ".join(dataset.layout.cameras) or "no camera"
    return f"{dataset.path} ({cameras}, every step)"


def _workers(prepared: PreparedRun) -> str:
    n = prepared.n_workers
    words = draw.count(n, "process", "processes") if n else draw.workers(0, prepared.config.eval.runtime)
    return words + (f", {draw.count(prepared.n_servers, 'policy server')}" if prepared.n_servers else "")


def _interpreter(env: EnvChoice) -> str:
    """Where the workers run, when it is not this Python, and who has decided it."""
    environment = folders.find(env.type)
    ours = environment is not None and environment.python == env.python
    return f"{env.python} ({'robotrials bench install' if ours else '--env.python'})"


def _episodes(plan: Plan, done: int) -> str:
    words = f"{draw.count(len(plan), 'episode')} of {draw.count(len(plan.tasks), 'task')}"
    return f"{words}; {done:,} have finished, {len(plan) - done:,} to run" if done else words


def _observations(tasks: Iterable[TaskSpec]) -> list[str]:
    """What the benchmark can show, key by key; tasks rarely differ in it, and where they do each way is listed."""
    seen: dict[str, None] = {}
    for task in tasks:
        for key, feature in task.observations.items():
            seen[f"{key} {feature}"] = None
    return list(seen)
