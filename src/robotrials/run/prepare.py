"""A run before it starts: everything that can be checked without starting anything, and what follows from it."""

from __future__ import annotations

import math
import os
import random
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robotrials.benchmarks.base import Benchmark
from robotrials.benchmarks.installed import QUESTION, Installed, look_up, placed, read_answer
from robotrials.benchmarks.registry import make_benchmark
from robotrials.benchmarks.scene_group import ManyScenes, scenes_of
from robotrials.engine.early_stop import StopPlan, check_reference, plan_stop, was_decided
from robotrials.engine.launchers.container import ENGINES, Container
from robotrials.engine.layout import auto_servers, auto_workers
from robotrials.errors import ConfigError
from robotrials.plan import import_path
from robotrials.plan.config import PolicyChoice, RunConfig, StatsSettings
from robotrials.plan.options import plain
from robotrials.plan.plan import Plan, build_plan, check_extent
from robotrials.plan.shards import Shard, slice_plan
from robotrials.plan.task_check import checked
from robotrials.policies import registry as policies
from robotrials.rendering.gl import Rendering, check_gl, choose_rendering
from robotrials.run import preflight
from robotrials.run.dataset import DatasetPlan, plan_dataset
from robotrials.run.description import config_from_json, run_identity
from robotrials.run.directory import (
    default_directory,
    described_run,
    existing_run,
    progress_so_far,
    usable_directory,
)
from robotrials.run.recording import RecordRule
from robotrials.run.tracking import require_backend

_LEAST_SETTING, _MOST_SETTING = 0.001, 10_000_000
"""Of seconds and rates: clocks and encoders fail beyond."""


@dataclass(frozen=True)
class PreparedRun:
    """A run that could start now. ``done`` episodes are in its ledger already, ``errors`` of them erred. ``policy`` is
    ``config.policy`` with the options that follow from the benchmark."""

    config: RunConfig
    plan: Plan
    benchmark: Benchmark
    output_dir: Path
    identity: dict[str, Any]
    policy: PolicyChoice
    n_workers: int
    n_servers: int
    done: int
    errors: int
    dataset: DatasetPlan | None = None
    rendering: Rendering | None = None
    stop: StopPlan | None = None
    stopped: bool = False
    """``--until`` was decided before, by episodes of which none erred."""

    @property
    def is_finished(self) -> bool:
        """Nothing to do: every episode that counts has an outcome."""
        return self.stopped or (self.done == len(self.plan) and not self.errors)


def prepare(config: RunConfig, as_recorded: bool = False) -> PreparedRun:
    """Plan the run and check all that can be checked without starting anything.

    ``as_recorded``: the interpreters are those in ``config``, also where an environment has been installed since.

    Raises:
        ConfigError: options that cannot be meant, or a directory that holds something else.
        NotInstalledError: the benchmark's packages are missing.
        IdentityError: the directory holds a run of another identity.
    """
    config, benchmark, rendering, installed = check_all_but_policy(config, as_recorded)
    policies.validate(config.policy)
    config = _with_absolute_paths(config)
    output_dir = usable_directory(config.output_dir or default_directory(config))
    existing = existing_run(output_dir)
    config = replace(config, output_dir=output_dir, seed=_seed(config, existing))
    assert config.seed is not None
    tasks = checked(benchmark.tasks())
    check_extent(len(tasks), config.eval.n_episodes, config.seed)
    whole = build_plan(tasks, config.eval.n_episodes, config.seed)
    policy = policies.fitted(config.policy, whole.tasks, config.rename_map)
    identified = replace(config, policy=policies.without_places(config.policy))
    identity = run_identity(identified, benchmark, installed, whole, policies.revision(policy))
    if rendering is not None and rendering.device == "gpu":
        identity["render"] = "gpu"  # its pictures are not the processor's, bit by bit
    plan = slice_plan(whole, Shard(config.eval.shard_id, config.eval.num_shards))
    done, errors = progress_so_far(output_dir, existing, identity, config, len(plan))
    stop = plan_stop(config, plan, existing if done else None, output_dir / "ledger.sqlite")
    if stop is not None:
        check_reference(stop, existing)
        config = replace(config, until=stop.rule.text)
    stopped = stop is not None and bool(done) and was_decided(stop, output_dir / "ledger.sqlite")
    dataset = plan_dataset(config.eval, plan, output_dir, existing)
    servers = _n_servers(config)
    is_served = servers > 0 or policies.is_elsewhere(config.policy)
    crew = config.eval.batch_size or max(scenes_of(benchmark), auto_workers(is_served))
    n_workers = 0 if _is_open(config) else max(1, min(crew, len(plan) - done + errors))
    if servers and not config.eval.policy_servers:
        servers = auto_servers(config.policy.options, policies.looks_every_step(config.policy), n_workers)
    n_servers = min(servers, n_workers) if n_workers else servers
    prepared = PreparedRun(
        config=config,
        plan=plan,
        benchmark=benchmark,
        output_dir=output_dir,
        identity=identity,
        policy=policy,
        n_workers=n_workers,
        n_servers=n_servers,
        done=done,
        errors=errors,
        dataset=dataset,
        rendering=rendering,
        stop=stop,
        stopped=stopped,
    )
    _check_start(prepared)
    return prepared


def _check_start(prepared: PreparedRun) -> None:
    """Refuse what would be refused once the run has started; a finished run starts nothing."""
    preflight.check_folder(prepared.output_dir, "--output_dir")
    if prepared.dataset is not None:
        preflight.check_folder(prepared.dataset.path, "--eval.dataset")
    if not prepared.is_finished:
        preflight.check_runtime(prepared.config)
        served = prepared.n_servers > 0
        preflight.check_policy(prepared.config, prepared.policy, prepared.benchmark, prepared.plan, served)


def check_all_but_policy(
    config: RunConfig, as_recorded: bool = False
) -> tuple[RunConfig, Benchmark, Rendering | None, Installed]:
    """The part of ``prepare`` that needs no policy, and so can come before one is trained. The configuration returned
    has the interpreters that will be used.

    Raises:
        ConfigError: options that cannot be meant.
        NotInstalledError: the benchmark's packages, or those of ``--wandb.*``, are missing.
    """
    RecordRule.parse(config.eval.record)
    _check_settings(config)
    config = _with_plain_options(config)
    require_backend(config.wandb)
    config = _with_interpreters(config)
    if not as_recorded and config.eval.runtime not in ENGINES:
        config = replace(config, env=placed(config.env))
    benchmark = make_benchmark(config.env)
    _check_scenes(config, benchmark)
    return config, benchmark, _rendering(config, benchmark), _look_up(config, benchmark)


def prepare_resume(directory: Path, stats: StatsSettings | None = None) -> PreparedRun:
    """Prepare what ``run.json`` in ``directory`` describes; ``stats`` in the place of what it says there.

    Raises:
        ConfigError: there is no run; and what ``prepare`` raises.
    """
    directory = usable_directory(directory)
    config = config_from_json(described_run(directory)["config"], directory)
    return prepare(replace(config, stats=stats) if stats is not None else config, as_recorded=True)


def _check_scenes(config: RunConfig, benchmark: Benchmark) -> None:
    """
    Raises:
        ConfigError: scenes that share a simulator would make outcomes depend on how the work was spread.
    """
    if (
        isinstance(benchmark, ManyScenes)
        and benchmark.scenes > 1
        and config.eval.exact
        and not benchmark.exact_together
    ):
        raise ConfigError(
            f"{benchmark.scenes} scenes of {benchmark.name} in one process are not the same to the bit as one alone: "
            "add --eval.exact=false, or ask for one scene"
        )


def _is_open(config: RunConfig) -> bool:
    """How many workers there will be is not known here: as many as join, or as a cluster has room for."""
    runtime = config.eval.runtime
    return runtime == "external" or (runtime == "ray" and config.eval.batch_size == 0)


def _look_up(config: RunConfig, benchmark: Benchmark) -> Installed:
    """What there is for the benchmark where its workers will run: an interpreter here, or an image."""
    if config.eval.runtime not in ENGINES:
        return look_up(config.env)
    container = Container(config.eval.runtime, config.docker, benchmark.name)
    done = container.ask([*QUESTION, config.env.type])
    remedy = "install it there, or give --docker.use_local_code=true"
    return read_answer(done, f"the image {container.image}", remedy)


def _rendering(config: RunConfig, benchmark: Benchmark) -> Rendering | None:
    """What draws; None for a benchmark that does not draw through OpenGL, or does it by itself.

    Raises:
        ConfigError: --render.device cannot be had, or MUJOCO_GL names what MuJoCo does not know.
    """
    wanted = config.render.device
    if config.eval.runtime in ENGINES and config.docker.gpus == "none":
        if wanted == "gpu":
            raise ConfigError("--render.device=gpu: containers have no GPU without --docker.gpus=all")
        return None
    if benchmark.uses_gl:
        check_gl(os.environ)
        return choose_rendering(wanted, os.environ)
    if wanted == "gpu":
        raise ConfigError(
            f"--render.device=gpu: {config.env.type} does not draw through OpenGL; its options say how it draws"
        )
    return None


def _check_settings(config: RunConfig) -> None:
    settings = config.eval
    for name, least in (("batch_size", 0), ("policy_servers", 0), ("max_attempts", 1), ("n_episodes", 1)):
        if getattr(settings, name) < least:
            raise ConfigError(f"--eval.{name} must be at least {least}, got {getattr(settings, name)}")
    for name in ("step_timeout", "record_fps"):
        value = getattr(settings, name)
        if not 0 < value < math.inf:
            raise ConfigError(f"--eval.{name} must be above 0 and finite, got {value}")
        if not _LEAST_SETTING <= value <= _MOST_SETTING:
            raise ConfigError(f"--eval.{name} must be between {_LEAST_SETTING} and {_MOST_SETTING:,}, got {value:g}")
    for name in ("memory", "shm_size"):
        size = getattr(config.docker, name)
        if size is not None and not re.fullmatch(r"\d+[kmg]", size.lower()):
            raise ConfigError(f"--docker.{name} must be a number and k, m or g, as 4g; got {size!r}")
    if not 0 < config.docker.cpus < math.inf:
        raise ConfigError(f"--docker.cpus must be above 0 and finite, got {config.docker.cpus:g}")
    if settings.runtime in ENGINES and "python" in config.env.options:
        raise ConfigError(
            f"--env.python is of this machine: with --eval.runtime={settings.runtime} --docker.python names the image's"
        )
    if settings.runtime == "external" and not settings.listen:
        raise ConfigError("--eval.runtime=external needs --eval.listen=tcp://HOST:PORT, where its workers join")
    shard = Shard(settings.shard_id, settings.num_shards)
    if config.seed is None and not shard.is_whole:
        raise ConfigError(
            "--seed=null draws a seed, and every shard would draw another: give one with --eval.num_shards"
        )


def _with_plain_options(config: RunConfig) -> RunConfig:
    """Options of ``--env.*`` and ``--policy.*`` as messages and run.json hold them, whoever gave them."""
    return replace(
        config,
        env=replace(config.env, options={name: plain(v, f"--env.{name}") for name, v in config.env.options.items()}),
        policy=replace(
            config.policy, options={name: plain(v, f"--policy.{name}") for name, v in config.policy.options.items()}
        ),
    )


def _with_interpreters(config: RunConfig) -> RunConfig:
    """``--env.python`` and ``--policy.python`` say where to run, not what: they leave the options.

    Raises:
        ConfigError: no such interpreter.
    """

    def split(choice: Any, flag: str) -> Any:
        options = dict(choice.options)
        python = options.pop("python", None)
        if python is None:
            return choice
        path = shutil.which(str(Path(str(python)).expanduser()))
        if path is None:
            raise ConfigError(f"{flag}.python={python}: no such interpreter")
        return replace(choice, options=options, python=os.path.abspath(path))

    return replace(config, env=split(config.env, "--env"), policy=split(config.policy, "--policy"))


def _n_servers(config: RunConfig) -> int:
    """As asked for; else one for a policy that wants a process of its own, or another interpreter than the workers'.

    Raises:
        ConfigError: servers, or an interpreter, for a policy that has its server elsewhere.
    """
    if policies.is_elsewhere(config.policy):
        for flag, value in (
            ("eval.policy_servers", config.eval.policy_servers),
            ("policy.python", config.policy.python),
        ):
            if value:
                raise ConfigError(f"--{flag}={value}: --policy.type={config.policy.type} has its server elsewhere")
        return 0
    if config.eval.policy_servers:
        return config.eval.policy_servers
    # A file of this machine is not in the workers' image.
    has_file = config.eval.runtime in ENGINES and bool(config.policy.path) and ":" not in str(config.policy.path)
    return int(policies.is_served(config.policy) or config.policy.python is not None or has_file)


def _with_absolute_paths(config: RunConfig) -> RunConfig:
    """Paths that mean the same when the run is resumed from another folder."""
    choice = config.policy
    if choice.path and not choice.path.startswith("builtin:") and Path(choice.path).expanduser().exists():
        choice = replace(choice, path=str(Path(choice.path).expanduser().absolute()))
    if choice.type:
        choice = replace(choice, type=import_path.absolute(choice.type))
    config = replace(config, env=replace(config.env, type=import_path.absolute(config.env.type)))
    settings = config.eval
    if settings.dataset is not None:
        settings = replace(settings, dataset=settings.dataset.expanduser().absolute())
    # The type as the registry reads it off the path, so that run.json and the exports name it.
    return replace(config, policy=replace(choice, type=policies.type_of(choice)), eval=settings)


def _seed(config: RunConfig, existing: dict[str, Any] | None) -> int:
    if config.seed is not None:
        return config.seed
    if existing is not None:
        return int(existing["config"]["seed"])
    return random.SystemRandom().randrange(2**31 - 2**20)
