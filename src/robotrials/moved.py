"""Public import paths of version 0.1: each still imports, with a warning, until version 0.3."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "robotrials.benchmarks.installation": "robotrials.environments.installation",
    "robotrials.results.frame": "robotrials.results.export.frame",
    "robotrials.running.launchers.base": "robotrials.engine.launchers.base",
}
_PACKAGES = ("robotrials.running", "robotrials.running.launchers")
"""Packages of then that hold nothing but what moved."""


class MovedModules(MetaPathFinder, Loader):
    """Finds a module under its path of before; asked last, so it costs nothing where an import succeeds."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See ``MetaPathFinder.find_spec``."""
        if name in MOVED or name in _PACKAGES:
            return ModuleSpec(name, self, is_package=name in _PACKAGES)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Give ``module`` the names of the one that is in its place today."""
        name = module.__name__
        if name in _PACKAGES:
            return
        warnings.warn(f"{name} is now {MOVED[name]}; change the import", DeprecationWarning, stacklevel=2)
        found = vars(import_module(MOVED[name]))
        vars(module).update({key: value for key, value in found.items() if not key.startswith("__")})


def allow_old_paths() -> None:
    """Make paths of before importable in this process."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
