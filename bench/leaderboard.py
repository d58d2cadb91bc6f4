"""What a leaderboard of 200 models costs: CPU seconds to read, rank and write, from eval_info.json files.

python bench/leaderboard.py [--models 200]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from robotrials.reporting.leaderboard import write_leaderboard
from robotrials.reporting.sources import read_local

SUITES = ("libero_spatial", "libero_object", "libero_goal", "libero_10")
TASKS, EPISODES = 10, 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--output", type=Path, help="keep the page")
    call = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_results(Path(folder) / "eval", call.models)
        began = time.process_time()
        sources, _ = read_local([Path(folder) / "eval"])
        made = write_leaderboard(sources, call.output or Path(folder) / "leaderboard.html")
        cpu_s = time.process_time() - began
        page_mb = made.html.stat().st_size / 1e6
    print(f"{call.models} models, {len(SUITES)} suites of {TASKS} tasks, {EPISODES} episodes each: {cpu_s:.2f} CPU s")
    print(json.dumps({"models": call.models, "cpu_s": cpu_s, "page_mb": page_mb}))


def write_results(folder: Path, n_models: int) -> None:
    """Files in lerobot-eval's shape: a fifth of the models lacks a suite."""
    dice = random.Random(0)
    for model in range(n_models):
        skill = dice.betavariate(4, 2)
        per_task = [
            {
                "task_group": suite,
                "task_id": task,
                "metrics": {
                    "sum_rewards": [0.0] * EPISODES,
                    "max_rewards": [0.0] * EPISODES,
                    "successes": [dice.random() < skill for _ in range(EPISODES)],
                    "video_paths": [],
                },
            }
            for suite in SUITES
            for task in range(TASKS)
            if suite != "libero_10" or model % 5
        ]
        run = folder / f"policy-{model:03}"
        run.mkdir(parents=True)
        (run / "eval_info.json").write_text(json.dumps({"per_task": per_task, "per_group": {}, "overall": {}}))
        kind = dice.choice(["act", "smolvla", "pi05", "diffusion"])
        config = {"env": {"type": "libero"}, "policy": {"type": kind, "pretrained_path": f"lab/policy-{model:03}"}}
        (run / "eval_config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    main()
