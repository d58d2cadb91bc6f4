from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

import robotrials
from robotrials.cli import output
from robotrials.cli.main import VERBS, main

BROKEN = ["eval", "--policy.type=expert", "--env.type=metaworld", "--sede=1"]


def test_no_word_at_all_shows_the_overview_and_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    assert "usage: robotrials VERB" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_shows_the_verbs(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 0
    shown = capsys.readouterr()
    assert "resume" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_version(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 0
    assert capsys.readouterr().out == f"robotrials {robotrials.__version__}\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["evall"], "unknown verb 'evall' (did you mean eval?)"),
        (["run", "--env.type=x"], "unknown verb 'run'; write: robotrials eval ..."),
        (["--run"], "unknown verb '--run'; write: robotrials eval ..."),
        (["view", "runs/a"], "unknown verb 'view'; write: robotrials show ..., or robotrials report RUN"),
        (["-n", "5"], "-n comes before any verb; write: robotrials eval --eval.n_episodes=..."),
        (["--save_video"], "--save_video comes before any verb; write: robotrials eval --eval.record=..."),
        (["compare", "-n", "5"], "unexpected '-n': flags are written --name=value"),
        (["xyzzy"], "unknown verb 'xyzzy'; verbs: eval, resume"),
        (["--seed=1"], "--seed=1 comes before any verb; write: robotrials eval --seed=1"),
        (BROKEN, "unknown flag --sede (did you mean --seed?)"),
        (["resume"], "resume takes one run directory: robotrials resume DIR; got 0"),
        (["resume", "a", "b"], "resume takes one run directory: robotrials resume DIR; got 2"),
        (["resume", "a", "--eval.batch_size=3"], "resume takes no --eval.batch_size=3"),
    ],
)
def test_a_mistake_is_one_clean_message_and_status_one(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"error: {told}")
    assert shown.err.count("\n") == 1


def test_debug_adds_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BROKEN, "--debug"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.endswith("error: unknown flag --sede (did you mean --seed?)\n")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "robotrials", *words]


def test_python_m_robotrials_is_the_command() -> None:
    done = subprocess.run(command("nonsense"), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"error: unknown verb 'nonsense'; verbs: {', '.join(VERBS)}\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_went_away_changes_neither_status_nor_says_a_word(stream: str) -> None:
    read, write = os.pipe()
    os.close(read)
    words = ["--help"] if stream == "stdout" else ["nonsense"]
    other = "stderr" if stream == "stdout" else "stdout"
    done = subprocess.run(command(*words), **{stream: write, other: subprocess.PIPE}, check=False)
    os.close(write)
    assert done.returncode == (0 if stream == "stdout" else 1)
    assert (done.stderr if stream == "stdout" else done.stdout) == b""


def test_the_overview_imports_nothing_heavy() -> None:
    check = (
        "import sys; from robotrials.cli.main import main; main(['--help']); "
        "print(sorted({'numpy', 'rich', 'yaml', 'zmq', 'av'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")


def test_the_overview_costs_less_than_a_third_of_a_cpu_second() -> None:
    def cost() -> float:
        before = os.times()
        subprocess.run(command("--help"), stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    started = time.monotonic()
    assert min(cost() for _ in range(3)) < 0.3
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("verb", "said"), [("eval", "interrupted before any episode began"), ("compare", "interrupted\n")]
)
def test_ctrl_c_says_of_a_run_that_nothing_was_lost_and_of_other_verbs_that_they_stopped(
    verb: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(words: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("robotrials.cli.main._dispatch", interrupted)
    assert main([verb]) == 2
    assert said in capsys.readouterr().err


def test_what_takes_long_is_said_and_what_does_not_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with output.said_if_long("checking", after_s=30.0):
        pass
    assert capsys.readouterr().err == ""
    with output.said_if_long("checking", after_s=0.0):
        deadline = time.monotonic() + 10.0
        while time.monotonic() < deadline and not (said := capsys.readouterr().err):
            time.sleep(0.01)
    assert said == "checking ...\n"
