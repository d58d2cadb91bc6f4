"""Small packages that stand in for simulators that cannot be installed: the same modules, the same calls.

What they prove is that an adapter makes the calls of the documented interface and reads their answers; not that the
real simulator answers so.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def install(folder: Path, files: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Write ``files`` below ``folder`` and make them importable, here and in processes that are started."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for parent in path.relative_to(folder).parents:
            if path.suffix == ".py" and parent != Path() and not (folder / parent / "__init__.py").exists():
                (folder / parent / "__init__.py").write_text('"""A stand-in."""\n')
    for package in {Path(name).parts[0].removesuffix(".py") for name in files}:
        for module in [name for name in sys.modules if name == package or name.startswith(package + ".")]:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))


def forget(*packages: str) -> None:
    """Take the stand-ins out of the interpreter again."""
    for module in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[module]
