"""A report of several runs says which is better, and where they differ."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest

from robotrials.cli.flags import parse_eval
from robotrials.plan.episode import EpisodeSpec
from robotrials.reporting.commands_html import eval_command, given
from robotrials.reporting.loading import load_runs
from robotrials.reporting.report import write_report
from robotrials.results.compare.comparison import compare_runs
from robotrials.results.record import EndReason
from robotrials.results.stored import read_run
from tests.reporting.runs import make_run, mostly


def always(episode: EpisodeSpec) -> EndReason:
    return EndReason.SUCCESS


def section(page: str, name: str) -> str:
    _, _, rest = page.partition(f'id="section-{name}"')
    start = page.rindex("<section", 0, page.index(f'id="section-{name}"'))
    return page[start : page.index("</section>", start)] if rest else ""


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    return [make_run(tmp_path / "base", n=20, video=b"x"), make_run(tmp_path / "new", always, n=20, video=b"x")]


def test_it_carries_the_verdict_of_compare(pair: list[Path], tmp_path: Path) -> None:
    page = write_report(pair, tmp_path / "report.html").path.read_text()
    (comparison,) = compare_runs([read_run(path) for path in pair]).against_first
    assert comparison.verdict.words.startswith("new is better than base: +50.0 points")
    assert html.escape(comparison.verdict.words) in page
    assert 'href="#section-comparison"' in page


def test_the_forest_plot_has_a_row_for_each_task_and_one_for_all(pair: list[Path], tmp_path: Path) -> None:
    found = section(write_report(pair, tmp_path / "report.html").path.read_text(), "comparison")
    assert found.count('class="zero"') == 3 + 1 + 1  # tasks, the suite of two tasks, all
    assert "+100.0 points, interval" in found
    assert "0.0 points, interval" in found
    assert len(re.findall(r'class="dot difference run1"', found)) == 5


def test_the_episodes_that_differ_are_listed_with_both_videos(pair: list[Path], tmp_path: Path) -> None:
    found = section(write_report(pair, tmp_path / "report.html").path.read_text(), "comparison")
    assert "0\N{NO-BREAK SPACE}episodes</b>in which base succeeded and new did not" in found
    assert "30\N{NO-BREAK SPACE}episodes</b>in which new succeeded and base did not" in found
    assert 'href="#episode=easy/reach/0&amp;run=0"' in found
    for run in ("base", "new"):
        assert f'href="{run}/videos/easy/reach/0.mp4"' in found
    alone = make_run(tmp_path / "silent", always, n=20)
    found = section(write_report([pair[0], alone], tmp_path / "other.html").path.read_text(), "comparison")
    assert "mp4" not in found


def test_three_runs_have_letters(pair: list[Path], tmp_path: Path) -> None:
    third = make_run(tmp_path / "third", always, n=20)
    found = section(write_report([*pair, third], tmp_path / "report.html").path.read_text(), "comparison")
    assert "runs that share a letter cannot be told apart" in found.lower()
    assert found.count("<b>a</b>") == 2
    assert found.count("<b>b</b>") == 1


def test_runs_that_share_no_task_say_so_and_one_run_says_nothing(tmp_path: Path) -> None:
    one, other = make_run(tmp_path / "one"), make_run(tmp_path / "other", tasks=[("far", "away")])
    page = write_report([one, other], tmp_path / "report.html").path.read_text()
    assert "share no task" in section(page, "comparison")
    assert "section-comparison" not in write_report([one]).path.read_text()


# -- commands and options


def test_the_command_makes_the_same_configuration_again(tmp_path: Path) -> None:
    (run,) = load_runs([make_run(tmp_path / "run", policy="expert")])
    config = run.described["config"]
    config["eval"] |= {"order": "shuffled", "exact": False, "batch_size": 7}
    config["env"]["options"]["task"] = "push-v3,reach v3"
    config["rename_map"] = {"a": "b"}
    words = shlex.split(eval_command(run))
    assert words[:2] == ["robotrials", "eval"]
    parsed = parse_eval(words[2:]).config
    assert (parsed.policy.type, parsed.env.type) == ("expert", "metaworld")
    assert parsed.env.options["task"] == "push-v3,reach v3"
    assert (parsed.eval.n_episodes, parsed.eval.order, parsed.eval.exact) == (4, "shuffled", False)
    assert parsed.rename_map == {"a": "b"}
    assert parsed.eval.batch_size == 0  # how the work was laid out is not needed


def test_what_is_not_the_default_is_marked_with_the_default_beside_it(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", policy="expert")
    (run,) = load_runs([path])
    assert "eval.exact" not in given(run.described["config"])
    assert given(run.described["config"])["eval.n_episodes"] == 4
    page = write_report([path]).path.read_text()
    assert '<th scope="row">eval.n_episodes</th><td class="given">4<small>default 50</small></td>' in page
    assert '<th scope="row">eval.exact</th><td>true</td>' in page


def test_a_run_that_is_not_complete_has_the_command_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole, part = make_run(tmp_path / "whole"), make_run(tmp_path / "part", lambda e: None if e.index else mostly(e))
    assert "robotrials resume" not in section(write_report([whole]).path.read_text(), "commands")
    assert "<code>robotrials resume part</code>" in section(write_report([part]).path.read_text(), "commands")
    several = section(write_report([whole, part]).path.read_text(), "commands")
    assert "<code>robotrials compare whole part</code>" in several
