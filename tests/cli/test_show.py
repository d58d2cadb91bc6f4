"""``robotrials show``, and ``resume`` of a finished run: both read the directory alone."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest

from robotrials.cli.main import main
from robotrials.results.export.latex import escape
from tests.cli.test_runner import command, in_a_terminal
from tests.engine.toy_runs import run, toy_config
from tests.results.stored_runs import write_run


def forget_the_benchmark(path: Path) -> None:
    """As if what the run was made with had been removed since."""
    described = json.loads((path / "run.json").read_text())
    described["config"]["env"]["type"] = "gone_since:Benchmark"
    described["config"]["policy"]["type"] = "gone_since:Policy"
    (path / "run.json").write_text(json.dumps(described))


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    run(toy_config(path, tasks="a,b", n_episodes=3))
    forget_the_benchmark(path)
    return path


def test_a_finished_run_is_shown_without_what_made_it(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()}
    assert main(["show", str(finished)]) == 0
    shown = capsys.readouterr()
    assert "6 of 6 episodes have an outcome" in shown.err
    assert [line.split()[0] for line in shown.out.splitlines() if line[:3] in ("toy", "  a", "  b")] == [
        "toys",
        "a",
        "b",
    ]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_finished_run_is_resumed_without_what_made_it(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(finished)]) == 0
    out = capsys.readouterr().out
    assert "nothing: all 6 episodes had finished before" in out
    assert main(["resume", str(finished), "--stats.interval=exact"]) == 0
    assert "Clopper-Pearson" in json.loads((finished / "eval_info.json").read_text())["interval"]


def test_the_report_is_the_first_of_the_places(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(finished)]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines if line.startswith(("Report", "Directory", "Results"))]
    assert names == ["Report", "Directory", "Results"]
    assert f"Report     {finished}/report.html" in lines


def test_a_terminal_gets_the_places_as_links(finished: Path) -> None:
    status, text = in_a_terminal(command("show", str(finished)))
    assert status == 0, text
    link = re.search(r"\x1b\]8;[^;]*;file://([^/]*)(/.*?)\x1b\\(.*?)\x1b\]8;;", text)
    assert link is not None, text
    assert (link[1], link[2], link[3]) == (socket.gethostname(), str(finished), str(finished))


def test_an_unfinished_run_says_what_is_missing_and_how_to_go_on(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described = json.loads((finished / "run.json").read_text())
    described["config"]["eval"]["n_episodes"] = 5  # as if two more of each task had been planned
    (finished / "run.json").write_text(json.dumps(described))
    assert main(["show", str(finished)]) == 0
    shown = capsys.readouterr()
    assert "6 of 10 episodes have an outcome" in shown.err
    assert "Not run" in shown.out
    assert shown.err.endswith(f"To go on:\n  robotrials resume {finished}\n")


def test_markdown_and_latex_have_the_figures_with_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "my_run", lambda s: s.index < 12, n=20)
    assert main(["show", str(path), "--markdown"]) == 0
    assert "| push | 12/20 | 60.0 % | 38.7 – 78.1 | 0 | 0 |" in capsys.readouterr().out
    assert main(["show", str(path), "--latex"]) == 0
    page = capsys.readouterr().out
    assert r"\quad push & 12/20 & 60.0 & [38.7, 78.1] \\" in page
    assert r"\textbf{easy} & 24/40 & 60.0 & " in page
    assert r"\caption{Success of my\_run on toy" in page
    assert r"\begin{tabular}{lrrr}" in page
    assert main(["show", str(path), "--latex", "--stats.interval=exact"]) == 0
    assert "(Clopper-Pearson)" in capsys.readouterr().out


def test_names_with_special_letters_are_shown_as_they_are() -> None:
    assert escape(r"a_b & 50 % {x} #1 \y ~") == r"a\_b \& 50 \% \{x\} \#1 \textbackslash{}y \textasciitilde{}"


@pytest.mark.parametrize("words", [["show"], ["show", "nowhere"], ["show", ".", "--markdown", "--latex"]])
def test_what_cannot_be_shown_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert "Traceback" not in capsys.readouterr().err
