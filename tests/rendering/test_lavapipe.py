from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import robotrials.environments
from robotrials.rendering.lavapipe import use_lavapipe

SCRIPT = Path(robotrials.environments.__file__).parent / "prepare" / "lavapipe.sh"


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("VK_ICD_FILENAMES", raising=False)
    monkeypatch.delenv("VK_DRIVER_FILES", raising=False)
    monkeypatch.delenv("MESA_SHADER_CACHE_DIR", raising=False)
    (tmp_path / "lavapipe").mkdir()
    (tmp_path / "lavapipe" / "icd.json").write_text("{}")
    return tmp_path


def test_the_prepared_driver_is_the_one_that_vulkan_loads(prepared: Path) -> None:
    assert use_lavapipe(prepared) == prepared / "lavapipe" / "icd.json"
    assert os.environ["VK_ICD_FILENAMES"] == str(prepared / "lavapipe" / "icd.json")
    assert os.environ["MESA_SHADER_CACHE_DIR"] == str(prepared / "lavapipe" / "shaders")


@pytest.mark.parametrize("variable", ["VK_ICD_FILENAMES", "VK_DRIVER_FILES"])
def test_what_the_user_chose_stays(prepared: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "/mine.json")
    assert use_lavapipe(prepared) is None
    assert os.environ[variable] == "/mine.json"


def test_without_a_prepared_driver_vulkan_chooses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VK_ICD_FILENAMES", raising=False)
    monkeypatch.delenv("VK_DRIVER_FILES", raising=False)
    assert use_lavapipe(tmp_path) is None
    assert "VK_ICD_FILENAMES" not in os.environ


def test_preparing_twice_does_nothing(prepared: Path) -> None:
    done = subprocess.run(["bash", str(SCRIPT), str(prepared)], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (prepared / "lavapipe" / "icd.json").read_text() == "{}"


def test_preparing_without_a_folder_says_how_it_is_called() -> None:
    done = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, timeout=20)
    assert done.returncode != 0
    assert "usage: lavapipe.sh PREFIX" in done.stderr
