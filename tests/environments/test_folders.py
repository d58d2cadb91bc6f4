"""Where a benchmark's workers run: in the environment that was installed for it, unless the user says otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import robotrials
from robotrials.benchmarks import inventory
from robotrials.benchmarks.base import Benchmark
from robotrials.benchmarks.installed import Installed, look_up, look_up_all, placed
from robotrials.benchmarks.registry import benchmark_class
from robotrials.cli.main import main
from robotrials.environments import folders, installer
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.plan.config import EnvChoice
from robotrials.rendering import system_packages
from robotrials.run.prepare import prepare_resume

pytest.importorskip("gym_pusht")


def borrow(prefix: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    (site,) = prefix.glob("lib/python3*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (site / "robotrials").symlink_to(Path(robotrials.__file__).resolve().parent)


def install_by_hand(home: Path, name: str, cls: type[Benchmark], pins: str | None = None) -> str:
    """What ``bench install`` leaves, without its cost: an environment that borrows all packages from this one."""
    prefix = home / "environments" / name / "0123abcd"
    borrow(prefix)
    mark = {
        "benchmark": name,
        "requirements": cls.installation.requirements,
        "pins": pins or folders.pins_digest(cls.installation),
        "python_version": "3",
    }
    (prefix / folders.MARK).write_text(json.dumps(mark))
    (prefix.parent / "current").symlink_to(prefix.name)
    return str(prefix.parent / "current" / "bin" / "python")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROBOTRIALS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def python(home: Path) -> str:
    return install_by_hand(home, "pusht", benchmark_class("pusht"))


def test_the_environment_wins_over_this_python_and_the_user_over_both(python: str) -> None:
    assert placed(EnvChoice("pusht")).python == python
    assert placed(EnvChoice("pusht", python="/my/python")).python == "/my/python"
    assert placed(EnvChoice("metaworld")).python is None
    assert placed(EnvChoice("tests.toy:Toy")).python is None


def test_what_is_there_is_asked_there(python: str) -> None:
    assert look_up(EnvChoice("pusht", python=python)).packages["gym-pusht"] == "0.1.8"
    assert look_up(EnvChoice("pusht", python=python), try_import=True).python.startswith("3.")


RUN = [
    *("eval", "--policy.type=random", "--env.type=pusht", "--env.episode_length=5", "--eval.n_episodes=2"),
    *("--eval.record=none", "--env.obs_type=environment_state_agent_pos"),
]


def test_a_run_uses_it_says_so_and_writes_it_down(
    python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*RUN, f"--output_dir={tmp_path / 'run'}"]
    assert main([*words, "--dry_run"]) == 0
    assert f"Simulator  {python} (robotrials bench install)" in capsys.readouterr().out
    assert main(words) == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["config"]["env"]["python"] == python
    assert main(["resume", str(tmp_path / "run")]) == 0


def test_a_run_without_it_is_resumed_without_it(home: Path, tmp_path: Path) -> None:
    assert main([*RUN, f"--output_dir={tmp_path / 'run'}"]) == 0
    install_by_hand(home, "pusht", benchmark_class("pusht"))
    assert prepare_resume(tmp_path / "run").config.env.python is None


def test_the_users_interpreter_is_shown_as_his(python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, f"--env.python={sys.executable}", f"--output_dir={tmp_path / 'run'}", "--dry_run"]) == 0
    assert f"Simulator  {sys.executable} (--env.python)" in capsys.readouterr().out


def test_one_that_is_gone_says_how_to_have_it_again(home: Path) -> None:
    gone = home / "environments" / "pusht" / "current" / "bin" / "python"
    with pytest.raises(ConfigError, match="robotrials bench install pusht"):
        look_up(EnvChoice("pusht", python=str(gone)))


def test_a_damaged_environment_is_made_anew_without_being_forced(
    python: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``bench list`` and ``eval`` say ``bench install``: it must not answer that all is there."""
    monkeypatch.setattr(installer, "_build", lambda prefix, *_: borrow(prefix))
    monkeypatch.setattr(system_packages, "missing", lambda wanted: [])
    assert main(["bench", "install", "pusht"]) == 0
    assert "pusht: is installed and working" in capsys.readouterr().err
    Path(python).unlink()
    assert main(["bench", "install", "pusht"]) == 0
    said = capsys.readouterr().err
    assert "what is installed does not work; it is made anew" in said
    assert "pusht: installed and working" in said


def test_a_simulator_that_does_not_import_is_a_problem_with_its_words(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "gym_pusht.py").write_text("raise ImportError('libGL.so.1: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(NotInstalledError, match="import gym_pusht fails: ImportError: libGL"):
        look_up(EnvChoice("pusht"), try_import=True)
    (entry,) = inventory.inventory(["pusht"])
    assert (entry.state, entry.where) == ("problem", "this Python")


def test_the_list_tells_where_at_which_versions_and_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_by_hand(home, "pusht", benchmark_class("pusht"), pins="of an earlier release")
    monkeypatch.setattr(inventory, "names", lambda: ["pusht", "robosuite"])
    monkeypatch.setattr(inventory, "is_installed_here", lambda cls: False)
    assert main(["bench", "list", "--import", "--json"]) == 0
    pusht, robosuite = json.loads(capsys.readouterr().out)
    assert (pusht["state"], pusht["where"], pusht["packages"]["gym-pusht"]) == ("ok", "own environment", "0.1.8")
    assert "its pins have moved since: robotrials bench install pusht" in pusht["note"]
    assert (robosuite["state"], robosuite["note"]) == ("-", "robotrials bench install robosuite")
    assert main(["bench", "list", "--json"]) == 0
    from_files = json.loads(capsys.readouterr().out)
    assert [entry["state"] for entry in from_files] == ["installed", "-"]
    assert from_files[0]["packages"] == pusht["packages"]
    assert main(["bench", "list"]) == 0
    assert "gym-pusht 0.1.8" in capsys.readouterr().out


def test_the_list_of_all_starts_no_process_and_imports_no_simulator(
    python: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*words: object, **more: object) -> None:
        raise AssertionError(f"started {words}")

    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert main(["bench", "list", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert (entries["pusht"]["state"], entries["pusht"]["where"]) == ("installed", "own environment")
    Path(python).unlink()
    assert main(["bench", "list", "--json"]) == 0
    gone = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}["pusht"]
    assert (gone["state"], gone["note"]) == ("problem", "its interpreter is gone: robotrials bench install pusht")


def test_simulators_of_one_interpreter_are_imported_by_one_process_and_one_that_fails_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "gymnasium_robotics.py").write_text("raise ImportError('no libGL')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    started: list[list[str]] = []
    real = subprocess.run

    def counted(command: list[str], **more: object) -> object:
        started.append(command)
        return real(command, **more)

    monkeypatch.setattr(subprocess, "run", counted)
    found = look_up_all([EnvChoice("pusht"), EnvChoice("gymnasium_robotics"), EnvChoice("gym")])
    assert [isinstance(answer, Installed) for answer in found] == [True, False, True]
    assert "import gymnasium_robotics fails: ImportError: no libGL" in str(found[1])
    asked = [command[command.index("-m") + 2 :] for command in started if "robotrials.benchmarks.installed" in command]
    assert asked == [["pusht", "gymnasium_robotics", "gym", "--import"], ["gymnasium_robotics", "--import"]]


def test_exec_runs_a_command_there(python: str) -> None:
    command = [
        sys.executable,
        "-m",
        "robotrials",
        "bench",
        "exec",
        "pusht",
        "python",
        "-c",
        "import sys; print(sys.prefix)",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.strip() == str(Path(python).parents[1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bench"], ""),
        (["bench", "instal", "pusht"], "unknown: bench instal"),
        (["bench", "install"], "which benchmark"),
        (["bench", "install", "pushd"], "did you mean pusht"),
        (["bench", "install", "pusht", "--pyhton=3.11"], "did you mean --python"),
        (["bench", "remove", "../pusht"], "no name of a benchmark"),
        (["bench", "exec", "pusht"], "takes a benchmark and a command"),
        (["bench", "exec", "pusht", "ls"], "no environment of its own yet"),
    ],
)
def test_wrong_words_are_answered(
    words: list[str], message: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    assert message in capsys.readouterr().err
