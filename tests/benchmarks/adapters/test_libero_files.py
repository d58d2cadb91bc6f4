"""LIBERO's files are found without a question and read without executing them."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.libero.files import configure, load_states
from robotrials.errors import ConfigError, ContractError

STATES = np.random.default_rng(0).normal(size=(3, 300)) * 1e3


def saved(path: Path, content: Any) -> Path:
    """What torch.save writes, as far as it matters: a zip archive that holds a pickle of protocol 2."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content, protocol=2))
        archive.writestr("archive/version", "3\n")
    return path


def test_states_saved_by_torch_are_read_without_torch(tmp_path: Path) -> None:
    read = load_states(saved(tmp_path / "a.pruned_init", STATES))
    np.testing.assert_array_equal(read, STATES)
    assert read.dtype == np.float64
    read[0] = 0.0  # ours to change
    np.testing.assert_array_equal(load_states(saved(tmp_path / "b.init", STATES[1])), STATES[1])


def test_states_saved_by_torch_itself_are_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(STATES, tmp_path / "a.pruned_init")
    np.testing.assert_array_equal(load_states(tmp_path / "a.pruned_init"), STATES)


def test_states_of_libero_pro_are_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.pruned_init.npz", states=STATES)
    np.testing.assert_array_equal(load_states(tmp_path / "a.pruned_init"), STATES)


class Intruder:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("intruder",)


def test_what_a_file_wants_executed_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(load_states(saved(tmp_path / "a.pruned_init", [STATES, Intruder()])), STATES)
    with pytest.raises(ContractError):
        load_states(saved(tmp_path / "b.pruned_init", Intruder()))
    assert not (tmp_path / "intruder").exists()


@pytest.mark.parametrize("content", [Intruder(), STATES.astype(np.float32), "no states", [1, 2]])
def test_a_file_that_holds_something_else_is_refused(content: Any, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"a\.pruned_init holds no array of float64"):
        load_states(saved(tmp_path / "a.pruned_init", content))


def test_missing_states_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing: .*gone\.pruned_init; or run with --env\.init_states=false"):
        load_states(tmp_path / "gone.pruned_init")


def fake_package(folder: Path) -> Path:
    """A package that answers where its files are as hf-libero does: from a config.yaml, or by asking."""
    root = folder / "libero" / "libero"
    (root / "assets").mkdir(parents=True)
    (root.parent / "__init__.py").touch()  # else a LIBERO that is installed would come before it
    (root / "__init__.py").write_text(
        "import os\n"
        "path = os.path.join(os.environ.get('LIBERO_CONFIG_PATH', os.path.expanduser('~/.libero')), 'config.yaml')\n"
        "text = open(path).read() if os.path.exists(path) else input('Where? ')\n"
    )
    return root


def answer_of(root: Path, home: Path, **environment: str) -> str:
    """What the package reads after ``configure``, in a process of its own that has nobody to ask."""
    code = (
        "import sys, pathlib; from robotrials.benchmarks.adapters.libero.files import configure;"
        f"root = pathlib.Path({str(root)!r}); configure(root); sys.path.insert(0, str(root.parents[1]));"
        "import libero.libero; print(libero.libero.text)"
    )
    environment = {**os.environ, "HOME": str(home), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def test_the_question_never_appears_and_nothing_is_written_home(tmp_path: Path, home: Path) -> None:
    root = fake_package(tmp_path)
    (tmp_path / "empty").mkdir()
    for environment in ({}, {"LIBERO_CONFIG_PATH": str(tmp_path / "empty")}):
        paths = json.loads(answer_of(root, home, **environment))
        assert paths["bddl_files"] == str(root / "bddl_files")
        assert paths["init_states"] == str(root / "init_files")
        assert paths["assets"] == str(root / "assets")
        assert set(paths) == {"benchmark_root", "bddl_files", "init_states", "datasets", "assets"}
    assert list(home.iterdir()) == []


def test_what_the_user_configured_wins(tmp_path: Path, home: Path) -> None:
    root = fake_package(tmp_path)
    (home / ".libero").mkdir()
    (home / ".libero" / "config.yaml").write_text("from home")
    assert answer_of(root, home).strip() == "from home"
    (tmp_path / "config.yaml").write_text("from the variable")
    assert answer_of(root, home, LIBERO_CONFIG_PATH=str(tmp_path)).strip() == "from the variable"


def test_missing_assets_are_named(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("LIBERO_CONFIG_PATH", raising=False)
    monkeypatch.setenv("MPLCONFIGDIR", "as it was")
    root = fake_package(tmp_path)
    (root / "assets").rmdir()
    with pytest.raises(ConfigError, match=r"has no assets: put or link .*/libero/libero/assets"):
        configure(root)
