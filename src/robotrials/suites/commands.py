"""The exact commands of a suite: ``accelerate launch ... lerobot-train ...`` and ``robotrials eval ...``."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError, NotInstalledError
from robotrials.plan.config import option
from robotrials.plan.options import coerce
from robotrials.suites.registry import Suite
from robotrials.suites.training import TrainingFolder

_START = {
    "smolvla": {"policy.type": "smolvla", "policy.load_vlm_weights": "true"},
    "pi0": {"policy.type": "pi0", "policy.pretrained_path": "lerobot/pi0_base"},
    "pi05": {"policy.type": "pi05", "policy.pretrained_path": "lerobot/pi05_base"},
}
"""How training a policy of this name begins; any other name is a ``--policy.type``."""


@dataclass(frozen=True)
class SuiteSettings:
    """What ``robotrials suite`` can be told itself. What follows ``--`` on its line is not here."""

    policy_name: str = option("smolvla", "names folders and repository; and the --policy.type")
    hub_user: str = option("", "push to the repository HUB_USER/POLICY_SUITE; empty: push nothing")
    gpus: int = option(-1, "training on so many GPUs; 0: on the CPU; -1: on all there are")
    steps: int = option(0, "training steps; 0: as the suite recommends")
    n_episodes: int = option(0, "episodes of every task; 0: as the suite recommends")
    output_dir: Path = option(Path("outputs"), "holds train/POLICY_SUITE and eval/POLICY_SUITE/STEP")
    train_python: str = option("", "another interpreter, with lerobot[training], to train with")
    dry_run: bool = option(False, "print the exact commands; start nothing")
    slurm: bool = option(False, "print a batch script for Slurm that does this; start nothing")

    def check(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ConfigError: a number is below its least value, or the name is that of no folder.
        """
        for name, least in (("gpus", -1), ("steps", 0), ("n_episodes", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"--{name} must be at least {least}, got {getattr(self, name)}")
        if not self.policy_name.replace("_", "").replace("-", "").replace(".", "").isalnum():
            raise ConfigError(
                f"--policy_name={self.policy_name} names folders and a repository: letters, digits, -, _ and . only; "
                "a checkpoint to start from is -- --policy.path=..."
            )
        if "/" in self.hub_user:
            raise ConfigError(f"--hub_user={self.hub_user} must be a user or an organisation, without a repository")
        if self.train_python and shutil.which(Path(self.train_python).expanduser()) is None:
            raise ConfigError(f"--train_python={self.train_python}: no such interpreter")

    def repository(self, suite: Suite) -> str:
        """``{hub_user}/{policy_name}_{suite}``; empty without a user."""
        return f"{self.hub_user}/{self.job(suite)}" if self.hub_user else ""

    def job(self, suite: Suite) -> str:
        return f"{self.policy_name}_{suite.name}"

    def n_steps(self, suite: Suite, forwarded: Sequence[str] = ()) -> int:
        """Training steps: those forwarded to lerobot-train, else ``--steps``, else the suite's.

        Raises:
            ConfigError: those forwarded are no number.
        """
        given = parse_forwarded(forwarded).get("steps")
        return coerce(given, int, "--steps after --") if given is not None else self.steps or suite.steps

    def training(self, suite: Suite, forwarded: Sequence[str] = ()) -> TrainingFolder:
        """Where this suite is trained: ``--output_dir`` of lerobot-train, if that was forwarded, wins."""
        asked = parse_forwarded(forwarded).get("output_dir")
        return TrainingFolder(Path(asked) if asked else self.output_dir / "train" / self.job(suite))


def train_command(suite: Suite, settings: SuiteSettings, forwarded: Sequence[str]) -> list[str]:
    """The words that train, or go on training, the policy of ``suite``.

    Raises:
        ConfigError: words among ``forwarded`` that are no flags; a training of something else lies there.
        NotInstalledError: accelerate or lerobot-train is missing (not for a dry run).
    """
    given = parse_forwarded(forwarded)
    training = settings.training(suite, forwarded)
    steps = settings.n_steps(suite, forwarded)
    if training.last is not None:
        training.require_dataset(given.get("dataset.repo_id", suite.dataset))
        # Everything else comes out of the checkpoint, as lerobot-train resumes.
        flags: dict[str, Any] = {"config_path": training.config_path, "resume": "true", "steps": steps}
    else:
        flags = _fresh(suite, settings, training.folder, steps, given)
    flags.update(given)
    gpus = count_gpus() if settings.gpus < 0 else settings.gpus
    if gpus == 0 and "policy.device" not in given and training.last is None:
        flags["policy.device"] = "cpu"
    launch = ["--cpu", "--num_processes=1"] if gpus == 0 else [f"--num_processes={gpus}"]
    if gpus > 1:  # accelerate refuses --multi_gpu for one process
        launch.insert(0, "--multi_gpu")
    accelerate, train = (_script(name, settings) for name in ("accelerate", "lerobot-train"))
    return [accelerate, "launch", *launch, train, *(f"--{name}={_train_text(value)}" for name, value in flags.items())]


def given_policy(forwarded: Sequence[str]) -> str:
    """The policy that the words for the evaluation name, as the name of a folder; empty where they name none."""
    given = parse_forwarded(forwarded)
    name = given.get("policy.path") or given.get("policy.type", "")
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")


def eval_words(suite: Suite, settings: SuiteSettings, policy: str, step: str, forwarded: Sequence[str]) -> list[str]:
    """The flags of ``robotrials eval`` for all tasks of ``suite`` in one plan. ``policy`` is a folder or repository.
    Folders are named after the policy that is played, be it trained here or named among ``forwarded``.

    Raises:
        ConfigError: words among ``forwarded`` that are no flags.
    """
    given = parse_forwarded(forwarded)
    flags = {
        "policy.path": policy,
        **_env_flags(suite, given),
        "eval.n_episodes": settings.n_episodes or suite.n_episodes,
    }
    name = given_policy(forwarded)
    job = f"{name}_{suite.name}" if name else settings.job(suite)
    flags["output_dir"] = settings.output_dir / "eval" / job / step
    flags.update(suite.eval)
    if "policy.type" in given and "policy.path" not in given:
        flags.pop("policy.path")
    flags.update(given)
    return [f"--{name}={_eval_text(value)}" for name, value in flags.items()]


def parse_forwarded(words: Sequence[str]) -> dict[str, str]:
    """Flags after ``--`` by name; ``--a=b``, ``--a b`` and a bare ``--a`` (true) are read as their program would.

    Raises:
        ConfigError: a word that belongs to no flag, or a flag given twice.
    """
    flags: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            raise ConfigError(f"unexpected {word!r} after --: flags are written --name=value")
        name, equals, value = word[2:].partition("=")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "true"
        if name in flags:
            raise ConfigError(f"--{name} is given twice after --: {flags[name]!r} and {value!r}")
        flags[name] = value
    return flags


def count_gpus() -> int:
    """GPUs that training would see: those of CUDA_VISIBLE_DEVICES, else those that nvidia-smi lists."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([device for device in visible.split(",") if device.strip() not in ("", "-1")])
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return 0
    done = subprocess.run([smi, "-L"], capture_output=True, text=True, timeout=60, check=False)
    return sum(line.startswith("GPU ") for line in done.stdout.splitlines()) if done.returncode == 0 else 0


def _fresh(suite: Suite, settings: SuiteSettings, folder: Path, steps: int, given: Mapping[str, str]) -> dict[str, Any]:
    flags: dict[str, Any] = {"dataset.repo_id": suite.dataset}
    if suite.root:
        flags["dataset.root"] = suite.root
    if not {"policy.type", "policy.path"} & set(given):
        flags |= _START.get(settings.policy_name, {"policy.type": settings.policy_name})
    if repository := settings.repository(suite):
        flags |= {"policy.repo_id": repository, "policy.push_to_hub": "true"}
    else:
        flags["policy.push_to_hub"] = "false"
    flags |= {"batch_size": suite.batch_size, "steps": steps, "save_freq": max(1, min(20_000, steps // 5))}
    flags |= {"output_dir": folder, "job_name": settings.job(suite)}
    return flags | dict(suite.train)


def is_bridged(env: Mapping[str, Any]) -> bool:
    """Whether robotrials has no benchmark of this type, so that it goes to LeRobot's environments."""
    from robotrials.benchmarks.registry import names

    return env["type"] not in names() and ":" not in env["type"]


def _env_flags(suite: Suite, given: Mapping[str, str]) -> dict[str, Any]:
    """``--env.*``; what robotrials has no benchmark for goes through the bridge to LeRobot's environments."""
    env = dict(suite.env)
    if is_bridged(env) and "env.type" not in given:
        options = {name: env.pop(name) for name in list(env) if name not in ("type", "task")}
        env = {**env, "type": "lerobot_env", "config": env["type"]}
        env |= {"options": json.dumps(options)} if options else {}
    return {f"env.{name}": value for name, value in env.items()}


def _train_text(value: Any) -> str:
    """A value of a YAML file as lerobot-train reads it: YAML again, where Python's own None would be a word."""
    return json.dumps(value, default=str) if value is None or isinstance(value, (bool, list, dict)) else str(value)


def _eval_text(value: Any) -> str:
    """The same for ``robotrials eval``, which wants a list with commas: ``env.task: [a, b]``."""
    return ",".join(map(_train_text, value)) if isinstance(value, list) else _train_text(value)


def _script(name: str, settings: SuiteSettings) -> str:
    """The console script of the interpreter that trains, else the one on the PATH."""
    python = settings.train_python or sys.executable
    beside = Path(shutil.which(Path(python).expanduser()) or python).parent / name
    found = str(beside) if beside.is_file() else None if settings.train_python else shutil.which(name)
    if found is None and not (settings.dry_run or settings.slurm):
        raise NotInstalledError(
            f'{name} is not installed beside {python}: pip install "lerobot[training]", or name the interpreter that '
            "has it: --train_python=PATH"
        )
    return found or name
