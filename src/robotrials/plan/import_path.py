"""A user's own class, named by its import path: ``package.module:Class`` or ``path/to/file.py:Class``.

The current directory is importable, so a file beside the run needs no installation.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from robotrials.errors import ConfigError
from robotrials.plan.options import nearest

T = TypeVar("T")


def is_import_path(name: str) -> bool:
    """Whether ``name`` is an import path and not the name of something registered."""
    return ":" in name


def load(name: str, base: type[T], flag: str) -> type[T]:
    """Import the class that ``name`` leads to; ``flag`` (``--policy.type``) is how messages call it.

    Raises:
        ConfigError: no such module or file, an import that fails in it, no such class there, or one that is no
            complete subclass of ``base``.
    """
    where, class_name = _split(name, flag)
    file = source(name, flag)
    try:
        module = _import_file(file) if _is_file(where) else importlib.import_module(where)
    except Exception as error:
        raise ConfigError(f"{flag}={name}: importing {file} failed: {type(error).__name__}: {error}") from error
    if not hasattr(module, class_name):
        found = [k for k, v in vars(module).items() if _is_kind(v, base) and not inspect.isabstract(v)]
        there = f"of its kind there: {', '.join(found)}" if found else f"no class there is a robotrials {base.__name__}"
        raise ConfigError(f"{flag}={name}: {file} has no {class_name}{nearest(class_name, found)}; {there}")
    return require(getattr(module, class_name), base, f"{flag}={name}")


def source(name: str, flag: str) -> Path:
    """The file that ``name`` leads to, found without running it (only the packages around it are imported).

    Raises:
        ConfigError: no such module or file.
    """
    where, _ = _split(name, flag)
    if _is_file(where):
        file = Path(where).expanduser().resolve()
        if not file.is_file():
            raise ConfigError(f"{flag}={name}: no such file {file}")
        return file
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last: a file here must not stand in for an installed package
    try:
        spec = importlib.util.find_spec(where)
    except ModuleNotFoundError:
        spec = None
    except (ImportError, ValueError) as error:
        raise ConfigError(f"{flag}={name}: {where} is no module: {error}") from error
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ConfigError(
            f"{flag}={name}: no module {where}. Looked in the current directory ({here}) and in what is "
            f"installed for {sys.executable}; a file elsewhere is given as path/to/file.py:Class"
        )
    return Path(spec.origin)


def source_digest(name: str, flag: str) -> str:
    """First 16 hexadecimal digits of the SHA-256 of that file, for a run's identity: not of what it imports.

    Raises:
        ConfigError: no such module or file.
    """
    import hashlib

    return hashlib.sha256(source(name, flag).read_bytes()).hexdigest()[:16]


def absolute(name: str) -> str:
    """``name`` with the path of its file made absolute, so that it means the same from another folder."""
    where, colon, class_name = name.rpartition(":")
    return f"{Path(where).expanduser().absolute()}{colon}{class_name}" if where and _is_file(where) else name


def require(found: Any, base: type[T], what: str) -> type[T]:
    """``found`` if it is a complete subclass of ``base``.

    Raises:
        ConfigError: it is something else, or lacks a method.
    """
    if not _is_kind(found, base):
        raise ConfigError(f"{what} leads to {found!r}; derive the class from {base.__module__}.{base.__name__}")
    lacking = sorted(getattr(found, "__abstractmethods__", ()))
    if lacking:
        raise ConfigError(f"{what}: {found.__name__} lacks {' and '.join(f'{m}()' for m in lacking)}")
    return found  # type: ignore[no-any-return]


def _split(name: str, flag: str) -> tuple[str, str]:
    if name.startswith("builtin:"):
        raise ConfigError(f"{flag}={name}: models shipped with robotrials are named by --policy.path={name}")
    where, _, class_name = name.rpartition(":")  # the last colon: a path may hold others (C:\...)
    if not where or not class_name.isidentifier():
        raise ConfigError(f"{flag}={name}: write package.module:Class or path/to/file.py:Class")
    return where, class_name


def _is_file(where: str) -> bool:
    return where.endswith(".py")


def _is_kind(found: Any, base: type) -> bool:
    return isinstance(found, type) and issubclass(found, base)


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
