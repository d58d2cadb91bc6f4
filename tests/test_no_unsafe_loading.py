"""No code of ours can be made to run what it reads: no pickle in any dress, no eval, no unsafe loader, no shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "examples", "bench", "scripts")

MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle", "xmlrpc"}
CALLS = {"eval", "exec", "__import__", "read_pickle", "to_pickle", "load_module"}
SAFE_YAML = {"SafeLoader", "CSafeLoader", "_StrictLoader"}
"""``_StrictLoader`` derives from SafeLoader; a test of ours says so below."""


def unsafe(source: str) -> Iterator[str]:
    """What in ``source`` could run what it reads, each with its line."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [name.name for name in node.names if name.name.split(".")[0] in MODULES]
            yield from (f"{node.lineno}: import {name}" for name in found)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            yield f"{node.lineno}: from {node.module} import"
        elif isinstance(node, ast.Call) and (why := unsafe_call(node)):
            yield f"{node.lineno}: {why}"


def unsafe_call(call: ast.Call) -> str:
    """Why this call could run what it reads; empty if it cannot."""
    owner, name = called(call)
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if name in CALLS and (not owner or name not in {"eval", "exec"}):
        return f"{name}()"
    if owner == "torch" and name == "load" and not is_constant(given.get("weights_only"), True):
        return "torch.load without weights_only=True"
    if owner in ("np", "numpy") and name == "load" and not is_constant(given.get("allow_pickle"), False):
        return "np.load without allow_pickle=False"
    if "allow_pickle" in given and not is_constant(given["allow_pickle"], False):
        return "allow_pickle that is not False"
    if owner == "yaml" and name in ("unsafe_load", "full_load", "load_all", "unsafe_load_all"):
        return f"yaml.{name}"
    if owner == "yaml" and name == "load" and getattr(given.get("Loader"), "id", "") not in SAFE_YAML:
        return "yaml.load without a safe loader"
    if is_constant(given.get("shell"), True) or (owner == "os" and name in ("system", "popen")):
        return "a shell"
    if name == "import_module" and call.args and isinstance(call.args[0], ast.Constant):
        return f"import_module({call.args[0].value})" if call.args[0].value in MODULES else ""
    return ""


def called(call: ast.Call) -> tuple[str, str]:
    """``("torch", "load")`` of ``torch.load(...)``, ``("", "eval")`` of ``eval(...)``."""
    if isinstance(call.func, ast.Name):
        return "", call.func.id
    if isinstance(call.func, ast.Attribute):
        owner = call.func.value
        return (owner.id if isinstance(owner, ast.Name) else "?"), call.func.attr
    return "", ""


def is_constant(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def files() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def test_there_are_files_to_look_at() -> None:
    assert len(files()) > 100


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_runs_what_it_reads(path: Path) -> None:
    assert list(unsafe(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "import os, marshal as m",
        "from shelve import open",
        "import joblib.numpy_pickle",
        "importlib.import_module('dill')",
        "eval(text)",
        "exec(text)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "numpy.load(path, allow_pickle=flag)",
        "array.dump(path, allow_pickle=True)",
        "yaml.load(text)",
        "yaml.load(text, Loader=yaml.UnsafeLoader)",
        "yaml.unsafe_load(text)",
        "pd.read_pickle(path)",
        "subprocess.run(words, shell=True)",
        "os.system(words)",
    ],
)
def test_what_it_looks_for_is_found(line: str) -> None:
    assert len(list(unsafe(line))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "torch.load(path, weights_only=True)",
        "np.load(path, allow_pickle=False)",
        "yaml.load(text, Loader=_StrictLoader)",
        "yaml.safe_load(text)",
        "model.eval()",
        "subprocess.run(words)",
    ],
)
def test_what_is_safe_passes(line: str) -> None:
    assert list(unsafe(line)) == []


def test_our_yaml_loader_is_a_safe_one() -> None:
    import yaml

    from robotrials.plan import strict_yaml

    assert issubclass(strict_yaml._StrictLoader, yaml.SafeLoader)
