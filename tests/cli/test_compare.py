from __future__ import annotations

import json
from pathlib import Path

import pytest

from robotrials.cli.main import main
from tests.results.stored_runs import Outcome, write_run

ONE = ("easy/push",)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "base", lambda s: s.index < 12, n=20)
    write_run(tmp_path / "new", lambda s: s.index > 3, n=20)
    write_run(tmp_path / "bad", lambda s: False, n=20)
    return ["base", "new", "bad"]


def test_the_page_holds_rates_pairing_tests_verdict_and_both_videos(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "base", "new", "--episodes=1"]) == 0
    page = capsys.readouterr().out
    assert "base (baseline)     24/40   60.0 %" in page
    assert "paired: 40 episodes of the same task and seed" in page
    assert "McNemar, exact: p = 0.152, mid-p = 0.108, valid under looking p = " in page
    assert "Verdict    Too few episodes to tell new from base: +20.0 points" in page
    assert "8 episodes in which base alone succeeded" in page
    assert "  easy/push/0  seed 1000\n             base/videos/easy/push/0.mp4\n" in page
    assert "             new/videos/easy/push/0.mp4\n" in page
    assert "and 7 more: --episodes=N, or --json" in page
    assert "16 episodes in which new alone succeeded" in page


def test_a_worse_run_sets_the_exit_status_when_asked(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "base", "bad"]) == 0
    assert main(["compare", "base", "bad", "--fail-if-worse"]) == 3
    assert main(["compare", "base", "new", "--fail-if-worse"]) == 0
    assert main(["compare", "bad", "base", "--fail-if-worse"]) == 0
    assert "base is better than bad" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (lambda s: "error", "only 0 of 40 episodes of lost could be compared"),
        (lambda s: "error" if s.index < 15 else True, "only 10 of 40 episodes of lost could be compared"),
        (lambda s: s.index < 12 if s.index < 18 else None, "lost is not complete, 4 of its episodes have no result"),
    ],
)
def test_what_could_not_have_shown_as_worse_is_no_pass(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], outcome: Outcome, why: str
) -> None:
    write_run(tmp_path / "lost", outcome, n=20)
    assert main(["compare", "base", "lost"]) == 0
    assert main(["compare", "base", "lost", "--fail-if-worse"]) == 2
    assert f"no verdict: {why}" in capsys.readouterr().err
    assert main(["compare", "base", "lost", "bad", "--fail-if-worse"]) == 3


def test_a_few_errors_leave_a_verdict(runs: list[str], tmp_path: Path) -> None:
    write_run(tmp_path / "few", lambda s: "error" if s.index == 19 else s.index < 12, n=20)
    assert main(["compare", "base", "few", "--fail-if-worse"]) == 0


def test_json_is_strict_and_has_every_differing_episode(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "base", "new", "--json"]) == 0
    content = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    (result,) = content["against_first"]
    assert (result["overall"]["wins"], result["overall"]["losses"]) == (16, 8)
    assert len(result["differing"]) == 24
    assert result["differing"][0] == {
        "suite": "easy",
        "task": "push",
        "index": 0,
        "seed": 1000,
        "init_state": None,
        "success": [True, False],
        "end": ["success", "time_limit"],
        "steps": [50, 200],
        "videos": ["videos/easy/push/0.mp4", "videos/easy/push/0.mp4"],
    }
    assert result["verdict"]["kind"] == "too few episodes"


def test_three_runs_get_letters_best_first(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *runs]) == 0
    page = capsys.readouterr().out
    rows = [line.split() for line in page.splitlines() if line.startswith(("new ", "base ", "bad "))]
    assert [(row[0], row[-1]) for row in rows if row[-1] in "ab"] == [("new", "a"), ("base", "a"), ("bad", "b")]


def test_what_differs_beside_the_policy_is_told_with_the_runs_it_is_true_of(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def options(run: str, camera: str) -> None:
        described = json.loads(Path(run, "run.json").read_text())
        described["identity"]["benchmark"]["options"] = {"camera": camera}
        Path(run, "run.json").write_text(json.dumps(described))

    options("new", "side")
    options("bad", "side")
    note = "differs beside the policy: benchmark.options.camera: (not set) -> side"
    assert main(["compare", "base", "new"]) == 0
    assert f"Notes      {note}\n" in capsys.readouterr().out
    assert main(["compare", *runs]) == 0
    assert f"Notes      new, bad: {note}\n" in capsys.readouterr().out
    options("bad", "top")
    assert main(["compare", *runs]) == 0
    page = capsys.readouterr().out
    assert f"Notes      new: {note}\n" in page
    assert f"           bad: {note.removesuffix('side')}top\n" in page


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["base"], "takes two runs or more"),
        (["base", "nowhere"], "nowhere is no run"),
        (["base", "new", "--margin=5"], "--margin is a fraction between 0 and 1"),
        (["base", "new", "--stats.interval=wald"], "must be one of wilson, exact, jeffreys"),
        (["base", "new", "--fail-if-wors"], "did you mean"),
        (["base", "new", "--episodes=-1"], "--episodes must not be negative, got -1"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    runs: list[str], capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert main(["compare", *argv]) == 1
    assert message in capsys.readouterr().err


def test_help_fits_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
