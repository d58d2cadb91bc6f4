from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "examples" / "evaluate_in_training.py"


def test_the_example_evaluates_the_object_in_memory_and_compares_the_steps(tmp_path: Path) -> None:
    pytest.importorskip("gym_pusht")
    done = subprocess.run(
        [sys.executable, str(FILE), "--steps=2", "--episodes=1", "--output_dir=runs"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("step 0: radius 120, speed 0.30: reward 0.")
    assert "Too few episodes to tell step-1 from step-0" in lines[2]
    assert lines[3].endswith("1 episodes, seeds [1000]")
    info = json.loads((tmp_path / "runs/step-1/eval_info.json").read_text())
    assert info["overall"]["n_episodes"] == 1
