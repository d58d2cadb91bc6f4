"""Workers by apptainer's words: a stand-in that runs them here, and the real one where a machine has it and an image.

``ROBOTRIALS_TESTS_SIF`` names an image, a file or a folder, with robotrials[pusht] and these tests.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from robotrials.engine.launchers.container import Container
from robotrials.errors import ConfigError
from robotrials.plan.config import ContainerSettings, EnvChoice, RunConfig
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare
from tests.engine.toy_runs import Listener, digest, run, toy_config

_STAND_IN = f"""#!{sys.executable}
import os, sys
words = sys.argv[2:]
values = {{"PYTHONPATH": os.pathsep.join({sys.path!r})}}
while words[0].startswith("--"):
    name, _, value = words.pop(0).partition("=")
    if name == "--env":
        values.update([value.split("=", 1)])
if words[0] != "image.sif":
    sys.exit(print("FATAL:   could not open image " + words[0], file=sys.stderr) or 255)
for name, value in os.environ.items():
    if name.startswith("APPTAINERENV_"):
        values[name.removeprefix("APPTAINERENV_")] = value
values["PATH"] = os.environ["PATH"]
os.execvpe(words[1], words[1:], values)
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "bin" / "apptainer"
    file.parent.mkdir()
    file.write_text(_STAND_IN)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{file.parent}{os.pathsep}{os.environ['PATH']}")


def contained(directory: Path, **docker: str) -> RunConfig:
    settings = ContainerSettings(**{"image": "image.sif", "python": sys.executable, **docker})
    return replace(toy_config(directory, runtime="apptainer", policy_servers=1), docker=settings)


@pytest.mark.usefixtures("stand_in")
def test_outcomes_are_those_of_a_local_run(tmp_path: Path) -> None:
    run(toy_config(tmp_path / "local"))
    assert run(contained(tmp_path / "run")).complete
    assert digest(tmp_path / "run") == digest(tmp_path / "local")
    assert "Traceback" not in (tmp_path / "run/logs/w0.log").read_text()


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("docker", "said"),
    [
        ({"image": "nowhere.sif"}, "FATAL:   could not open image nowhere.sif.*a .sif file, an unpacked folder"),
        ({"python": "python9"}, "python9.*No such file.*--docker.python=PATH"),
    ],
)
def test_what_cannot_be_run_is_named(tmp_path: Path, docker: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        prepare(contained(tmp_path / "run", **docker))


@pytest.mark.usefixtures("stand_in")
def test_limits_are_asked_for_only_where_somebody_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)

    def words(settings: ContainerSettings) -> list[str]:
        return Container("apptainer", settings, "gymnasium_robotics").command(["-c", "1"], {})

    plain = words(ContainerSettings())
    assert plain[-6:] == ["robotrials-gymnasium-robotics.sif", "env", "HOME=/tmp", "python3", "-c", "1"]
    assert not [word for word in plain if word.startswith(("--memory", "--cpus", "--security", "--env=HOME"))]
    limited = words(ContainerSettings(memory="4g", cpus=2))
    assert {"--memory=4g", "--cpus=2"} <= set(limited)


@pytest.mark.usefixtures("stand_in")
def test_a_person_who_is_root_is_nobody_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    words = Container("apptainer", ContainerSettings(), "pusht").command([], {})
    assert "--security=uid:65534,gid:65534" in words


@pytest.mark.skipif(
    shutil.which("apptainer") is None or "ROBOTRIALS_TESTS_SIF" not in os.environ, reason="needs apptainer and an image"
)
def test_the_real_one_plays_pusht(tmp_path: Path) -> None:
    image = os.environ["ROBOTRIALS_TESTS_SIF"]
    local = replace(toy_config(tmp_path / "local", n_episodes=4, record="first:1"), env=EnvChoice("pusht", {}))
    local = replace(local, policy=replace(local.policy, type="random"))
    run(local)
    there = replace(local, output_dir=tmp_path / "run", eval=replace(local.eval, runtime="apptainer"))
    assert execute(prepare(replace(there, docker=ContainerSettings(image))), Listener()).complete
    assert digest(tmp_path / "run") == digest(tmp_path / "local")
