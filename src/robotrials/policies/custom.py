"""A user's own policy, named by its import path: ``--policy.type=package.module:Class`` or ``my_file.py:Class``.

The current directory is importable, so a file beside the run needs no installation::

    # my_file.py
    import numpy as np
    from robotrials.policies.base import Policy, PolicySpec

    class Lazy(Policy):
        def __init__(self, gain: float = 0.5) -> None:      # --policy.gain=0.3 arrives as 0.3
            self.gain = gain

        def spec(self) -> PolicySpec:                       # what it looks at; any shape will do
            return PolicySpec("lazy", {"observation.state": None})

        def act(self, sessions, observations) -> np.ndarray:            # (B, T, A): here T is 1
            return np.stack([-self.gain * obs["observation.state"][None] for obs in observations])

``robotrials eval --policy.type=my_file.py:Lazy --policy.gain=0.3 --env.type=...`` then runs it. A policy that remembers
something of an episode returns its own ``Session`` subclass from ``new_session`` and keeps it there.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.options import nearest
from robotrials.policies.base import Policy


def is_import_path(name: str) -> bool:
    """Whether a ``--policy.type`` is ``module:Class`` or ``file.py:Class`` and not the name of a registered type."""
    return ":" in name


def load(name: str) -> type[Policy]:
    """Import the class that ``name`` leads to.

    Raises:
        ConfigError: no such module or file, an import that fails in it, no such class there, or no ``Policy``.
    """
    where, class_name = _split(name)
    file = source(name)
    try:
        module = _import_file(file) if _is_file(where) else importlib.import_module(where)
    except Exception as error:
        raise ConfigError(f"--policy.type={name}: importing {file} failed: {type(error).__name__}: {error}") from error
    if not hasattr(module, class_name):
        found = [key for key, value in vars(module).items() if _is_policy(value) and value is not Policy]
        there = f"its policies: {', '.join(found)}" if found else "no class there is a robotrials Policy"
        raise ConfigError(f"--policy.type={name}: {file} has no {class_name}{nearest(class_name, found)}; {there}")
    return require_policy(getattr(module, class_name), name)


def source(name: str) -> Path:
    """The file that ``name`` leads to, found without running it (only the packages around it are imported).

    Raises:
        ConfigError: no such module or file.
    """
    where, _ = _split(name)
    if _is_file(where):
        file = Path(where).expanduser().resolve()
        if not file.is_file():
            raise ConfigError(f"--policy.type={name}: no such file {file}")
        return file
    _make_current_directory_importable()
    try:
        spec = importlib.util.find_spec(where)
    except ModuleNotFoundError:
        spec = None
    except (ImportError, ValueError) as error:
        raise ConfigError(f"--policy.type={name}: {where} is no module: {error}") from error
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ConfigError(
            f"--policy.type={name}: no module {where}. Looked in the current directory ({os.getcwd()}) and in what is "
            f"installed for {sys.executable}; a file elsewhere is given as path/to/file.py:Class"
        )
    return Path(spec.origin)


def require_policy(found: Any, name: str) -> type[Policy]:
    """``found`` if it is a complete ``Policy`` class.

    Raises:
        ConfigError: it is something else, or lacks a method.
    """
    if not _is_policy(found):
        raise ConfigError(
            f"--policy.type={name} leads to {found!r}, which is no policy: "
            "derive the class from robotrials.policies.base.Policy"
        )
    lacking = sorted(found.__abstractmethods__)
    if lacking:
        raise ConfigError(f"--policy.type={name}: {found.__name__} lacks {' and '.join(f'{m}()' for m in lacking)}")
    return found  # type: ignore[no-any-return]


def _split(name: str) -> tuple[str, str]:
    where, _, class_name = name.rpartition(":")  # the last colon: a path may hold others (C:\...)
    if not where or not class_name.isidentifier():
        raise ConfigError(f"--policy.type={name}: write package.module:Class or path/to/file.py:Class")
    return where, class_name


def _is_file(where: str) -> bool:
    return where.endswith(".py")


def _is_policy(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, Policy)


def _make_current_directory_importable() -> None:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def _import_file(file: Path) -> ModuleType:
    """Run one file as a module; its neighbours are importable, as if it had been run as a script."""
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    module_name = f"robotrials_user_{file.stem}"
    loaded = sys.modules.get(module_name)
    if loaded is not None and loaded.__file__ == str(file):
        return loaded
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # before it runs: dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
