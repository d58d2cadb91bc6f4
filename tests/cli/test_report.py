from __future__ import annotations

from pathlib import Path

import pytest

from robotrials.cli.main import main
from robotrials.cli.report import ReportCall, parse_report
from robotrials.errors import ConfigError
from tests.reporting.runs import make_run


def test_directories_and_options() -> None:
    assert parse_report(["a", "b"]) == ReportCall((Path("a"), Path("b")), None, 0)
    assert parse_report(["a", "--output=x.html", "--embed-videos=1.5"]) == ReportCall(
        (Path("a"),), Path("x.html"), 1_500_000
    )
    assert parse_report(["--embed_videos", "a"]) == ReportCall((Path("a"),), None, 50_000_000)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "report takes run directories"),
        (["a", "--embed_video"], "did you mean --embed_videos"),
        (["a", "--output"], "--output needs a value"),
        (["a", "--output=x", "--output=y"], "given twice"),
        (["a", "--embed_videos=many"], "must be a number, got 'many'"),
        (["a", "--embed_videos=-1"], "must not be negative"),
    ],
)
def test_what_cannot_be_meant_is_refused(argv: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_report(argv)


def test_it_prints_where_the_page_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", video=b"mp4")
    assert main(["report", str(run), "--embed_videos=1"]) == 0
    assert capsys.readouterr().out.startswith(f"{run}/report.html (0.1 MB, 12 videos, 12 of them inside)")
    assert main(["report", str(tmp_path)]) == 1
    assert "has no run.json" in capsys.readouterr().err


def test_a_run_ends_with_a_page(tmp_path: Path) -> None:
    argv = ["--policy.type=tests.toy:Seer", "--env.type=tests.toy:Toy", "--eval.n_episodes=1", "--eval.batch_size=1"]
    assert main(["eval", *argv, f"--output_dir={tmp_path / 'run'}"]) == 0
    assert "<h1>Seer on Toy</h1>" in (tmp_path / "run" / "report.html").read_text()
