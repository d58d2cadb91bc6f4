"""The verb, on real simulators. What it predicts is held against the run that follows by a factor only: machines of CI
are shared. bench/tune.py tells how near it is."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import run

import pytest

from robotrials.cli import tune
from robotrials.cli.main import main

METAWORLD = ["--policy.type=expert", "--env.type=metaworld", "--env.task=reach-v3,push-v3", "--eval.n_episodes=40"]
PUSHT = ["--policy.type=random", "--env.type=pusht", "--env.task=PushT-v0", "--eval.n_episodes=8"]
SERVED = [
    "--policy.type=tests.toy:Seer",
    "--env.type=tests.toy:Toy",
    "--env.step_s=0.005",
    "--eval.policy_servers=1",
]
ROOT = Path(__file__).parents[2]


def measured(flags: Sequence[str], capsys: pytest.CaptureFixture[str], seconds: int = 3) -> dict:
    assert main(["tune", *flags, "--eval.record=none", f"--seconds={seconds}", "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))


def wall_of(command: str, directory: Path) -> float:
    words = shlex.split(command)
    assert words[:2] == ["robotrials", "eval"]
    began = time.monotonic()
    done = run([sys.executable, "-m", *words, f"--output_dir={directory}"], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began


@pytest.mark.parametrize("flags", [METAWORLD, PUSHT], ids=["metaworld", "pusht"])
def test_the_command_runs_and_takes_about_as_long_as_predicted(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("metaworld" if flags is METAWORLD else "gym_pusht")
    content = measured(flags, capsys, seconds=8)  # so that some episodes end on a busy machine, too
    wall = wall_of(content["command"], tmp_path / "run")
    assert wall / 4 < content["advice"]["wall_s"] < 4 * wall
    assert content["advice"]["policy_servers"] == 0
    costs = content["measured"]["costs"]
    assert set(costs) <= ({"reach-v3", "push-v3"} if flags is METAWORLD else {"PushT-v0"})
    assert all(cost["step"] > 0 and cost["reset"] > 0 for cost in costs.values())
    if flags is METAWORLD:  # its experts succeed long before the limit of 500
        assert all(40 < cost["steps"] < 400 for cost in costs.values())
    else:
        assert costs["PushT-v0"]["steps"] == 300


def test_a_served_policy_is_timed_on_batches_and_its_server_is_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = measured([*SERVED, "--eval.n_episodes=400"], capsys)
    server = content["measured"]["server"]
    assert set(server["infer"]) >= {"1", "2", "4", "8"}
    assert server["memory"] > 2**20
    assert not server["own_device"]
    assert content["advice"]["policy_servers"] >= 1
    assert f"--eval.policy_servers={content['advice']['policy_servers']}" in content["command"]
    (cost,) = content["measured"]["costs"].values()
    assert cost["steps_a_look"] == pytest.approx(5, abs=1)
    assert cost["busy"] < 0.8, "its simulator sleeps"
    assert content["advice"]["workers"] > content["measured"]["cores"]


def test_the_page_names_the_bottleneck_and_ends_with_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *SERVED[:3], "--eval.n_episodes=8", "--seconds=2", "--eval.batch_size=1"]) == 0
    page = capsys.readouterr().out
    for name in ("Cores", "Start-up", "Bottleneck", "Workers", "Wall time", "As it was", "film"):
        assert name in page
    last = page.strip().splitlines()[-1]
    assert last.startswith("robotrials eval --policy.type=tests.toy:Seer --env.type=tests.toy:Toy")
    assert last.count("--eval.batch_size") == 1


def test_nothing_is_left_in_the_run_s_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured([*SERVED[:3], "--eval.n_episodes=8", f"--output_dir={tmp_path / 'run'}"], capsys)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--seconds=0"], "--seconds must be between 1 and 3600"),
        (["--policy.type=expert", "--env.type=tests.toy:Toy", "--seconds=x"], "--seconds"),
        (["--policy.type=expert"], "--env.type is missing"),
        (["--policy.type=tests.toy:Seer", "--env.type=tests.toy:Toy", "--eval.runtime=ray"], "not --eval.runtime=ray"),
        (["--policy.type=tests.toy:Unbuildable", "--env.type=tests.toy:Toy", "--seconds=1"], "weights are corrupt"),
        (["--policy.type=tests.toy:WantsSonar", "--env.type=tests.toy:Toy", "--seconds=1"], "observation.sonar"),
    ],
)
def test_what_cannot_be_measured_is_said(flags: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *flags]) == 1
    assert words in capsys.readouterr().err


def test_help_fits_a_page() -> None:
    text = tune.HELP
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 80
