from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from robotrials.cli.main import main
from robotrials.errors import ConfigError
from robotrials.reporting.leaderboard import write_leaderboard
from robotrials.reporting.sources import Counts, Source, TrainingFacts
from tests.reporting.browser import chromium, horizontal_scroll, opened
from tests.reporting.runs import make_run
from tests.reporting.test_board import source
from tests.reporting.test_report import HOSTILE


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


def some_models() -> list[Source]:
    """alpha and beta tie overall; alpha leads on goal, beta on long; gamma is far below; delta lacks long."""
    alpha = source("lab/alpha", goal=[(95, 100)], long=[(80, 100)])
    trained = TrainingFacts("act", "lab/data", 1000, 8)
    return [
        replace(alpha, training=trained, repo_id="lab/alpha"),
        replace(source("beta", goal=[(85, 100)], long=[(89, 100)]), training=TrainingFacts("smolvla")),
        source("gamma", goal=[(10, 100)], long=[(2, 100)]),
        source("delta", goal=[(99, 100)]),
    ]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_leaderboard(some_models(), tmp_path_factory.mktemp("board") / "board.html").html


def order(page: Any) -> list[tuple[str, str]]:
    """Rank and model of the rows in sight, with a dash where the divider is."""
    rows = page.eval_on_selector_all(
        "#board tbody tr:not([hidden])", "all => all.map(r => [r.cells[0].textContent, r.dataset.name ?? '---'])"
    )
    return [(rank if name != "---" else "", name) for rank, name in rows]


def test_the_table_stands_ranked_with_the_incomplete_apart(browser: Any, page_file: Path) -> None:
    expected = [("1", "lab/alpha"), ("1", "beta"), ("3", "gamma"), ("", "---"), ("–", "delta")]
    with opened(browser, page_file) as page:
        assert order(page) == expected
        assert page.inner_text("#board tr[data-name=delta] .mean .missing") == "1 of 2 suites"
        assert "Training" in page.inner_text(".toolbar")
        assert page.get_attribute("#board tr[data-name='lab/alpha'] a", "href") == "https://huggingface.co/lab/alpha"
    with opened(browser, page_file, java_script_enabled=False) as page:
        assert order(page) == expected


def test_sorting_by_a_suite_ranks_by_it(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        page.click("#board thead button >> text=goal")
        assert order(page) == [("1", "delta"), ("1", "lab/alpha"), ("2", "beta"), ("4", "gamma")]
        page.click("#board thead button >> text=goal")
        assert [name for _, name in order(page)] == ["gamma", "beta", "lab/alpha", "delta"]
        page.click("#board thead button >> text=Model")
        assert [name for _, name in order(page)] == ["beta", "gamma", "lab/alpha", "---", "delta"]


def test_the_best_of_a_column_is_bold(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        best = page.eval_on_selector_all("#board b.value", "all => all.map(b => b.closest('tr').dataset.name)")
        assert best == ["lab/alpha", "beta", "delta"]  # overall, long, goal


def test_filters_and_hidden_columns(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        page.fill("#filter-text", "ALPHA")
        assert order(page) == [("1", "lab/alpha")]
        assert page.inner_text("#shown") == "1 of 4 models"
        page.fill("#filter-text", "")
        page.select_option("#filter-type", "smolvla")
        assert [name for _, name in order(page)] == ["beta"]
        assert page.is_visible("#board th.suite >> nth=0")
        page.click("[data-toggle=suites]")
        assert not page.is_visible("#board th.suite >> nth=0")
        page.click("[data-toggle=training]")
        assert not page.is_visible("#board th.training >> nth=0")


def test_text_from_repositories_is_text(browser: Any, tmp_path: Path) -> None:
    hostile = Source(HOSTILE, HOSTILE, HOSTILE, {HOSTILE: {0: Counts(1, 2)}}, TrainingFacts(HOSTILE, HOSTILE), "x/y")
    made = write_leaderboard([hostile], tmp_path / "board.html", not_read=[HOSTILE])
    assert HOSTILE.encode() not in made.html.read_bytes()
    with opened(browser, made.html) as page:
        assert page.inner_text("#board th[scope=row]") == HOSTILE
        assert page.inner_text("#not-read li") == HOSTILE
        assert page.locator("main img").count() == 0


def test_on_a_phone_only_the_table_scrolls_sideways(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file, viewport={"width": 360, "height": 740}, is_mobile=True) as page:
        assert horizontal_scroll(page) == 0


def test_the_csv_has_the_same_figures_and_no_formulas(tmp_path: Path) -> None:
    formula = "=HYPERLINK(A1)"
    made = write_leaderboard([*some_models(), source(formula, goal=[(1, 100)], long=[(1, 100)])], tmp_path / "b.html")
    rows = list(csv.DictReader(io.StringIO(made.csv.read_text())))
    assert [row["model"] for row in rows] == ["lab/alpha", "beta", "gamma", f"'{formula}", "delta"]
    alpha, delta = rows[0], rows[-1]
    assert (alpha["rank"], alpha["dataset"], alpha["steps"], alpha["batch_size"]) == ("1", "lab/data", "1000", "8")
    assert (alpha["Overall percent"], alpha["goal successes"], alpha["goal episodes"]) == ("87.5000", "95", "100")
    assert (delta["rank"], delta["Overall percent"], delta["Overall missing"]) == ("", "", "1 of 2 suites")
    assert delta["goal percent"] == "99.0000"


def test_files_of_somebody_else_are_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("a,b\n")
    with pytest.raises(ConfigError, match="choose another"):
        write_leaderboard(some_models(), tmp_path / "mine.html")
    assert (tmp_path / "mine.csv").read_text() == "a,b\n"
    with pytest.raises(ConfigError, match="CSV is written beside"):
        write_leaderboard(some_models(), tmp_path / "board.csv")


def test_the_verb_reads_runs_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "one", policy="act")
    make_run(tmp_path / "two", lambda e: None if e.suite == "hard" else "success", policy="pi0")
    monkeypatch.chdir(tmp_path)
    assert main(["leaderboard", "one", "two"]) == 0
    said = capsys.readouterr().out
    assert said == (
        f"{tmp_path}/leaderboard.html\n{tmp_path}/leaderboard.csv\n"
        "2 models, 1 of them incomplete and not ranked overall\n"
    )
    assert main(["leaderboard", "one", "--suites=nothing"]) == 1
    assert "no results have a suite 'nothing'; there are easy, hard, metaworld" in capsys.readouterr().err
    assert main(["leaderboard"]) == 1
    capsys.readouterr()
    (tmp_path / "two" / "run.json").write_text("{")
    assert main(["leaderboard", "one", "two"]) == 2
    both = capsys.readouterr()
    assert "note: two/run.json cannot be read" in both.err
    assert "two/run.json cannot be read" in (tmp_path / "leaderboard.html").read_text()
    assert both.out.endswith("1 model\n")
    assert main(["leaderboard", "two"]) == 1
    assert "there are no results to make a leaderboard of\n  two/run.json" in capsys.readouterr().err
