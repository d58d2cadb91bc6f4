"""The configuration of a run: what the flags, a YAML file and the Python API all become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def option(default: Any, help: str, **more: Any) -> Any:
    """A dataclass field with a help line; ``more`` may hold ``choices`` and ``metavar``, and of a number the bounds
    ``least``, ``most`` and ``above`` (more than that)."""
    metadata = {"help": help, **more}
    if isinstance(default, (dict, list)):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


MAX_SEED = 2**32 - 1
"""The largest seed that NumPy's RandomState takes, and with it most simulators."""


@dataclass(frozen=True)
class PolicyChoice:
    """Which policy: a registered ``type`` or an import path ``module:Class``, a ``path`` to weights or to a file of
    actions, and the rest of ``--policy.*``, which its constructor checks. ``python`` is the interpreter it runs
    in, None: the one that is running now."""

    type: str | None = None
    path: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    python: str | None = None


@dataclass(frozen=True)
class EnvChoice:
    """Which benchmark (``--env.type``) and its ``--env.*`` options, ``task`` among them; ``python`` as for a policy."""

    type: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    python: str | None = None


RUNTIMES = ("local", "docker", "podman", "apptainer", "ray", "external")
"""Where the run's own workers are: processes here, containers here, on a Ray cluster, or none, so that all join."""


@dataclass(frozen=True)
class EvalSettings:
    """How to run it: ``--eval.*``."""

    n_episodes: int = option(50, "episodes of every task")
    batch_size: int = option(0, "environments in flight, one process each; 0: as many as this process has cores")
    policy_servers: int = option(
        0, "policy servers, one process each; 0: by cores if the policy wants any (LeRobot's do)"
    )
    max_attempts: int = option(3, "how often an episode that errs is tried before it is recorded as an error")
    step_timeout: float = option(120.0, "seconds after which a step, reset or policy call counts as hung")
    record: str = option("first:10", "videos of each task: none, failures, first:N or all")
    record_fps: float = option(20.0, "at most so many video frames per simulated second")
    nonfinite: str = option(
        "warn",
        "NaN or infinity in an observation or a reward: warn says and counts it, error makes the attempt an error",
        choices=("warn", "error"),
    )
    exact: bool = option(True, "outcomes bit-identical whatever the layout")
    dataset: Path | None = option(None, "keep every episode, step by step, as a LeRobot dataset in this new folder")
    dataset_cameras: str = option("all", "cameras in the dataset: all, none, or names; drawn at every step")
    recording: bool = option(False, "lerobot-eval's name: --eval.dataset=<output_dir>/recordings")
    recording_repo_id: str | None = option(None, "written down for a push of the dataset, which is up to you")
    recording_private: bool = option(False, "written down for that push")
    num_shards: int = option(1, "slices of the plan, for machines that share nothing; see robotrials merge")
    shard_id: int = option(0, "which slice this run plays, from 0")
    runtime: str = option("local", "where workers run; external: only those that join", choices=RUNTIMES)
    listen: str | None = option(None, "tcp://HOST:PORT where workers elsewhere may join: robotrials worker")
    order: str = option(
        "longest", "in which order episodes are handed out", choices=("longest", "shuffled", "balanced")
    )


@dataclass(frozen=True)
class StatsSettings:
    """How to say how sure a rate is: ``--stats.*``. It changes no outcome, so it may change when a run is resumed."""

    interval: str = option(
        "wilson", "method of the 95 % intervals of success rates", choices=("wilson", "exact", "jeffreys")
    )


@dataclass(frozen=True)
class RenderSettings:
    """What draws the pictures of simulators that use OpenGL: ``--render.*``."""

    device: str = option(
        "auto", "auto: a GPU that EGL can draw on, else the processor, and says so", choices=("auto", "gpu", "cpu")
    )


@dataclass(frozen=True)
class ContainerSettings:
    """What workers get in a container, for ``--eval.runtime=docker`` and its like: ``--docker.*``."""

    image: str | None = option(None, "image of the workers; default robotrials-<env type>")
    pull: str = option("missing", "when to fetch it", choices=("always", "missing", "never"))
    python: str = option("python3", "interpreter in the image")
    gpus: str = option("none", "GPUs that simulators may use: none, all, or the engine's words for some")
    shm_size: str = option("8g", "size of /dev/shm and /tmp")
    cpus: float = option(1.0, "cores of each container")
    memory: str | None = option(None, "memory of each container, as 4g; default an equal share of what there is")
    use_local_code: bool = option(False, "run this robotrials in the container, not the image's own")


@dataclass(frozen=True)
class RaySettings:
    """What workers and policy servers ask of a Ray cluster, for ``--eval.runtime=ray``: ``--ray.*``."""

    address: str | None = option(None, "HOST:PORT of the cluster, or auto; default: a new one on this machine")
    cpus_per_worker: float = option(1.0, "CPUs that Ray reserves for each worker")
    gpus_per_server: float | None = option(None, "GPUs for each policy server; default 1 where the cluster has any")
    runtime_env: Mapping[str, Any] = option({}, "Ray's runtime environment for them, as JSON or YAML")


@dataclass(frozen=True)
class WandbSettings:
    """Where figures are logged to: ``--wandb.*``, with lerobot-train's names. It changes no outcome."""

    enable: bool = option(False, "log progress and figures; one run there for one run directory, over resumes")
    project: str = option("robotrials", "project to log to")
    entity: str | None = option(None, "team or user whose project it is")
    mode: str = option("online", "offline: into the run directory, for wandb sync", choices=("online", "offline"))
    run_id: str | None = option(None, "id of the run there; default: made once and kept in run.json")
    notes: str | None = option(None, "words kept with the run there")
    backend: str = option("wandb", "what to log to", choices=("wandb", "trackio"))


SETTINGS: dict[str, type] = {
    "eval": EvalSettings,
    "stats": StatsSettings,
    "wandb": WandbSettings,
    "render": RenderSettings,
    "docker": ContainerSettings,
    "ray": RaySettings,
}
"""Sections of the configuration whose options are known here, by name."""


@dataclass(frozen=True)
class RunConfig:
    """Everything ``robotrials eval`` was told."""

    policy: PolicyChoice
    env: EnvChoice
    eval: EvalSettings = field(default_factory=EvalSettings)
    seed: int | None = option(
        1000, "episode i of every task has seed SEED + i; null draws one and records it", most=MAX_SEED
    )
    output_dir: Path | None = option(None, "run directory; default outputs/eval/DATE/TIME_JOB")
    job_name: str | None = option(None, "name of the run; default <env>_<policy>")
    rename_map: Mapping[str, str] = option({}, "observation keys to rename before the policy sees them: {a: b}")
    allow_mixed: bool = option(False, "go on in a directory whose run differs, and record that it was mixed")
    stats: StatsSettings = field(default_factory=StatsSettings)
    wandb: WandbSettings = field(default_factory=WandbSettings)
    until: str | None = option(
        None,
        "stop early, episodes in balanced order: 'width<=0.06' (of the interval), or 'vs=RUN' (a better or worse run)",
    )
    render: RenderSettings = field(default_factory=RenderSettings)
    docker: ContainerSettings = field(default_factory=ContainerSettings)
    ray: RaySettings = field(default_factory=RaySettings)
