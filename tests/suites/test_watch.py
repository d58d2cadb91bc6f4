from __future__ import annotations

import json
from pathlib import Path

import pytest

from robotrials.cli.main import main
from robotrials.cli.watch import WatchCall, parse, run
from robotrials.errors import ConfigError
from robotrials.suites.curve import page
from robotrials.suites.point import Point
from robotrials.suites.training import TrainingFolder
from robotrials.suites.watch import arrivals, config_for, read_curve, write_curve
from tests.suites.checkpoints import write_checkpoint


def test_checkpoints_are_taken_as_they_appear_until_the_training_is_over(tmp_path: Path) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 1:
            write_checkpoint(tmp_path, 10, steps=30)
        if len(slept) == 2:  # one that is still being written
            write_checkpoint(tmp_path, 20, steps=30).joinpath("training_state/training_step.json").rename(
                tmp_path / "x"
            )
        if len(slept) == 3:
            (tmp_path / "x").rename(tmp_path / "checkpoints/000020/training_state/training_step.json")
            write_checkpoint(tmp_path, 30, steps=30)

    found = [checkpoint.step for checkpoint in arrivals(TrainingFolder(tmp_path), 5.0, once=False, sleep=sleep)]
    assert found == [10, 20, 30]
    assert slept == [5.0] * 3


def test_once_takes_those_that_are_there(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 10, steps=30)
    assert [checkpoint.step for checkpoint in arrivals(TrainingFolder(tmp_path), 5.0, once=True)] == [10]


def test_every_checkpoint_has_the_same_run_but_for_path_and_directory(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 10)
    write_checkpoint(tmp_path, 20)
    call = parse([str(tmp_path), "--env.type=pusht", "--eval.n_episodes=3", "--poll_s", "2", "--once"])
    assert (call.poll_s, call.once) == (2.0, True)
    one, two = (config_for(call.config, c, call.output_dir) for c in TrainingFolder(tmp_path).checkpoints())
    assert (one.seed, one.env, one.eval) == (two.seed, two.env, two.eval)
    assert one.policy.path == str(tmp_path / "checkpoints/000010/pretrained_model")
    assert two.output_dir == tmp_path / "evaluation/000020"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--seed=null", "watch needs a seed"),
        ("--env.tsk=x", "unknown option --env.tsk"),
        ("--env.type=psht", "pusht?"),
        ("--env.type=metaworld", "--env.task is needed"),
        ("--policy.type=zero", "plays no checkpoint of lerobot-train"),
        ("--eval.record=some", "--eval.record"),
        ("--dry_run", "watch has no --dry_run"),
        ("--poll_s=2", "--poll_s is given twice"),
        ("--pol_s=3", "did you mean --poll_s?"),
        ("--onse", "did you mean --once?"),
        ("--seeed=3", "did you mean --seed?"),
    ],
)
def test_what_no_checkpoint_could_be_evaluated_with_is_refused_before_there_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str, message: str
) -> None:
    env = [] if "env.type" in word else ["--env.type=pusht"]
    assert main(["watch", str(tmp_path), "--poll_s=1", *env, word]) == 1  # without --once: it would wait for ever
    assert message in capsys.readouterr().err


def test_what_would_mix_episodes_or_policies_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 10)
    with pytest.raises(ConfigError, match=r"takes no --policy\.path"):
        parse([str(tmp_path), "--env.type=pusht", "--policy.path=x"])
    with pytest.raises(ConfigError, match="one directory"):
        parse(["--env.type=pusht"])


def test_the_curve_is_read_from_the_runs_and_drawn(tmp_path: Path) -> None:
    for step, successes in ((100, 2), (200, 7), (1000, 9)):
        group = {"pc_success": 10.0 * successes, "pc_success_ci95": [10.0, 95.0]}
        overall = {**group, "n_episodes": 10, "n_errors": 0, "n_planned": 10}
        folder = tmp_path / f"{step:06d}"
        folder.mkdir()
        (folder / "eval_info.json").write_text(
            json.dumps({"overall": overall, "per_group": {"a": group, "<b>": group}})
        )
    (tmp_path / "002000").mkdir()  # begun, without results yet
    points = write_curve(tmp_path, "act <on> pusht")
    assert [(point.step, point.rate) for point in points] == [(100, 0.2), (200, 0.7), (1000, 0.9)]
    assert points == read_curve(tmp_path)
    saved = json.loads((tmp_path / "curve.json").read_text())
    assert saved[2]["ci95"] == [0.1, 0.95]
    html = (tmp_path / "index.html").read_text()
    assert html.count("<circle") == 3
    assert "act &lt;on&gt; pusht" in html
    assert "<b>" not in html
    assert '<tr class="best"><td>1,000</td>' in html


def write_result(folder: Path, rate: float) -> None:
    folder.mkdir(parents=True)
    figures = {"pc_success": rate, "pc_success_ci95": [10.0, 95.0]}
    overall = {**figures, "n_episodes": 10, "n_errors": 0, "n_planned": 10}
    (folder / "eval_info.json").write_text(json.dumps({"overall": overall, "per_group": {}}))


def test_the_page_links_to_the_report_of_each_step_that_has_one(tmp_path: Path) -> None:
    write_result(tmp_path / "000100", 20.0)
    write_result(tmp_path / "000200", 30.0)
    (tmp_path / "000200/report.html").write_text("<p>")
    write_curve(tmp_path, "t")
    html = (tmp_path / "index.html").read_text()
    assert '<td><a href="000200/report.html">200</a></td>' in html
    assert "<td>100</td>" in html
    assert html.count('<a href="000200/report.html"><circle') == 1


def test_the_page_renews_itself_only_while_the_watch_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renewal = '<meta http-equiv="refresh"'
    seen: list[bool] = []
    write_checkpoint(tmp_path, 10)
    folder = tmp_path / "evaluation"
    write_result(folder / "000010", 20.0)

    def go(call: WatchCall, training: object, title: str) -> int | None:
        write_curve(folder, title, goes_on=True)
        seen.append(renewal in (folder / "index.html").read_text())
        if len(seen) == 2:
            raise KeyboardInterrupt
        return 0

    monkeypatch.setattr("robotrials.cli.watch._evaluate_all", go)
    monkeypatch.setattr("robotrials.suites.watch.check_before_waiting", lambda config: None)
    words = [str(tmp_path), "--env.type=pusht"]
    assert run(words) == 0
    assert renewal not in (folder / "index.html").read_text()
    with pytest.raises(KeyboardInterrupt):
        run(words)
    assert renewal not in (folder / "index.html").read_text()
    assert seen == [True, True]


def test_a_checkpoint_whose_episodes_all_erred_is_a_row_without_a_dot() -> None:
    html = page("t", [Point(10, None, None, 0, 5, 5, {}), Point(20, 0.5, (0.2, 0.8), 5, 0, 5, {})])
    assert html.count("<circle") == 1
    assert "<td>0 of 5</td><td>5</td>" in html


def test_once_without_a_checkpoint_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path), "--env.type=pusht", "--once"]) == 1
    assert "no whole checkpoint yet" in capsys.readouterr().err
