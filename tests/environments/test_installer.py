"""Real environments, made by uv or pip from a wheel on disk; robotrials' own dependencies are left out of them, which
keeps the tests off any index."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import robotrials
from robotrials.environments import folders, installer
from robotrials.errors import ConfigError, InstallError
from tests.benchmarks.local_index import benchmark, make_wheel


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBOTRIALS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(installer, "own_requirements", list)


def ask(environment: folders.Environment, code: str) -> str:
    done = subprocess.run([environment.python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_an_environment_holds_the_pins_and_the_very_same_robotrials(tmp_path: Path) -> None:
    cls = benchmark(str(make_wheel(tmp_path)))
    said: list[str] = []
    assert installer.install(cls.installation, "tiny", say=said.append)
    environment = folders.find("tiny")
    assert environment is not None
    assert ask(environment, "import tiny_simulator; print(tiny_simulator.GRAVITY)") == "9.81"
    assert ask(environment, "import os, robotrials; print(os.path.realpath(robotrials.__file__))") == str(
        Path(robotrials.__file__).resolve()
    )
    assert ask(environment, "import sys; print(sys.prefix)") == environment.prefix
    assert any("tiny_simulator" in line for line in said)


def test_a_second_installation_does_nothing_and_force_makes_it_anew(tmp_path: Path) -> None:
    cls = benchmark(str(make_wheel(tmp_path)))
    installer.install(cls.installation, "tiny")
    (before,) = folders.made("tiny")
    assert not installer.install(cls.installation, "tiny")
    assert folders.made("tiny") == [before]
    assert installer.install(cls.installation, "tiny", force=True)
    assert len(folders.made("tiny")) == 1
    assert folders.made("tiny") != [before]


def test_moved_pins_are_told_and_installed(tmp_path: Path) -> None:
    old, new = (benchmark(str(make_wheel(tmp_path, version=version))) for version in ("1.0", "1.1"))
    installer.install(old.installation, "tiny")
    environment = folders.find("tiny")
    assert environment is not None
    assert environment.is_of(old.installation)
    assert not environment.is_of(new.installation)
    assert installer.install(new.installation, "tiny")
    assert ask(environment, "import importlib.metadata as m; print(m.version('tiny-simulator'))") == "1.1"


def test_pip_serves_where_there_is_no_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "find_uv", lambda: None)
    installer.install(benchmark(str(make_wheel(tmp_path))).installation, "tiny")
    environment = folders.find("tiny")
    assert environment is not None
    assert ask(environment, "import tiny_simulator; print(tiny_simulator.GRAVITY)") == "9.81"


def test_a_failed_installation_says_why_and_leaves_the_one_before(tmp_path: Path) -> None:
    installer.install(benchmark(str(make_wheel(tmp_path))).installation, "tiny")
    standing = folders.made("tiny")
    with pytest.raises(InstallError, match=r"(?s)installing the packages failed.*no-such-simulator"):
        installer.install(benchmark("no-such-simulator==1.0").installation, "tiny")
    assert folders.made("tiny") == standing
    assert folders.find("tiny") is not None


def test_an_index_out_of_reach_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.setenv("UV_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(InstallError, match=r"(?s)package index seems out of reach.*UV_INDEX_URL"):
        installer.install(benchmark("no-such-simulator==1.0").installation, "tiny")


def test_an_interrupted_installation_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    """Killed: no handler has run, so all that was made so far lies there."""
    cls = benchmark(str(make_wheel(tmp_path)))
    left = folders.folder_of("tiny") / "0badc0de"
    (left / "bin").mkdir(parents=True)
    (left / "bin" / "python").symlink_to(sys.executable)
    (left.parent / "current").symlink_to("0badc0de")
    assert folders.find("tiny") is None
    assert installer.install(cls.installation, "tiny")
    assert folders.find("tiny") is not None
    assert "0badc0de" not in folders.made("tiny")


def test_two_installations_at_once_make_one(tmp_path: Path) -> None:
    cls = benchmark(str(make_wheel(tmp_path)))
    made: list[bool] = []
    threads = [
        threading.Thread(target=lambda: made.append(installer.install(cls.installation, "tiny"))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False, False, True]
    assert len(folders.made("tiny")) == 1


def test_removing_leaves_nothing(tmp_path: Path) -> None:
    installer.install(benchmark(str(make_wheel(tmp_path))).installation, "tiny")
    assert installer.remove("tiny")
    assert folders.find("tiny") is None
    assert folders.made("tiny") == []
    assert not installer.remove("tiny")


def test_what_no_index_holds_is_refused_with_the_reason() -> None:
    cls = benchmark("x", unavailable="its authors give it out themselves")
    with pytest.raises(ConfigError, match="cannot be installed from packages: its authors"):
        installer.install(cls.installation, "tiny")


def test_a_prepare_step_that_fails_says_why(tmp_path: Path) -> None:
    cls = benchmark(str(make_wheel(tmp_path)), prepare="no_such_step.sh")
    with pytest.raises(InstallError, match=r"no_such_step\.sh failed"):
        installer.install(cls.installation, "tiny")
    assert folders.find("tiny") is None


def test_nothing_is_written_outside_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = tmp_path / "users_home"
    users.mkdir()
    monkeypatch.setenv("HOME", str(users))
    for name in ("UV_CACHE_DIR", "PIP_CACHE_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    installer.install(benchmark(str(make_wheel(tmp_path))).installation, "tiny")
    assert list(users.iterdir()) == []


def test_variables_name_the_environment_and_give_way_to_the_users(tmp_path: Path) -> None:
    declared = {"TINY_ASSETS": "{prefix}/assets", "TINY_QUIET": "1"}
    cls = benchmark(str(make_wheel(tmp_path)), environment=declared)
    installer.install(cls.installation, "tiny")
    environment = folders.find("tiny")
    assert environment is not None
    pins = cls.installation
    assert folders.variables(pins, environment.python, {"TINY_QUIET": "0"}) == {
        "TINY_ASSETS": f"{environment.prefix}/assets"
    }
    assert folders.variables(pins, sys.executable, {}) == {"TINY_QUIET": "1"}


def test_an_environment_of_another_robotrials_is_lent_this_one(tmp_path: Path) -> None:
    cls = benchmark(str(make_wheel(tmp_path)))
    installer.install(cls.installation, "tiny")
    environment = folders.find("tiny")
    assert environment is not None
    (link,) = Path(environment.prefix).glob("lib/python3*/site-packages/robotrials")
    other = tmp_path / "other" / "robotrials"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    link.unlink()
    link.symlink_to(other)
    added = folders.variables(cls.installation, environment.python, {})
    code = "import os, robotrials; print(os.path.realpath(robotrials.__file__))"
    done = subprocess.run(
        [environment.python, "-c", code], env={**os.environ, **added}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(Path(robotrials.__file__).resolve())


def test_the_mark_is_json_that_names_the_pins(tmp_path: Path) -> None:
    wheel = str(make_wheel(tmp_path))
    installer.install(benchmark(wheel).installation, "tiny")
    mark = json.loads((folders.folder_of("tiny") / "current" / folders.MARK).read_text())
    assert mark["requirements"] == [wheel]


def test_robotrials_own_requirements_are_those_of_a_worker() -> None:
    found = {name.split(">")[0].split("[")[0] for name in own_requirements()}
    assert {"numpy", "msgpack", "pyzmq"} <= found
    assert found.isdisjoint({"pytest", "metaworld", "lerobot", "scikit-learn"})


own_requirements = installer.own_requirements
