from __future__ import annotations

from pathlib import Path

import pytest

from robotrials.errors import ConfigError
from robotrials.suites.registry import SUITES, find


def test_the_suites_that_everybody_knows_are_there() -> None:
    assert set(SUITES) == {"libero", "libero_plus", "metaworld", "robocasa", "robomme", "aloha", "pusht"}
    for suite in SUITES.values():
        assert "/" in suite.dataset
        assert suite.n_episodes > 0


def test_a_suite_of_ones_own_is_read_from_yaml(tmp_path: Path) -> None:
    file = tmp_path / "kitchen.yaml"
    file.write_text(
        "dataset: me/kitchen\nenv: {type: metaworld, task: reach-v3}\nsteps: 7\neval: {eval.record: none}\n"
    )
    suite = find(str(file))
    assert (suite.name, suite.dataset, suite.steps, suite.tasks) == ("kitchen", "me/kitchen", 7, "reach-v3")
    assert suite.eval == {"eval.record": "none"}


def test_a_base_gives_what_the_file_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("base: libero\nn_episodes: 3\n")
    suite = find(str(file))
    assert (suite.name, suite.n_episodes, suite.dataset) == ("mine", 3, SUITES["libero"].dataset)


def test_an_environment_without_a_type_adds_to_that_of_the_base(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("base: libero\nenv: {task: libero_10}\n")
    assert find(str(file)).env == {"type": "libero", "task": "libero_10"}
    file.write_text("base: libero\nenv: {type: libero_plus}\n")
    assert find(str(file)).env == {"type": "libero_plus"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env: {type: pusht}", "dataset is missing"),
        ("dataset: a/b\nenv: {task: x}", "env.type is missing"),
        ("dataset: a/b\nenv: {type: pusht}\nstep: 3", "did you mean steps"),
        ("dataset: a/b\nenv: {type: pusht}\nsteps: many", "whole number"),
        ("- 3", "must hold a map"),
        ("a: [", r"not valid YAML: .*\(line 1, column"),
        ("dataset: a/b\nenv: pusht", "env must be a map such as"),
        ("dataset: a/b\nenv: {type: 5}", "env.type is missing"),
        ("dataset: [a, b]\nenv: {type: pusht}", "dataset must be text"),
        ("dataset: a/b\nenv: {type: pusht}\n1: 2", "a key must be text, got 1"),
        ("dataset: a/b\nenv: {type: pusht}\nsteps: -5", "steps must be at least 1, got -5"),
        ("dataset: a/b\nenv: {type: pusht}\nn_episodes: 0", "n_episodes must be at least 1"),
        ("base: mine.yaml", "base 'mine.yaml' is no known suite"),
        ("base: libro", r"did you mean libero\?"),
        ("dataset: a/b\nenv: {type: metawrld}", r"did you mean metaworld\?.*type: lerobot_env, config: metawrld"),
        ("dataset: a/b\nenv: {type: ''}", "env.type is missing"),
        ("dataset: a/b\nenv: {type: pusht}\nsteps: .inf", "steps must be a whole number, got inf"),
        ("dataset: a/b\nenv: {type: pusht}\nsteps: 1\nsteps: 2", r"steps is given twice \(line 4, column 1\)"),
        ("dataset: a/b\nenv: &e {type: pusht, x: *e}", r"\*e stands inside itself \(line 2, column 26\)"),
        ("a: " + "[" * 5000, "nested too deeply"),
        ("dataset: a/b\nenv: {type: pusht}\ntrain: {steps: 7}", "train cannot hold steps: write steps: N beside it"),
        ("dataset: a/b\nenv: {type: pusht}\neval: {env.fps: 7}", r"eval cannot hold env.fps: write env: \{"),
        ("dataset: a/b\nenv: {type: pusht}\neval: {output-dir: x}", "give it --output_dir=DIR"),
        ("name: ../x\ndataset: a/b\nenv: {type: pusht}", "it names folders"),
    ],
)
def test_a_wrong_file_is_refused_by_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        find(str(file))


def test_an_environment_that_only_a_plugin_of_lerobot_has_is_left_to_lerobot(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    for name in ("gym_hil", "robolab", "my_file.py:Kitchen"):
        file.write_text(f"dataset: a/b\nenv: {{type: '{name}', task: [x, y]}}\n")
        assert find(str(file)).env["type"] == name
    assert find(str(file)).tasks == "x,y"


def test_an_unknown_suite_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"did you mean libero\?"):
        find("libro")
