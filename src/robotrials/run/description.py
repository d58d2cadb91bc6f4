"""What ``run.json`` says of a run: its identity (all that could change an outcome), its configuration, its machine."""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robotrials.benchmarks.base import Benchmark
from robotrials.benchmarks.installed import Installed
from robotrials.benchmarks.scene_group import ManyScenes
from robotrials.benchmarks.scoring import identity_options
from robotrials.errors import ConfigError
from robotrials.machine.threads import available_cores
from robotrials.plan import import_path
from robotrials.plan.config import SETTINGS, EnvChoice, PolicyChoice, RunConfig
from robotrials.plan.options import build
from robotrials.plan.outcome import changed_settings
from robotrials.plan.plan import Plan
from robotrials.plan.shards import Shard
from robotrials.version import __version__

FORMAT = 1
"""Version of run.json."""


def run_identity(
    config: RunConfig, benchmark: Benchmark, installed: Installed, plan: Plan, policy_revision: str
) -> dict[str, Any]:
    """All that could change an outcome, and nothing else: not the number of workers, not the path of the weights.
    A setting is in it unless ``plan/outcome.py`` says otherwise.

    ``plan`` is the whole plan, of which a shard plays a slice: shards of one run differ in ``shard`` alone."""
    options = identity_options(benchmark, dataclasses.asdict(benchmark.config))
    options.pop("task", None)  # the plan holds the tasks themselves
    if isinstance(benchmark, ManyScenes) and benchmark.exact_together:
        del options["num_envs"]
    settings = changed_settings(config)
    shard = Shard(config.eval.shard_id, config.eval.num_shards)
    own_class = import_path.is_import_path(config.env.type)
    own_file = import_path.source_digest(config.env.type, "--env.type") if own_class else ""
    source = ", ".join(filter(None, (own_file, benchmark.code_version())))
    return {
        "robotrials": __version__,
        "python": installed.python,
        "plan": plan.hash(),
        "benchmark": {
            "name": benchmark.name,
            "options": _jsonable(options),
            "packages": dict(installed.packages),
            **({"source": source} if source else {}),
        },
        "policy": {
            "type": config.policy.type or "",
            "revision": policy_revision,
            "options": {key: str(value) for key, value in sorted(config.policy.options.items())},
        },
        "rename_map": dict(config.rename_map),
        "exact": config.eval.exact,
        **({"nonfinite": "error"} if config.eval.nonfinite == "error" else {}),
        **({} if shard.is_whole else {"shard": {"id": shard.id, "of": shard.count}}),
        **({"settings": settings} if settings else {}),
    }


def describe_run(config: RunConfig, identity: Mapping[str, Any], identity_hash: str, plan: Plan) -> dict[str, Any]:
    """The content of a new run.json. ``policy`` is filled in when the first worker has loaded it.

    ``position`` is a task's place in the whole plan: a shard may have episodes of some of its tasks only.
    """
    positions = {(e.suite, e.task): e.id // config.eval.n_episodes for e in plan}
    return {
        "format": FORMAT,
        "identity": dict(identity),
        "identity_hash": identity_hash,
        "config": config_to_json(config),
        "plan": {
            "hash": identity["plan"],
            "n_episodes": len(plan),
            "tasks": [
                {
                    "suite": t.suite,
                    "task": t.name,
                    "position": positions[t.key],
                    "id": t.id,
                    "group": t.group,
                    "instruction": t.instruction,
                    "max_steps": t.max_steps,
                    "control_hz": t.control_hz,
                    "n_init_states": t.n_init_states,
                }
                for t in plan.tasks
            ],
        },
        "machine": _machine(),
        "policy": None,
        "dataset": None,
        "mixed": [],
        "sessions": [],
    }


def config_to_json(config: RunConfig) -> dict[str, Any]:
    return {
        "policy": _jsonable(dataclasses.asdict(config.policy)),
        "env": _jsonable(dataclasses.asdict(config.env)),
        **{name: _jsonable(dataclasses.asdict(getattr(config, name))) for name in SETTINGS},
        "seed": config.seed,
        "output_dir": str(config.output_dir),
        "job_name": config.job_name,
        "rename_map": dict(config.rename_map),
        "allow_mixed": config.allow_mixed,
        "until": config.until,
    }


def config_from_json(data: Mapping[str, Any], where: Path) -> RunConfig:
    """The configuration that run.json holds; ``where`` is the run directory, wherever it has been moved to.

    Raises:
        ConfigError: it is not of this version's shape.
    """
    try:
        return RunConfig(
            policy=PolicyChoice(**data["policy"]),
            env=EnvChoice(**data["env"]),
            # A section that a run of an earlier version lacks has its defaults.
            **{name: build(kind, data.get(name, {}), f"run.json: {name}.") for name, kind in SETTINGS.items()},
            seed=data["seed"],
            output_dir=where,
            job_name=data["job_name"],
            rename_map=data["rename_map"],
            allow_mixed=bool(data["allow_mixed"]),
            until=data.get("until"),
        )
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{where / 'run.json'} is not a configuration of robotrials {__version__}: {error}") from None


def _machine() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": available_cores(),
        "python": platform.python_version(),
        "gpu_driver": _read_first_line("/proc/driver/nvidia/version"),
        "git": _git_revision(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


def _git_revision() -> str | None:
    """The commit of the working directory: the user's own code, when it lies in a repository."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            capture_output=True,
            text=True,
            timeout=5,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _read_first_line(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.readline().strip()
    except OSError:
        return None


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    return str(value) if isinstance(value, Path) else value
