"""LeRobot's packages without what their ``__init__`` files import besides: a policy server starts in half the time.

Importing ``lerobot.policies.act.modeling_act`` runs the ``__init__`` of every package on the way. Those import every
policy, processor and environment that LeRobot has, with transformers, diffusers, datasets and pandas behind. Here, a
package whose ``__init__`` only re-exports names gets them when they are asked for (PEP 562), from the very modules
that the ``__init__`` names. What such imports register on the side (policy types, processor steps) is registered only
once its module is imported: ``import_all`` runs the files as they are, for whoever misses something.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGE = "lerobot"


def install() -> None:
    """From now on, packages of LeRobot that are imported for the first time are lean. Twice is as good as once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


@contextlib.contextmanager
def training_parts_left_out() -> Iterator[None]:
    """While LeRobot's base classes are imported: peft and diffusers count as not installed. There they serve
    training alone (wrapping a policy for PEFT, learning-rate schedules). Everything imported afterwards sees them."""
    from lerobot.utils import import_utils

    flags = ("_peft_available", "_diffusers_available")
    before = {flag: getattr(import_utils, flag) for flag in flags if hasattr(import_utils, flag)}
    for flag in before:
        setattr(import_utils, flag, False)
    try:
        yield
    finally:
        for flag, value in before.items():
            setattr(import_utils, flag, value)


@contextlib.contextmanager
def torch_compiler_left_out() -> Iterator[None]:
    """While torchvision is imported: torch's compiler is not, a quarter of the whole start. torchvision wants two
    things of it: a function for its RoIAlign operator, which is fetched once it is called, and a mark that a helper of
    its tensor classes must not be compiled, which is left off."""
    import torch

    name = "torch._dynamo.utils"
    if name in sys.modules:
        yield
        return

    def is_compile_supported(device_type: str) -> bool:
        return bool(importlib.import_module(name).is_compile_supported(device_type))

    def disable(function: Any = None, *_: Any, **__: Any) -> Any:
        return (lambda inner: inner) if function is None else function

    stand_in = ModuleType(name)
    stand_in.is_compile_supported = is_compile_supported  # type: ignore[attr-defined]
    real_disable, torch.compiler.disable = torch.compiler.disable, disable
    sys.modules[name] = stand_in
    try:
        yield
    finally:
        torch.compiler.disable = real_disable
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]


def import_all(package: str) -> None:
    """Run the real ``__init__`` of a package, with all that it imports and registers."""
    module = importlib.import_module(package)
    loader = getattr(module.__spec__, "loader", None)
    if isinstance(loader, _LeanLoader):
        loader.run_in_full(module)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PACKAGE + "."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not spec.submodule_search_locations or type(spec.loader) is not SourceFileLoader:
            return None
        exports = _exports(Path(spec.loader.path), fullname)
        if exports is None:
            return None
        spec.loader = _LeanLoader(spec.loader, exports)
        return spec


class _LeanLoader(Loader):
    """Gives a package its names on demand. ``exports``: name to (module, attribute; None for the module itself)."""

    def __init__(self, real: SourceFileLoader, exports: dict[str, tuple[str, str | None]]) -> None:
        self._real = real
        self._exports = exports

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exports = self._exports

        def resolve(name: str) -> Any:
            if name not in exports:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            source, attribute = exports[name]
            found = importlib.import_module(source)
            value = found if attribute is None else getattr(found, attribute)
            setattr(module, name, value)
            return value

        module.__getattr__ = resolve  # type: ignore[method-assign]
        module.__all__ = [name for name in exports if not name.startswith("_")]  # type: ignore[attr-defined]

    def run_in_full(self, module: ModuleType) -> None:
        self._real.exec_module(module)


def _exports(init: Path, package: str) -> dict[str, tuple[str, str | None]] | None:
    """What the ``__init__`` at ``init`` re-exports; None if it does anything else, or a name is also a submodule's."""
    found: dict[str, tuple[str, str | None]] = {}
    for statement in ast.parse(init.read_bytes()).body:
        if isinstance(statement, ast.ImportFrom):
            source = _source(statement, package)
            for alias in statement.names:
                if alias.name == "*":
                    return None
                found[alias.asname or alias.name] = (source, alias.name)
        elif not _is_inert(statement):
            return None
    submodules = {entry.stem for entry in init.parent.iterdir()}
    if any(name in submodules for name in found):
        return None
    found.pop("annotations", None)
    return found


def _source(statement: ast.ImportFrom, package: str) -> str:
    base = package.split(".")[: len(package.split(".")) - (statement.level - 1)] if statement.level else []
    return ".".join([*base, *filter(None, [statement.module])])


def _is_inert(statement: ast.stmt) -> bool:
    """A docstring or the list of public names."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Assign) and all(
        isinstance(target, ast.Name) and target.id == "__all__" for target in statement.targets
    )
