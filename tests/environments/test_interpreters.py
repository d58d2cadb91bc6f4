from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from robotrials.environments.interpreters import find_python, in_range, version_of
from robotrials.errors import ConfigError

HERE = f"3.{sys.version_info.minor}"


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ((3, 11), ">=3.11,<3.13", True),
        ((3, 13), ">=3.11,<3.13", False),
        ((3, 9, 18), ">=3.10", False),
        ((3, 12, 4), "==3.12", True),
        ((3, 12, 4), "!=3.12", False),
        ((3, 10), "", True),
    ],
)
def test_a_range_is_compared_as_far_as_it_goes(version: tuple[int, ...], wanted: str, expected: bool) -> None:
    assert in_range(version, wanted) is expected


def test_a_range_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="newest"):
        in_range((3, 11), "newest")


def test_the_running_python_is_taken_where_it_fits() -> None:
    assert find_python(">=3.10", uv=None) == sys.executable
    assert find_python(">=3.10", uv=None, asked=HERE) == sys.executable


def test_one_that_does_not_run_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pyenv's shims are: on the PATH, and refusing."""
    shim = tmp_path / "python3.10"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "no-pyenv"))
    assert version_of(str(shim)) is None
    with pytest.raises(ConfigError, match=r"no Python ==3\.10 here\. Install one \(apt install python3\.10-venv"):
        find_python("==3.10", uv=None)


def test_pyenvs_newest_patch_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for patch in (2, 13):
        path = tmp_path / "versions" / f"3.10.{patch}" / "bin" / "python"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\necho 3 10 {patch}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert find_python("==3.10", uv=None) == str(tmp_path / "versions" / "3.10.13" / "bin" / "python")


def test_the_users_choice_is_held_to_the_range() -> None:
    with pytest.raises(ConfigError, match=r"--python=3\.9: the pinned packages need >=3\.10"):
        find_python(">=3.10", uv=None, asked="3.9")
    with pytest.raises(ConfigError, match=r"--python=3\.99: there is no Python 3\.99 here, and 3\.\d+ is the newest"):
        find_python(">=3.10", uv=None, asked="3.99")
    with pytest.raises(ConfigError, match=r"is Python 3\..*; the pinned packages need <3\.0"):
        find_python("<3.0", uv=None, asked=sys.executable)
    with pytest.raises(ConfigError, match="no such interpreter"):
        find_python(">=3.10", uv=None, asked=os.devnull)
