"""From ``--env.type`` to a benchmark: what exists, whether it is installed, and the check of its options.

``OWN`` lists the benchmarks of this package. Packages elsewhere add theirs under the entry-point group
``robotrials.benchmarks``, and anybody's class can be named by its import path (``my_file.py:Class``). Nothing is
imported but the one module that is asked for, and never the simulator.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from robotrials.benchmarks.base import Benchmark
from robotrials.benchmarks.scoring import scoring_of
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.install import install_command
from robotrials.plan import import_path
from robotrials.plan.config import EnvChoice
from robotrials.plan.options import build, nearest

ENTRY_POINTS = "robotrials.benchmarks"

OWN = {
    "aloha": "robotrials.benchmarks.adapters.aloha:Aloha",
    "gym": "robotrials.benchmarks.adapters.gym.benchmark:Gym",
    "gymnasium_robotics": "robotrials.benchmarks.adapters.gymnasium_robotics:GymnasiumRobotics",
    "hub": "robotrials.benchmarks.adapters.hub:Hub",
    "isaaclab_arena": "robotrials.benchmarks.adapters.isaaclab_arena:IsaacLabArena",
    "lerobot_env": "robotrials.benchmarks.adapters.lerobot_env:LeRobotEnv",
    "libero": "robotrials.benchmarks.adapters.libero.benchmark:Libero",
    "libero_plus": "robotrials.benchmarks.adapters.libero.plus:LiberoPlus",
    "maniskill": "robotrials.benchmarks.adapters.maniskill.benchmark:ManiSkill",
    "metaworld": "robotrials.benchmarks.adapters.metaworld.benchmark:MetaWorld",
    "pusht": "robotrials.benchmarks.adapters.pusht:PushT",
    "robocasa": "robotrials.benchmarks.adapters.robocasa:RoboCasa",
    "robomme": "robotrials.benchmarks.adapters.robomme:RoboMME",
    "robosuite": "robotrials.benchmarks.adapters.robosuite.benchmark:Robosuite",
    "robotwin": "robotrials.benchmarks.adapters.robotwin:RoboTwin",
    "vlabench": "robotrials.benchmarks.adapters.vlabench.benchmark:VLABench",
}
"""``--env.type`` to the class of this package behind it."""


def names() -> list[str]:
    """The types that ``--env.type`` knows, sorted. Imports none of them."""
    return sorted({*OWN, *_plugins()})


def benchmark_class(name: str) -> type[Benchmark]:
    """The class behind ``--env.type=name``; imports its module, not its simulator.

    Raises:
        ConfigError: unknown; the message lists what exists. Or a plugin's entry point leads to no benchmark.
    """
    if import_path.is_import_path(name):
        return import_path.load(name, Benchmark, "--env.type")  # type: ignore[type-abstract]
    if name in OWN:
        module, _, class_name = OWN[name].partition(":")
        return _require_benchmark(getattr(importlib.import_module(module), class_name), name)
    plugins = _plugins()
    if name in plugins:
        return _require_benchmark(plugins[name].load(), name)
    known = names()
    what = f"unknown --env.type={name}{nearest(name, known)}" if name else "no benchmark: give --env.type"
    raise ConfigError(f"{what}; known: {', '.join(known)}, or a class of yours as module:Class")


def make_benchmark(choice: EnvChoice) -> Benchmark:
    """The benchmark with its ``--env.*`` options read and checked. The simulator need not be installed.

    Raises:
        ConfigError: an unknown benchmark, or an unknown or unreadable option.
    """
    cls = benchmark_class(choice.type)
    if choice.options.get("task") == "all" and not cls.lists_tasks:
        raise ConfigError(f"--env.task=all: {cls.name} has no list of its tasks; name those that you want")
    benchmark = cls(build(cls.Config, choice.options, "--env."))
    benchmark.python = choice.python
    scoring_of(benchmark)
    return benchmark


def require_installed(cls: type[Benchmark]) -> None:
    """Refuse, before anything runs, a benchmark that this interpreter cannot run. Imports nothing.

    Raises:
        NotInstalledError: a module is missing, or versions are installed that are known not to work together; the
            message holds the command that mends it.
    """
    missing = [module for module in cls.modules if not _is_there(module)]
    if missing:
        raise NotInstalledError(
            f"--env.type={cls.name} needs {', '.join(missing)}, which {sys.executable} lacks: {_remedy(cls)}"
        )
    conflict = cls.conflict(package_versions(cls))
    if conflict:
        raise NotInstalledError(conflict)


def _remedy(cls: type[Benchmark]) -> str:
    if cls.name not in OWN:
        return "install it there"
    if cls.installation.unavailable:
        return cls.installation.unavailable
    own = f"robotrials bench install {cls.name}"
    return f"{install_command(cls.extra)}, or, in an environment of its own: {own}"


def is_installed_here(cls: type[Benchmark]) -> bool:
    """Whether this interpreter has all modules of a benchmark; whether they work together is another matter."""
    return all(_is_there(module) for module in cls.modules)


def package_versions(cls: type[Benchmark], folders: Sequence[str] | None = None) -> dict[str, str]:
    """Distribution to version of what can change an outcome, for the identity of a run; without those not installed.
    ``folders`` are those of another interpreter's packages, None: this one's.

    For the coordinator: importlib.metadata would add to the start-up of a worker.
    """
    from importlib.metadata import Distribution

    where: dict[str, Any] = {} if folders is None else {"path": list(folders)}
    found: dict[str, str] = {}
    for package in cls.packages:
        distribution = next(iter(Distribution.discover(name=package, **where)), None)
        if distribution is not None:
            found[package] = distribution.version
    return found


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a.b, there is not even a
        return False


def _require_benchmark(found: Any, name: str) -> type[Benchmark]:
    if not (isinstance(found, type) and issubclass(found, Benchmark)):
        raise ConfigError(f"--env.type={name}: {found!r} is no subclass of robotrials.benchmarks.base.Benchmark")
    return found


def _plugins() -> dict[str, Any]:
    from importlib.metadata import entry_points  # costs more than the rest of this module, and is rarely needed

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}
