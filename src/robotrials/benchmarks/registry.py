"""From ``--env.type`` to a benchmark: what exists, whether it is installed, and the check of its options.

A benchmark is one module of this package that ends with ``BENCHMARK = ItsClass``; the module's name is its
``--env.type``. Packages elsewhere add theirs under the entry-point group ``robotrials.benchmarks``, and anybody's class
can be named by its import path (``my_file.py:Class``). Nothing is imported but the one module that is asked for, and
never the simulator.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from robotrials.benchmarks.base import Benchmark
from robotrials.benchmarks.scoring import scoring_of
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.plan import import_path
from robotrials.plan.config import EnvChoice
from robotrials.plan.options import build, nearest

ENTRY_POINTS = "robotrials.benchmarks"
_DEFINES = re.compile(r"^BENCHMARK\b", re.MULTILINE)


def names() -> list[str]:
    """The types that ``--env.type`` knows, sorted. Imports none of them."""
    package = sys.modules[__package__]
    own = [module.name for module in pkgutil.iter_modules(package.__path__) if _defines_benchmark(module)]
    return sorted({*own, *_plugins()})


def benchmark_class(name: str) -> type[Benchmark]:
    """The class behind ``--env.type=name``; imports its module, not its simulator.

    Raises:
        ConfigError: nobody has it; the message lists what exists. Or a plugin's entry point leads to no benchmark.
    """
    if import_path.is_import_path(name):
        return import_path.load(name, Benchmark, "--env.type")  # type: ignore[type-abstract]
    module = _own_module(name)
    if module is not None:
        return _require_benchmark(module.BENCHMARK, name)
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
        what = f"--env.type={cls.name} needs {', '.join(missing)}, which {sys.executable} lacks: "
        raise NotInstalledError(what + _remedy(cls))
    conflict = cls.conflict(package_versions(cls))
    if conflict:
        raise NotInstalledError(conflict)


def _remedy(cls: type[Benchmark]) -> str:
    """How to install it: by packages, or where no package index holds it, as its own instructions say."""
    if cls.installation.unavailable:
        return cls.installation.unavailable
    return (
        f'pip install "robotrials[{cls.extra}]", or, in an environment of its own: robotrials bench install {cls.name}'
    )


def is_installed_here(cls: type[Benchmark]) -> bool:
    """Whether this interpreter has all modules of a benchmark; whether they work together is another matter."""
    return all(_is_there(module) for module in cls.modules)


def package_versions(cls: type[Benchmark]) -> dict[str, str]:
    """Distribution to version of what can change an outcome, for the identity of a run; without those not installed.

    For the coordinator: importlib.metadata would add to the start-up of a worker.
    """
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str] = {}
    for package in cls.packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a.b, there is not even a
        return False


def _own_module(name: str) -> ModuleType | None:
    """This package's module for ``name``, imported; None when it has none that defines a benchmark."""
    if not name.isidentifier() or find_spec(f"{__package__}.{name}") is None:
        return None
    module = importlib.import_module(f"{__package__}.{name}")
    return module if hasattr(module, "BENCHMARK") else None


def _require_benchmark(found: Any, name: str) -> type[Benchmark]:
    if not (isinstance(found, type) and issubclass(found, Benchmark)):
        raise ConfigError(f"--env.type={name}: {found!r} is no subclass of robotrials.benchmarks.base.Benchmark")
    return found


def _defines_benchmark(module: pkgutil.ModuleInfo) -> bool:
    """Whether its source names a BENCHMARK; reading the text is how helpers are told apart without importing all."""
    spec = find_spec(f"{__package__}.{module.name}")
    get_source = getattr(spec.loader, "get_source", None) if spec else None
    source = get_source(f"{__package__}.{module.name}") if get_source else None
    return source is not None and _DEFINES.search(source) is not None


def _plugins() -> dict[str, Any]:
    from importlib.metadata import entry_points  # costs more than the rest of this module, and is rarely needed

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}
