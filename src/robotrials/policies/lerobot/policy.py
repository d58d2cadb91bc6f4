"""``--policy.path=<Hub id or folder>``: any policy that LeRobot 0.6 can load, for many episodes at once.

LeRobot needs Python 3.12 and torch; both are imported when the policy is built, never before, so that the coordinator
and the simulators' workers stay light.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.errors import ConfigError, ContractError, NotInstalledError
from robotrials.install import install_command
from robotrials.plan.config import PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import coerce
from robotrials.plan.task import TaskSpec
from robotrials.policies import devices, files
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.lerobot import checkpoint, hub
from robotrials.policies.lerobot.features import Needs


class LeRobotPolicy(Policy):
    """A LeRobot checkpoint.

    ``revision``, ``session_mode``, ``n_action_steps`` (the effective one) and ``describe()`` are for the run's record.

    Args:
        path: folder as LeRobot saves it, or ``owner/name`` on the Hub.
        max_batch: rows of one forward pass; the default depends on the device alone.
        exact: bit-identical actions whatever the batch; False trades that for speed.
        torch_threads: threads of one forward pass on the CPU. Other counts give other bits.
        session_mode: ``chunk``, ``history`` or ``copy`` (see ``lerobot_support.sessions``); by default the right one.
        absent_cameras: cameras of the checkpoint that the benchmark lacks and that ``empty_cameras`` makes up for.
        action_dim: the benchmark's action size, for policies that pad their actions.
        commit: of the Hub repository, whatever ``pretrained_revision`` is by now.
        base_commit: of the Hub repository that a PEFT adapter in a folder adapts.
        overrides: any field of the policy's configuration (``--policy.device``, ``--policy.n_action_steps``, ...).

    Raises:
        ConfigError: the checkpoint cannot be loaded, or an option is unknown or wrong.
        NotInstalledError: this interpreter lacks LeRobot, or a package that the policy needs.
        ContractError: the policy fails on observations of the shapes it asks for.
    """

    draws_globally = False
    served = True

    def __init__(
        self,
        path: str,
        max_batch: int | None = None,
        exact: bool = True,
        torch_threads: int = 1,
        session_mode: str | None = None,
        absent_cameras: list[str] | None = None,
        action_dim: int | None = None,
        commit: str | None = None,
        base_commit: str | None = None,
        **overrides: Any,
    ) -> None:
        _require_lerobot()
        for name, value in (("max_batch", max_batch), ("torch_threads", torch_threads)):
            if value is not None and value < 1:
                raise ConfigError(f"--policy.{name} must be at least 1, got {value}")
        from robotrials.policies.lerobot.engine import Engine
        from robotrials.policies.lerobot.loading import load

        loaded = load(path, overrides, action_dim, commit, base_commit)
        try:
            self._engine = Engine(loaded, max_batch, exact, session_mode, absent_cameras or (), torch_threads)
        except (ValueError, KeyError, IndexError, TypeError, AssertionError, RuntimeError) as error:
            raise ContractError(
                f"policy {loaded.config.type} of {path} fails on observations of the shapes it asks for: "
                f"{type(error).__name__}: {error}"
            ) from error
        self.revision = loaded.revision
        self.session_mode = self._engine.mode
        self.n_action_steps = self._engine.n_action_steps
        self.has_own_device = self._engine.device.type != "cpu"

    def spec(self) -> PolicySpec:
        return self._engine.spec()

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Session:
        from robotrials.policies.lerobot.sessions import LeRobotSession

        return LeRobotSession(episode, task, episode.rng("policy"), env, self._engine.twin())

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """(B, n_action_steps, A) float32."""
        return self._engine.act(sessions, observations)  # type: ignore[arg-type]

    def describe(self) -> dict[str, Any]:
        """What a run records of its policy (JSON): type, revision, session mode, batching, device, package versions."""
        return self._engine.describe()


def validate(choice: PolicyChoice) -> None:
    """Look at a checkpoint folder, without LeRobot; a Hub id is taken on trust until it is loaded.

    Raises:
        ConfigError: it is no checkpoint, or a damaged one; or a count that is none.
    """
    if choice.path is None:
        raise ConfigError("policy lerobot needs --policy.path, a folder or owner/name on the Hub")
    for name, least in (("n_action_steps", 1), ("empty_cameras", 0)):
        _count(choice, name, least)
    if (device := choice.options.get("device")) is not None:
        devices.parse_device(str(device))
    if not files.is_hub_id(choice.path):
        found = checkpoint.inspect(choice.path)
        checkpoint.base_of_adapter(found.folder)
        Needs.of(found.config, f"{found.folder / checkpoint.CONFIG}")


def _count(choice: PolicyChoice, name: str, least: int) -> int | None:
    """Option ``name`` as a whole number of at least ``least``; None where it is not given."""
    if name not in choice.options:
        return None
    number: int = coerce(choice.options[name], int, f"--policy.{name}")
    if number < least:
        raise ConfigError(f"--policy.{name} must be at least {least}, got {number}")
    return number


def revision(choice: PolicyChoice) -> str:
    """What tells this checkpoint from another; see ``lerobot_support.checkpoint.revision``. A Hub repository's commit
    is the one that ``fitted`` settled, or what ``pretrained_revision`` is now."""
    settled = {**_commits(choice), **choice.options}
    return checkpoint.revision(str(choice.path), settled.get("commit"), settled.get("base_commit"))


def _commits(choice: PolicyChoice) -> dict[str, str]:
    """``commit`` or ``base_commit`` of what comes from the Hub, unless ``choice`` has them already.

    Raises:
        ConfigError: neither the Hub nor the cache can tell, or an adapter's configuration is damaged.
    """
    path, given = str(choice.path), choice.options
    if files.is_hub_id(path):
        wanted = given.get("pretrained_revision")
        return {} if given.get("commit") else {"commit": hub.commit(path, wanted, choice.python)}
    base, wanted = checkpoint.base_of_adapter(files.locate(path))
    if base is None or not files.is_hub_id(base) or given.get("base_commit"):
        return {}
    return {"base_commit": hub.commit(base, wanted, choice.python)}


def fitted(choice: PolicyChoice, tasks: Sequence[TaskSpec], rename_map: Mapping[str, str]) -> PolicyChoice:
    """``choice`` with what the benchmark decides: the cameras that ``empty_cameras`` makes up for, and the action size;
    and with the commit of what comes from the Hub, so that every server loads that one.

    Needs neither LeRobot nor a simulator. Whether a Hub repository fits is seen where it is loaded.

    Raises:
        ConfigError: it is no checkpoint.
        ContractError: checkpoint and benchmark do not fit; every reason of the first task that shows one.
    """
    commits = _commits(choice)
    if files.is_hub_id(str(choice.path)):
        return replace(choice, options={**commits, **choice.options})
    found = checkpoint.inspect(str(choice.path))
    needs = Needs.of(found.config, str(found.folder / checkpoint.CONFIG))
    cameras = _count(choice, "empty_cameras", 0)
    needs = needs if cameras is None else replace(needs, empty_cameras=cameras)
    for task in tasks:
        problems = needs.problems(task, rename_map)
        if problems:
            raise ContractError("\n".join(problems))
    absent = needs.absent_cameras(tasks[0], rename_map)
    derived = {**commits, "action_dim": tasks[0].action.dim, **({"absent_cameras": absent} if absent else {})}
    return replace(choice, options={**derived, **choice.options})


def looks_every_step(choice: PolicyChoice) -> bool:
    """By ``--policy.n_action_steps``, else by a checkpoint that is here."""
    steps: Any = choice.options.get("n_action_steps")
    if steps is None and choice.path is not None and not files.is_hub_id(choice.path):
        steps = checkpoint.inspect(choice.path).config.get("n_action_steps")
    return str(steps) == "1"


IN_REVISION = ("pretrained_revision", "commit", "base_commit")
"""Options that say which commit is meant: the revision names it, by whatever option it was chosen."""


def require_here(choice: PolicyChoice) -> None:
    """Refuse an interpreter without LeRobot, or a device that it does not have; called where the policy will run.

    Raises:
        NotInstalledError: LeRobot or torch is missing.
        ConfigError: no such device.
    """
    _require_lerobot()
    if (device := choice.options.get("device")) is not None:
        devices.require_device(str(device))


def _require_lerobot() -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    if find_spec("lerobot") is not None and find_spec("torch") is not None:
        return
    if sys.version_info < (3, 12):
        raise NotInstalledError(
            f"LeRobot 0.6 needs Python >= 3.12, and this is {version} ({sys.executable}): make an environment of its "
            f"own with `uv venv --python 3.12 lerobot-env && uv {install_command('lerobot')} --python "
            "lerobot-env/bin/python`, and add --policy.python=lerobot-env/bin/python"
        )
    raise NotInstalledError(f"LeRobot is not installed in {sys.executable}: {install_command('lerobot')}")
