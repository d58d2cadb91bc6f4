"""Which part of the package may import which: no import points up, and no files import each other in a circle.

``LAYERS`` is the one place where the order is written down, lowest first. Parts of one layer do not import each other.
Imports inside functions and under ``TYPE_CHECKING`` count like all others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import robotrials

LAYERS = (
    ("version",),
    ("errors", "install", "machine"),
    ("plan", "rendering", "stats", "wire"),
    ("environments", "results"),
    ("benchmarks", "reporting"),
    ("datasets",),
    ("policies",),
    ("control",),
    ("engine", "serving", "worker"),
    ("run",),
    ("doctor", "suites", "tuning"),
    ("cli",),
    ("api",),
)
ROOT = Path(robotrials.__file__).parent
ENTRANCES = ("robotrials", "robotrials.__main__", "robotrials.moved")
"""What is above all layers: the package's face, ``python -m robotrials``, and import paths of before."""


def _modules() -> dict[str, Path]:
    named = {}
    for file in ROOT.rglob("*.py"):
        parts = file.relative_to(ROOT.parent).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return named


def _imports(file: Path, modules: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    """Each module of the package that ``file`` imports, and the line where it does."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                name = whole if whole in modules else node.module
                if name in modules:
                    yield name, node.lineno
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name in modules)


def _part(module: str) -> str:
    return module.split(".")[1]


def _layer(part: str) -> int:
    return next(number for number, parts in enumerate(LAYERS) if part in parts)


def test_every_part_of_the_package_has_a_layer() -> None:
    parts = {_part(name) for name in _modules() if name not in ENTRANCES}
    assert parts == {part for parts in LAYERS for part in parts}


def test_no_import_points_up_or_sideways() -> None:
    modules = _modules()
    wrong = [
        f"{modules[module].relative_to(ROOT)}:{line} imports {name}"
        for module in modules
        if module not in ENTRANCES
        for name, line in _imports(modules[module], modules)
        if name in ENTRANCES or (_part(name) != _part(module) and _layer(_part(name)) >= _layer(_part(module)))
    ]
    assert wrong == []


def test_no_files_import_each_other_in_a_circle() -> None:
    modules = _modules()
    graph = {name: {other for other, _ in _imports(file, modules)} - {name} for name, file in modules.items()}
    assert _circle({name: others for name, others in graph.items() if name not in ENTRANCES}) == []


def _circle(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of circles: what is left when modules that import none of the others, or that none of the others
    import, are taken away again and again."""
    left = dict(graph)
    while True:
        imported = {other for others in left.values() for other in others}
        free = [name for name, others in left.items() if not others & left.keys() or name not in imported]
        if not free:
            return sorted(left)
        for name in free:
            del left[name]
