from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from robotrials.cli.main import main
from robotrials.datasets.analysis.analyse import analyse
from robotrials.datasets.analysis.page import findings
from robotrials.datasets.analysis.settings import AnalysisSettings
from robotrials.errors import ConfigError, DatasetError
from tests.datasets.analysis.made_up import strategies, write_dataset

QUICK = AnalysisSettings(bands=2, draws=2)


def test_two_datasets_become_a_page_numbers_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = np.r_[np.full(12, 40), np.full(70, 150)]
    full = write_dataset(tmp_path / "<b>full", strategies(82, short, 4, 2, 0))
    curated = write_dataset(tmp_path / "curated", strategies(60, 150, 4, 1, 0))
    words = [
        "dataset",
        "analyze",
        str(full),
        str(curated),
        f"--output_dir={tmp_path / 'out'}",
        "--bands=2",
        "--draws=2",
    ]
    assert main(words) == 0
    assert "more than one way to move at 0–50 % (2), 50–100 % (2)" in capsys.readouterr().out
    numbers = json.loads((tmp_path / "out/analysis.json").read_text())
    first, second = numbers["sets"]
    assert first["episodes"] == {"all": 82, "long_enough": 70, "analysed": 70}
    assert [band["modes"] for band in first["modes"]] == [2, 2]
    assert [band["modes"] for band in second["modes"]] == [1, 1]
    assert np.median(numbers["variance_ratio"]["value"]) > 1.5
    assert sum(first["chunks"]) == 70 * 9
    page = (tmp_path / "out/index.html").read_text()
    assert "<b>full" not in page
    assert "&lt;b&gt;full" in page
    assert page.count("data:image/png;base64,") == 7
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    figures = sorted(path.name for path in (tmp_path / "out/figures").iterdir())
    assert [name[:2] for name in figures] == ["0_", "1_", "2_", "3_", "4_", "5_", "6_"]


@pytest.mark.parametrize("where", ["tasks", "task_index"])
def test_two_tasks_of_one_strategy_each_are_no_two_strategies(tmp_path: Path, where: str) -> None:
    reach, push = strategies(60, 100, 4, 1, 0), strategies(60, 100, 4, 1, 1)
    motions = [*reach, *(motion + 8.0 for motion in push)]
    blind = write_dataset(tmp_path / "blind", motions)
    assert [found.modes for found in analyse([blind], QUICK).sets[0].modes] == [2, 2]
    names = ["reach"] * 60 + ["push"] * 60
    known = names if where == "tasks" else [int(name == "push") for name in names]
    analysis = analyse([write_dataset(tmp_path / "ds", motions, **{where: known})], QUICK)
    (one,) = analysis.sets
    assert [found.modes for found in one.modes] == [1, 1]
    assert set(one.by_task) == ({"reach", "push"} if where == "tasks" else {"task 0", "task 1"})
    assert findings(analysis) == ["ds: one way to move in each of 2 tasks in every band with enough episodes."]


def test_a_task_of_two_strategies_is_named(tmp_path: Path) -> None:
    motions = [*strategies(60, 100, 4, 2, 0), *strategies(60, 100, 4, 1, 1)]
    names = ["pour"] * 60 + ["wipe"] * 60
    root = write_dataset(tmp_path / "ds", motions, tasks=names)
    analysis = analyse([root], QUICK)
    assert [found.modes for found in analysis.sets[0].modes] == [2, 2]
    assert [[found.modes for found in analysis.sets[0].by_task[name]] for name in ("pour", "wipe")] == [[2, 2], [1, 1]]
    assert findings(analysis)[0] == "ds: more than one way to move in 'pour' at 0–50 % (2), 50–100 % (2)."


def test_the_same_seed_gives_the_same_numbers(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "ds", strategies(30, 80, 3, 2, 0))
    one, two = (analyse([root], QUICK) for _ in range(2))
    np.testing.assert_array_equal(one.sets[0].spread.draws, two.sets[0].spread.draws)
    assert one.sets[0].modes == two.sets[0].modes
    assert one.sets[0].null == two.sets[0].null


def test_rollouts_are_split_by_outcome_and_quick_successes_are_kept(tmp_path: Path) -> None:
    lengths = np.r_[np.full(10, 40), np.full(50, 150)]
    success = np.arange(60) < 25
    root = write_dataset(tmp_path / "ds", strategies(60, lengths, 3, 1, 0), success=success)
    result = analyse([root], QUICK)
    assert [(one.name, one.analysed) for one in result.sets] == [("successes", 25), ("failures", 35)]
    assert result.threshold == 0
    whole = analyse([root], AnalysisSettings(bands=2, draws=0, split="none"))
    assert [(one.name, one.analysed) for one in whole.sets] == [("ds", 50)]


def test_rollouts_of_one_outcome_are_one_set(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "ds", strategies(20, 60, 3, 1, 0), success=np.ones(20, bool))
    assert [one.name for one in analyse([root], QUICK).sets] == ["ds"]
    with pytest.raises(DatasetError, match=r"no failures of at least 30 frames"):
        analyse([root], AnalysisSettings(split="outcome"))


def test_at_most_so_many_episodes_are_read_spread_over_the_dataset(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "ds", strategies(30, 60, 3, 1, 0))
    result = analyse([root], AnalysisSettings(bands=2, draws=0, max_episodes=7))
    assert (result.sets[0].analysed, len(result.sets[0].lengths)) == (7, 30)


def test_datasets_of_different_robots_or_rates_are_not_compared(tmp_path: Path) -> None:
    one = write_dataset(tmp_path / "one", strategies(3, 60, 3, 1, 0))
    other = write_dataset(tmp_path / "other", strategies(3, 60, 4, 1, 0))
    fast = write_dataset(tmp_path / "fast", strategies(3, 60, 3, 1, 0), fps=50.0)
    with pytest.raises(ConfigError, match=r"3 entries.*of 4"):
        analyse([one, other], QUICK)
    with pytest.raises(ConfigError, match=r"30 frames a second.*50"):
        analyse([one, fast], QUICK)


def test_episodes_shorter_than_a_chunk_are_refused_with_the_flag_to_change(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "ds", strategies(3, 20, 3, 1, 0))
    with pytest.raises(DatasetError, match="smaller --chunk"):
        analyse([root], QUICK)


def test_a_folder_that_cannot_be_written_is_refused_before_the_analysis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("robotrials.datasets.analysis.analyse.analyse", lambda *args: pytest.fail("it analysed"))
    (tmp_path / "file").write_text("")
    assert main(["dataset", "analyze", "x", f"--output_dir={tmp_path}/file/page"]) == 1
    assert f"{tmp_path}/file is a file" in capsys.readouterr().err
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert main(["dataset", "analyze", "x", f"--output_dir={tmp_path}/page"]) == 1
    assert f"no permission in {tmp_path}" in capsys.readouterr().err


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (["dataset"], "analyze FULL"),
        (["dataset", "analyse", "x"], "did you mean analyze?"),
        (["dataset", "analyze"], "one dataset or two"),
        (["dataset", "analyze", "x", "--chnk=3"], "did you mean --chunk?"),
        (["dataset", "analyze", "x", "--chunk=1"], "at least 2"),
        (["dataset", "analyze", "/nowhere"], "no such folder"),
    ):
        assert main(words) == 1
        assert message in capsys.readouterr().err
