from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from robotrials.cli.main import main
from robotrials.results.export.junit import task_report
from robotrials.results.export.step_summary import escape, step_summary
from robotrials.results.reopened import reopen
from robotrials.stats.intervals import clopper_pearson, suite_rate
from tests.results.stored_runs import write_run


@pytest.fixture(autouse=True)
def _no_step_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """push: 18 of 20, reach: 2 of 20."""
    return write_run(tmp_path / "run", lambda s: s.index < (18 if s.task == "push" else 2), n=20)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return write_run(tmp_path / "broken", lambda s: "error" if s.index == 0 else None if s.index == 2 else True, n=3)


def test_metrics_are_those_of_the_ledger(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", str(run)]) == 0
    content = json.loads((run / "metrics.json").read_text(), parse_constant=pytest.fail)
    _, low, high = suite_rate([(18, 20), (2, 20)])
    assert (content["env"], content["task"], content["policy"], content["n_episodes"]) == ("toy", "x", "run", 40)
    assert (content["pc_success"], content["pc_success_ci95"]) == (50.0, pytest.approx([100 * low, 100 * high]))
    assert content["avg_sum_reward"] == 1.5
    assert content["task_descriptions"] == {"push": "do push", "reach": "do reach"}
    assert capsys.readouterr().out.startswith("success 50.0 % [")


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        ([], 0),
        (["--min-success=0.5"], 0),
        (["--min-success=50%"], 0),
        (["--min-success", "0.51"], 3),
        (["--min-success=0.5", "--confident"], 3),
        (["--min-success=0.39", "--confident"], 0),
        (["--min-success=80"], 1),
        (["--min-success=many"], 1),
        (["--junit=suites"], 1),
    ],
)
def test_the_exit_status_says_whether_enough_succeeded(run: Path, flags: list[str], status: int) -> None:
    assert main(["metrics", str(run), *flags]) == status


def test_a_run_with_errors_or_gaps_gets_no_verdict(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", str(broken), "--min-success=0.5"]) == 2
    assert "2 errors, 2 not run" in capsys.readouterr().out


def test_the_summary_says_which_task_is_in_no_mean(tmp_path: Path) -> None:
    run = write_run(tmp_path / "half", lambda s: "error" if s.task == "reach" else True, n=2)
    text = step_summary(reopen(run))
    assert "The mean is over 1 of 2 tasks: nothing of easy/reach has finished." in text


def test_junit_has_a_test_for_each_task_and_one_over_all(run: Path) -> None:
    assert main(["metrics", str(run), "--min-success=0.6"]) == 3
    root = ElementTree.parse(run / "junit.xml").getroot()
    easy, overall = root.findall("testsuite")
    assert (easy.get("name"), easy.get("tests"), easy.get("failures"), easy.get("errors")) == ("easy", "2", "1", "0")
    push, reach = easy.findall("testcase")
    assert (push.get("classname"), push.get("name"), push.find("failure")) == ("easy", "push", None)
    failure = reach.find("failure")
    assert failure is not None
    assert failure.get("message") == "success 10.0 % [2.8, 30.1] lies below the 60.0 % asked for"
    verdict = overall.find("testcase/failure")
    assert verdict is not None
    assert "50.0 %" in str(verdict.get("message"))


def test_a_task_of_few_episodes_does_not_fail_by_bad_luck(tmp_path: Path) -> None:
    run = write_run(tmp_path / "few", lambda s: s.index > 0, n=3)  # 2 of 3: nobody knows whether it is below 0.8
    assert main(["metrics", str(run), "--min-success=0.8"]) == 3
    root = ElementTree.parse(run / "junit.xml").getroot()
    assert [suite.get("failures") for suite in root.findall("testsuite")] == ["0", "1"]


def test_errors_and_gaps_are_errors_in_junit(broken: Path) -> None:
    main(["metrics", str(broken)])
    (easy, _) = ElementTree.parse(broken / "junit.xml").getroot().findall("testsuite")
    assert (easy.get("errors"), easy.get("failures")) == ("2", "0")
    error = easy.find("testcase/error")
    assert error is not None
    assert error.get("message") == "1 of 3 episodes ended in an error: RuntimeError: boom"


def test_junit_of_episodes_has_a_test_for_each(broken: Path) -> None:
    main(["metrics", str(broken), "--junit=episodes"])
    suites = ElementTree.parse(broken / "junit.xml").getroot().findall("testsuite")
    assert [(s.get("name"), s.get("tests"), s.get("errors")) for s in suites] == [
        *(("easy/push", "2", "1"), ("easy/reach", "2", "1")),
    ]
    assert suites[0].findall("testcase")[1].get("name") == "episode 1 (seed 1001)"


def test_junit_survives_any_text(run: Path) -> None:
    nasty = "boom \x00\x1b[31m <b>&]]>\ud800 \U0001f916"
    content = task_report("a\x07b", reopen(run).summary, None, {("easy", "push"): nasty})
    assert ElementTree.fromstring(content).get("name") == "a\N{REPLACEMENT CHARACTER}b"


def test_the_step_summary_is_added_to_githubs_page(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("# before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    main(["metrics", str(run), "--min-success=0.6"])
    text = page.read_text()
    assert text.startswith("# before\n### run on toy\n")
    assert "**Success 50.0 % [" in text
    assert "(asked for: 60.0 %, **not reached**)" in text
    assert "| push | 18/20 | 90.0 % | 69.9 – 97.2 | 0 | 0 |" in text
    assert not (run / "summary.md").exists()


def test_names_of_others_are_shown_as_they_are_in_markdown() -> None:
    assert escape("a|b\n<script>*x*") == r"a\|b \<script\>\*x\*"


def test_the_summary_says_of_errors_and_gaps(broken: Path) -> None:
    main(["metrics", str(broken)])
    text = (broken / "summary.md").read_text()
    assert "2 episodes ended in an error. They are not counted as failures and are excluded from the rates." in text
    assert "2 of 6 episodes have not been run." in text


def test_the_interval_can_be_another(run: Path) -> None:
    assert main(["metrics", str(run), "--stats.interval=exact"]) == 0
    per_task = json.loads((run / "metrics.json").read_text())["per_task"]
    assert per_task["easy/push"]["pc_success_ci95"] == [100 * bound for bound in clopper_pearson(18, 20)]
    assert "Clopper-Pearson" in step_summary(reopen(run, "exact"))


def test_of_a_run_that_stopped_early_only_what_it_decided_by_counts(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", lambda s: s.index < 2, n=4, stopping={"rule": "width<=1", "counted": 4})
    assert main(["metrics", str(path)]) == 0
    content = json.loads((path / "metrics.json").read_text())
    assert (content["pc_success"], content["n_episodes"], content["n_planned"]) == (100.0, 4, 4)


def test_files_go_where_they_are_told(run: Path, tmp_path: Path) -> None:
    assert main(["metrics", str(run), f"--output_dir={tmp_path / 'ci'}"]) == 0
    assert sorted(path.name for path in (tmp_path / "ci").iterdir()) == ["junit.xml", "metrics.json", "summary.md"]
