"""scripts/ci_evaluate.sh, beside a robotrials and a docker that only say what they were asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

ROBOTRIALS = """#!/usr/bin/env bash
printf '%s\\n' "$@" >"$ASKED/$1"
case $1 in
  eval) folder=${*: -1} folder=${folder#--output_dir=}; mkdir -p "$folder"; touch "$folder/run.json" ;;
  metrics) echo '{"task_descriptions": {"pusht": "push"}}' >"$RESULTS/metrics.json" ;;
esac
var=STATUS_$1; exit "${!var:-0}"
"""


def evaluate(tmp_path: Path, **variables: str) -> tuple[int, list[str]]:
    """The exit status, and the words after ``robotrials``."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("robotrials", ROBOTRIALS), ("docker", "#!/bin/sh\necho --env.episode_length=20 --env.a=b\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    results = tmp_path / "my results"
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "ASKED": str(tmp_path), **variables}
    environment |= {"BENCHMARK": "pusht", "RESULTS": str(results)}
    done = subprocess.run(["bash", ROOT / "scripts/ci_evaluate.sh", results], env=environment, check=False, timeout=60)
    return done.returncode, (tmp_path / "eval").read_text().splitlines()


def test_without_flags_a_random_policy_plays_the_smoke_test_of_the_image(tmp_path: Path) -> None:
    status, words = evaluate(tmp_path)
    assert status == 0
    assert words[:5] == ["eval", "--policy.type=random", "--env.type=pusht", "--env.episode_length=20", "--env.a=b"]
    assert "--docker.image=robotrials-pusht" in words
    assert (tmp_path / "my results/task_descriptions.json").is_file()


def test_flags_on_several_lines_all_count(tmp_path: Path) -> None:
    _, words = evaluate(
        tmp_path, POLICY="--policy.path=a/b\n  --policy.device=cpu\n", ENV_FLAGS="--env.x=1\n--env.y=2\n"
    )
    assert words[:6] == [
        "eval",
        "--policy.path=a/b",
        "--policy.device=cpu",
        "--env.type=pusht",
        "--env.x=1",
        "--env.y=2",
    ]


@pytest.mark.parametrize(("of_eval", "of_metrics", "status"), [("0", "3", 3), ("2", "3", 2), ("2", "0", 2)])
def test_the_exit_status_is_that_of_eval_else_of_metrics(
    tmp_path: Path, of_eval: str, of_metrics: str, status: int
) -> None:
    assert evaluate(tmp_path, STATUS_eval=of_eval, STATUS_metrics=of_metrics)[0] == status


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ci_evaluate.sh"], "usage: BENCHMARK=NAME ci_evaluate.sh FOLDER"),
        (["ci_evaluate.sh", "results"], "BENCHMARK: names the benchmark, such as pusht"),
        (["ci_image.sh"], "BENCHMARK: names the benchmark, such as pusht"),
    ],
)
def test_what_is_missing_is_named_before_docker_is_asked(tmp_path: Path, words: list[str], message: str) -> None:
    script, *rest = words
    environment = {**os.environ, "BENCHMARK": ""}
    done = subprocess.run(
        ["bash", ROOT / "scripts" / script, *rest], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert not list(tmp_path.iterdir())
