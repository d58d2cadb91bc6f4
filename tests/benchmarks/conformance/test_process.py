from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from robotrials.benchmarks.conformance.checks import CheckSettings
from robotrials.benchmarks.conformance.process import check
from robotrials.benchmarks.conformance.promises import PROMISES
from robotrials.benchmarks.conformance.trace import Trace, first_difference
from robotrials.cli.main import main
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice
from tests.benchmarks.broken import Faulty, FaultyEnv

QUICK = CheckSettings(episodes=3, steps=12, expert=False)


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    Faulty.calls = FaultyEnv.built = 0
    yield
    import tests.benchmarks.broken as broken

    broken._LEAK.clear()


def faulty(fault: str) -> EnvChoice:
    return EnvChoice("tests.benchmarks.broken:Faulty", {"fault": fault})


def test_a_benchmark_that_keeps_them_all_is_told_so() -> None:
    report = check(faulty(""), QUICK)
    assert [finding.promise for finding in report.findings] == list(PROMISES)
    assert all(finding.kept for finding in report.findings), report


# What else must show: one who cannot repeat an episode cannot repeat it elsewhere either.
ALSO = {
    "same seed": {"other episodes", "rebuilt", "looking", "fresh process", "order"},
    "other episodes": {"same seed", "rebuilt", "looking", "fresh process", "order"},
    "fresh process": {"order"},
    "looking": {"same seed", "other episodes", "rebuilt", "fresh process", "order"},
    "rebuilt": {"looking"},
    "shapes": {"own seed"},
}
WORDS = {
    "tasks": "different tasks",
    "instruction": "needs a sentence",
    "shapes": r"observation.state is float32\[3\], declared as float32\[2\]",
    "own arrays": "observation.state: the array that was handed out changes",
    "same seed": r"episode 0 \(seed 1000\), played twice in a row: step 0: observation.state differs by up to",
    "own seed": "3 episodes with different seeds begin with the very same observation",
    "other episodes": "step 0: observation.state differs by up to 0.002",
    "rebuilt": "in an environment built anew: step 0: observation.state differs by up to 0.5",
    "looking": "looked at all the time: step 12: observation.state differs by up to|the reward is",
    "fresh process": "as the first of a fresh process: step 0: observation.state differs",
    "clean output": "1 lines on stderr, such as: EGL: cannot be torn down",
    "success": "episode 0, step 8: success is None",
    "picture": "render\\(\\) is black all over",
    "start": "all 3 episodes are ended by the first step, unsolved",
    "ending": "after the last step observation.state is again what it was after the reset",
    "step limit": "truncated after step 9, but max_steps is 60",
    "close": "ContractError: the context was freed already",
}


@pytest.mark.parametrize("promise", WORDS)
def test_a_broken_promise_is_named_with_the_place_and_the_amount(promise: str) -> None:
    settings = QUICK if promise == "rebuilt" else CheckSettings(episodes=3, steps=12, expert=False, memory=0)
    report = check(faulty(promise), settings)
    found = {finding.promise: finding.detail for finding in report.broken}
    assert promise in found, report
    assert set(found) <= {promise} | ALSO.get(promise, set()), report
    assert re.search(WORDS[promise], found[promise]), found[promise]


def test_a_leak_is_named_with_its_amount_in_a_process_of_its_own() -> None:
    """Not in that of the tests: what it has freed before would take in the leak unseen."""
    words = ["tests.benchmarks.broken:Faulty", "--env.fault=memory", "--episodes=3", "--steps=12"]
    command = [sys.executable, "-m", "robotrials.cli.main", "check-env", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done
    assert re.search(r"\d+ MB more after 40 episodes, 1\.0 MB each", done.stdout), done.stdout
    assert done.stdout.endswith("18 of 19 promises kept; broken: memory\n")


@pytest.mark.parametrize(
    ("fault", "promise", "words"),
    [
        ("shapes later", "shapes", r"episode 0, step 5: observation.state is float64\[2\], declared as float32\[2\]"),
        ("nan", "shapes", "episode 0, step 5: observation.state holds NaN in 2 of 2 numbers"),
        ("nan at once", "shapes", "observation.state holds NaN in 1 of 2 numbers"),
        ("solved at once", "start", "all 2 episodes are solved at the first step"),
        ("no picture", "picture", "Faulty draws nothing; videos are left out"),
        ("infinity", "shapes", "observation.state holds infinity in 1 of 2 numbers"),
        ("share", "success", r"episode 0, step 1: success is 0\.3; right is True or False"),
    ],
)
def test_what_shows_only_in_the_middle_of_an_episode_breaks_its_own_promise_alone(
    fault: str, promise: str, words: str
) -> None:
    report = check(faulty(fault), CheckSettings(episodes=2, steps=8, expert=False, memory=0))
    found = {finding.promise: finding.detail for finding in report.broken}
    assert list(found) == [promise], report
    assert re.search(words, found[promise]), found[promise]


def test_playings_are_compared_step_by_step() -> None:
    one = Trace([{"s": np.zeros(2)}, {"s": np.zeros(2)}], [(0.0, False, False, False)])
    other = Trace([{"s": np.zeros(2)}, {"s": np.array([0.0, 0.25])}], [(0.0, False, False, False)])
    assert first_difference(one, one) is None
    assert first_difference(one, other) == "step 1: s differs by up to 0.25 in 1 of 2 numbers"
    won = Trace(one.seen, [(0.0, True, False, True)])
    assert first_difference(one, won) == "step 1: terminated is False, and True"


def test_not_a_number_equals_itself() -> None:
    one = Trace([{"s": np.array([np.nan])}], [(float("nan"), False, False, False)])
    assert first_difference(one, one) is None


def test_too_few_episodes_to_compare_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 2 episodes"):
        check(faulty(""), CheckSettings(episodes=1))


WORDS_OF_THE_LINE = ["check-env", "tests.benchmarks.broken:Faulty", "--steps=10", "--memory=0"]


def test_the_command_line_tells_what_broke_and_where(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS_OF_THE_LINE, "--env.fault=success"]) == 2
    out = capsys.readouterr().out
    assert f"BROKEN      {PROMISES['success']}\n            episode 0, step 8: success is None" in out
    assert "promises kept; broken: success" in out


def test_a_benchmark_that_takes_the_process_with_it_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS_OF_THE_LINE, "--env.fault=crash", "--json"]) == 2
    (last,) = json.loads(capsys.readouterr().out)[-1:]
    assert (last["promise"], last["kept"], last["detail"]) == ("shapes", False, "the process died: SIGABRT")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check-env", "pusht", "--env.fsp=3"], "--env.fsp"),
        (["check-env", "pusht", "--stps=3"], "did you mean --steps"),
        (["check-env", "pusht", "metaworld"], "takes one benchmark"),
        (["check-env", "--steps=3"], "takes one benchmark"),
    ],
)
def test_wrong_words_are_answered_before_anything_runs(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    assert message in capsys.readouterr().err


def test_what_is_measured_is_shown_also_of_promises_that_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS_OF_THE_LINE, "--env.fault=ends soon"]) == 0
    kept = f"kept        {PROMISES['step limit']}\n            it ended by itself after 2 of 60 steps, unsolved\n"
    assert kept in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_that_is_interrupted_tells_what_was_kept_so_far(number: int) -> None:
    words = ["tests.benchmarks.broken:Faulty", "--env.step_s=0.05", "--episodes=3", "--memory=0"]
    command = [sys.executable, "-m", "robotrials.cli.main", "check-env", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # The task, and two promises that take no time, each with its detail; the third plays episodes.
        begin = [process.stdout.readline() for _ in range(5)]
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert [begin[1][:4], begin[3][:4]] == ["kept", "kept"]
    assert out == "\n2 of 2 promises kept\n"
    assert err == "error: interrupted after 2 promises were tried; the others were not\n"
    assert process.returncode == 2


def test_a_missing_sentence_names_the_flag_where_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gymnasium")
    words = ["check-env", "gym", "--env.id=Point-v0", "--env.imports=tests.benchmarks.gym_toys"]
    assert main([*words, "--steps=4", "--memory=0"]) == 2
    assert "needs a sentence: --env.instruction=SENTENCE" in capsys.readouterr().out


def test_success_that_is_lost_again_is_told_with_the_flag_that_counts_the_end() -> None:
    report = check(faulty("lost"), CheckSettings(episodes=2, steps=12, expert=False, memory=0))
    assert not report.broken, report
    (found,) = [finding for finding in report.findings if finding.promise == "success"]
    assert "2 of 2 episodes succeeded; 2 were not solved any more at the last step: --env.success=end" in found.detail


def test_one_that_was_made_to_draw_nothing_breaks_no_promise() -> None:
    report = check(faulty("no picture by design"), CheckSettings(episodes=2, steps=8, expert=False, memory=0))
    assert not report.broken, report
    assert [f.detail for f in report.findings if f.promise == "picture"] == [
        "Faulty draws nothing; videos are left out"
    ]


def test_an_exception_of_the_simulators_own_is_a_failure_when_it_is_named() -> None:
    settings = CheckSettings(episodes=2, steps=8, expert=False, memory=0)
    name = "tests.benchmarks.broken.OutOfReach"
    broken = {finding.promise: finding.detail for finding in check(faulty("raises"), settings).broken}
    assert (
        broken["success"] == f"OutOfReach: no path to the target; if it means failure: --env.failure_exceptions={name}"
    )
    meant = EnvChoice("tests.benchmarks.broken:Faulty", {"fault": "raises", "failure_exceptions": name})
    assert not check(meant, settings).broken


@pytest.mark.parametrize("fault", ["children", "leaves"])
def test_processes_that_are_left_behind_and_one_that_ends_itself_hold_nothing_up(
    fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Waiting for the children's pipes would take a minute, which the time limit of this check does not allow."""
    signal.alarm(50)
    try:
        status = main([*WORDS_OF_THE_LINE, f"--env.fault={fault}"])
    finally:
        signal.alarm(0)
    out = capsys.readouterr().out
    assert (status, "promises kept\n" in out) == ((0, True) if fault == "children" else (2, False))
    assert ("the environment ended the process, with exit status 0" in out) == (fault == "leaves")
