"""Environments from a Hub repository, or from a folder: an ``env.py`` that defines ``make_env``.

``make_env(n_envs=1, use_async_envs=False)`` returns a ``gymnasium.Env``, a vector environment of one, or
``{suite: {task number: vector environment}}`` (LeRobot 0.6, "EnvHub"). Running it is running somebody's code, so it
must be asked for by name: ``--trust_remote_code=true``. It runs in workers and in one process that looks at its shapes,
never in the coordinator.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robotrials.benchmarks.adapters.foreign.benchmark import ForeignBenchmark
from robotrials.benchmarks.adapters.foreign.readers import PlainReader, Reader
from robotrials.benchmarks.adapters.foreign.single_env import SingleEnv
from robotrials.benchmarks.adapters.gym.reading import ObservationReader
from robotrials.benchmarks.adapters.gym.success import SUCCESS_HELP
from robotrials.benchmarks.base import BenchmarkConfig
from robotrials.environments.installation import Installation
from robotrials.errors import ConfigError
from robotrials.install import install_command
from robotrials.plan.config import option

FILE = "env.py"


@dataclass(frozen=True)
class HubConfig(BenchmarkConfig):
    """``--env.*`` of a Hub environment."""

    task: str = option("", "a suite of those that make_env returns; default: all of them")
    repo: str = option("", "org/name, org/name@revision, org/name@revision:file.py, or a folder or file here")
    kwargs: Mapping[str, Any] = option({}, "further arguments of make_env, as {a: b}")
    success: str = option("", SUCCESS_HELP)
    state: tuple[str, ...] = option((), "entries joined to observation.state, a/b for b within a; default: all vectors")
    environment_state: tuple[str, ...] = option((), "entries joined to observation.environment_state")
    ignore: tuple[str, ...] = option((), "entries that are left out, such as a depth camera; a/b for b within a")
    max_steps: int = option(0, "step limit of an episode; 0: the environment's own", least=0)
    fps: float = option(0.0, "control rate in Hz; 0: the environment's render_fps", least=0)
    rebuild: bool = option(False, "make the environment anew for every episode")
    trust_remote_code: bool = option(False, "run the code of that repository: --trust_remote_code=true is the same")


@dataclass(frozen=True)
class Repo:
    """What ``--env.repo`` names: a file of a Hub repository at a revision, or (``folder``) one that is here."""

    name: str
    revision: str | None = None
    file: str = FILE
    folder: Path | None = None


def parse_repo(text: str) -> Repo:
    """
    Raises:
        ConfigError: it is neither a repository's name nor a folder or file that is here.
    """
    where, _, file = text.partition(":")
    local = Path(where).expanduser()
    if local.is_dir():
        return Repo(where, file=file or FILE, folder=local.resolve())
    if local.is_file():
        return Repo(where, file=local.name, folder=local.resolve().parent)
    name, _, revision = where.partition("@")
    if name.count("/") != 1 or name.startswith((".", "/", "~")) or not all(name.split("/")):
        raise ConfigError(
            f"--env.repo={text}: write org/name, org/name@revision, org/name@revision:file.py, or a folder that exists"
        )
    return Repo(name, revision or None, file or FILE)


def require_trust(repo: Repo, text: str, trusted: bool) -> None:
    """
    Raises:
        ConfigError: nobody has said that the code may run; the message says what that means.
    """
    if not trusted:
        raise ConfigError(
            f"--env.repo={text}: this would run {repo.file} of {repo.name}, code that may do anything you can do. "
            "If you have read it and trust it, add --trust_remote_code=true"
            + ("" if repo.folder or repo.revision else ", and name a revision: @<commit>")
        )


def find_file(repo: Repo, text: str) -> Path:
    """The file that defines ``make_env``, fetched if need be.

    Raises:
        ConfigError: it cannot be fetched, or is not in the repository.
    """
    file = (repo.folder or _download(repo)) / repo.file
    if not file.is_file():
        raise ConfigError(f"--env.repo={text}: there is no {repo.file} in {repo.name}")
    return file


def load_make_env(repo: Repo, text: str) -> Callable[..., Any]:
    """Run the file, and return its ``make_env``. Call ``require_trust`` first.

    Raises:
        ConfigError: as ``find_file`` does; or the file needs what is not installed, or defines no ``make_env``.
    """
    file = find_file(repo, text)
    make_env: Callable[..., Any] | None = getattr(_load(file), "make_env", None)
    if make_env is None:
        raise ConfigError(f"--env.repo={text}: {file.name} defines no make_env(n_envs, use_async_envs)")
    return make_env


class Hub(ForeignBenchmark):
    """``--env.type=hub``."""

    name = "hub"
    extra = "hub"
    modules = ("gymnasium",)
    packages = ("gymnasium", "numpy", "torch", "mujoco", "lerobot")
    Config = HubConfig
    installation = Installation(
        unavailable="each repository says what it needs; run its workers in an interpreter that has it: --env.python"
    )

    def __init__(self, config: HubConfig) -> None:
        super().__init__(config)
        if not config.repo:
            raise ConfigError("--env.repo is needed: org/name, org/name@revision, or a folder with an env.py")
        self._repo = parse_repo(config.repo)
        require_trust(self._repo, config.repo, config.trust_remote_code)

    def build(self) -> Mapping[str, Mapping[int, Any]]:
        """
        Raises:
            ConfigError: no such file, no ``make_env`` in it, an unknown suite, or it returns something else.
        """
        make_env = load_make_env(self._repo, self.config.repo)
        made = make_env(n_envs=1, use_async_envs=False, **self.config.kwargs)
        built = _by_suite(made, self._repo)
        wanted = "" if self.config.task.strip() == "all" else self.config.task.strip()
        if not wanted:
            return built
        if wanted not in built:
            raise ConfigError(f"--env.task={wanted}: {self._repo.name} has {', '.join(built)}")
        return {wanted: built[wanted]}

    def reader(self, sim: SingleEnv) -> Reader:
        config = self.config
        return PlainReader(
            ObservationReader(sim.observation_space, sim.name, config.state, config.environment_state, config.ignore)
        )

    def source(self) -> str:
        """Name and revision, which may be a branch's: what its files hold is hashed besides, with all they import."""
        return f"{self._repo.name}@{self._repo.revision or 'main'}:{self._repo.file}"


def _by_suite(made: Any, repo: Repo) -> Mapping[str, Mapping[int, Any]]:
    if isinstance(made, Mapping):
        return made
    if hasattr(made, "step") and hasattr(made, "reset"):
        spec = getattr(made, "spec", None)
        return {str(getattr(spec, "id", None) or Path(repo.name).name): {0: made}}
    raise ConfigError(
        f"make_env of {repo.name} returned {type(made).__name__}; right is an environment, a vector environment, or "
        "{suite: {task number: vector environment}}"
    )


def _download(repo: Repo) -> Path:
    """The repository's files at the revision, from the Hub's cache where they are there."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError:
        raise ConfigError(f"{repo.name} is on a Hub: {install_command('hub')}") from None
    try:
        return Path(snapshot_download(repo.name, revision=repo.revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ConfigError(f"--env.repo={repo.name}: it could not be fetched: {str(error).splitlines()[0]}") from error


def _load(file: Path) -> Any:
    """Run the file as a module; its neighbours are importable, as if it had been run as a script."""
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    name = f"robotrials_hub_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        del sys.modules[name]
        raise ConfigError(f"{file}: it needs {error.name}, which {sys.executable} lacks") from error
    return module
