from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from robotrials.cli.flags import parse_eval
from robotrials.plan.config import EnvChoice, EvalSettings, PolicyChoice, RunConfig
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare
from tests.engine.toy_runs import Listener

FOLDER = Path(__file__).resolve().parents[2] / "examples/act_from_experts"


def test_its_commands_are_commands_of_robotrials() -> None:
    script = (FOLDER / "run.sh").read_text().replace("\\\n", " ").replace("$task", "pick-place-v3")
    experts, learned = (
        parse_eval(shlex.split(line)).config for line in re.findall(r"^robotrials eval (.*)$", script, re.MULTILINE)
    )
    assert experts.eval.dataset_cameras == "none"
    assert experts.seed is not None
    assert learned.seed is not None
    trained_on = range(experts.seed, experts.seed + experts.eval.n_episodes)
    assert not set(trained_on) & set(range(learned.seed, learned.seed + learned.eval.n_episodes))


def test_the_checkpoint_is_small() -> None:
    assert sum(file.stat().st_size for file in (FOLDER / "checkpoint").iterdir()) < 10e6


def test_the_checkpoint_does_what_its_readme_says(tmp_path: Path) -> None:
    pytest.importorskip("lerobot")
    config = RunConfig(
        PolicyChoice(path=str(FOLDER / "checkpoint"), options={"device": "cpu"}),
        EnvChoice("metaworld", {"task": "pick-place-v3"}),
        EvalSettings(n_episodes=4, record="none", batch_size=1),
        output_dir=tmp_path / "run",
    )
    assert execute(prepare(config), Listener()).summary.overall.n_success == 4
