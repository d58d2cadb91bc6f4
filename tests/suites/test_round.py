"""The real round on PushT: rollouts of a random policy, lerobot-train through accelerate, evaluation, checkpoints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lerobot")
pytest.importorskip("accelerate")

ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
TINY = [
    *("--policy.chunk_size=8", "--policy.n_action_steps=8", "--policy.use_vae=false", "--policy.dim_model=32"),
    *("--policy.dim_feedforward=64", "--policy.n_heads=2", "--policy.n_encoder_layers=1", "--num_workers=0"),
    *("--batch_size=4", "--save_freq=2", "--dataloader_multiprocessing_context=null", "--log_freq=1"),
]


def robotrials(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "robotrials", *map(str, words)]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=500, check=False)


def test_all_trains_evaluates_goes_on_and_is_watched(tmp_path: Path) -> None:
    dataset, out = tmp_path / "dataset", tmp_path / "out"
    env = ["--env.type=pusht", "--env.obs_type=environment_state_agent_pos", "--env.episode_length=20"]
    made = robotrials(
        *("eval", "--policy.type=random", *env, "--eval.n_episodes=3", "--eval.batch_size=1", "--eval.record=none"),
        *(f"--eval.dataset={dataset}", "--eval.dataset_cameras=none", f"--output_dir={tmp_path / 'random'}"),
    )
    assert made.returncode == 0, made.stderr
    suite = tmp_path / "tiny.yaml"
    content = {
        "dataset": "local/random",
        "root": str(dataset),
        "env": {"type": "pusht", "obs_type": "environment_state_agent_pos", "episode_length": 20},
        "n_episodes": 2,
        "steps": 4,
        "eval": {"eval.batch_size": 1, "eval.record": "none", "policy.device": "cpu"},
    }
    suite.write_text(json.dumps(content))
    words = ["suite", "all", suite, "--policy_name=act", f"--output_dir={out}", "--gpus=0"]

    first = robotrials(*words, "--", *TINY)
    assert first.returncode == 0, first.stderr[-3000:]
    training = out / "train/act_tiny"
    saved = sorted(path.name for path in (training / "checkpoints").iterdir())
    assert saved == ["000002", "000004", "last"]
    results = json.loads((out / "eval/act_tiny/000004/eval_info.json").read_text())
    assert results["overall"]["n_episodes"] == 2

    again = robotrials(*words, "--", *TINY)
    assert again.returncode == 0, again.stderr[-3000:]
    assert "trained already, 4 steps" in again.stderr
    assert "all 2 episodes have finished" in again.stderr

    # The run of step 4 is there already, with the same flags: only that of step 2 is played.
    flags = [*env, "--eval.n_episodes=2", "--eval.batch_size=1", "--eval.record=none", "--policy.device=cpu"]
    watched = robotrials("watch", training, *flags, "--poll_s=0.2", f"--output_dir={out / 'eval/act_tiny'}")
    assert watched.returncode == 0, watched.stderr[-3000:]
    assert watched.stderr.count("evaluated already") == 1
    curve = json.loads((out / "eval/act_tiny/curve.json").read_text())
    assert [(point["step"], point["n_episodes"]) for point in curve] == [(2, 2), (4, 2)]
    runs = [json.loads((out / f"eval/act_tiny/00000{step}/run.json").read_text()) for step in (2, 4)]
    assert runs[0]["identity"]["plan"] == runs[1]["identity"]["plan"]
