"""What a class says of itself in its source, read without importing it: a policy's module may import torch for seconds.

Class attributes that are written as a plain value are found, in the class or in the classes it derives from, which may
be imported from other modules. What is only decided when the module runs is not.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

_DEEPEST = 16
"""Classes and re-exports that are followed one after the other; more is a circle."""


def attribute(file: Path, class_name: str, name: str) -> Any:
    """The value of class attribute ``name`` of the class that ``file`` calls ``class_name``; None where its source does
    not tell."""
    return _attribute(file, class_name, name, _DEEPEST)


def module_file(module: str) -> Path | None:
    """The source of ``module``, found without importing anything; None where there is none."""
    top, *rest = module.split(".")
    try:
        spec: ModuleSpec | None = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    for position, _ in enumerate(rest):
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(".".join([top, *rest[: position + 1]]), spec.submodule_search_locations)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def _attribute(file: Path, class_name: str, name: str, deep: int) -> Any:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for statement in reversed(list(_statements(tree.body))):
        if isinstance(statement, ast.ClassDef) and statement.name == class_name:
            return _of_class(statement, file, name, deep)
        if isinstance(statement, ast.ImportFrom) and deep:
            for alias in statement.names:
                if (alias.asname or alias.name) == class_name:
                    return _imported(statement, alias.name, file, name, deep)
    return None


def _of_class(found: ast.ClassDef, file: Path, name: str, deep: int) -> Any:
    for statement in reversed(list(_statements(found.body))):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            value = getattr(statement, "value", None)
            if value is not None:
                return value.value if isinstance(value, ast.Constant) else None
    for base in found.bases if deep else ():
        inherited = None
        if isinstance(base, ast.Name) and base.id != found.name:
            inherited = _attribute(file, base.id, name, deep - 1)
        if inherited is not None:
            return inherited
    return None


def _imported(statement: ast.ImportFrom, original: str, file: Path, name: str, deep: int) -> Any:
    if statement.level:  # from .other import Base
        folder = file.parents[statement.level - 1]
        beside = folder.joinpath(*(statement.module or "__init__").split("."))
        candidates = [beside.with_suffix(".py"), beside / "__init__.py"]
    else:
        neighbour = file.parent.joinpath(*(statement.module or "").split(".")).with_suffix(".py")
        installed = module_file(statement.module or "")
        candidates = [installed] if installed is not None else [neighbour]
    return next((_attribute(other, original, name, deep - 1) for other in candidates if other.is_file()), None)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a body, and those under its ``if`` and ``try``."""
    for statement in body:
        yield statement
        for inner in ("body", "orelse", "finalbody"):
            if isinstance(statement, (ast.If, ast.Try)):
                yield from _statements(getattr(statement, inner, []))
