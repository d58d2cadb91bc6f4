"""``robotrials merge`` from the command line: its table, its status, and the words for what was typed wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from robotrials.cli import merge
from robotrials.cli.main import main
from robotrials.errors import ConfigError
from tests.engine.toy_runs import run, toy_config


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("shards")
    for number in range(2):
        assert run(toy_config(folder / str(number), tasks="a", n_episodes=4, num_shards=2, shard_id=number)).complete
    return [str(folder / "0"), str(folder / "1")]


def test_merge_prints_the_table_of_the_whole(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["merge", *shards, f"--output_dir={tmp_path / 'all'}"]) == 0
    shown = capsys.readouterr().out
    assert "toys/a" in shown
    assert "4/4" in shown
    assert "2 shards of one run" in shown
    assert str(tmp_path / "all") in shown


def test_partial_merge_has_the_status_of_a_partial_run_and_says_how_to_go_on(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "all"
    assert main(["merge", shards[0], "--output_dir", str(target)]) == 1
    assert "Not given: shard 1 of 2" in capsys.readouterr().err
    assert main(["merge", shards[0], "--partial", "--output_dir", str(target)]) == 2
    assert f"2 episodes are missing, 0 ended in an error. To go on:\n  robotrials resume {target}" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "takes the run directories"),
        (["a", "b"], "needs --output_dir"),
        (["a", "--output_dir"], "--output_dir needs a value"),
        (["a", "--output_dir=x", "--output-dir=y"], "given twice"),
        (["a", "--output_dir=x", "--partail"], "did you mean --partial"),
        (["a", "--output_dir=x", "--partail=true"], "did you mean --partial"),
    ],
)
def test_wrong_words_are_refused(words: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        merge.parse_merge(words)


def test_help_fits_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 45


def test_table_of_a_shard_says_which_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "eval",
        "--policy.type=tests.toy:Seer",
        "--env.type=tests.toy:Toy",
        "--eval.n_episodes=4",
        "--eval.record=none",
    ]
    words += ["--eval.num_shards=2", "--eval.shard_id=1", f"--output_dir={tmp_path / 'run'}"]
    assert main([*words, "--dry_run"]) == 0
    assert "2 episodes of 1 task" in (plan := capsys.readouterr().out)
    assert "1 of 2 (from 0)" in plan
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "1 of 2 (from 0); robotrials merge makes one run of all" in shown.out
    assert "Seer on Toy, shard 1 of 2: 1 task, 2 episodes" in shown.err
