"""How near `robotrials tune` comes to the run that follows.

    python bench/tune.py [--seconds 60] [--only NAMES]

Tunes, then runs the command it prints, on Meta-World's experts, PushT with random actions, and a learned policy in a
server; predicted and real wall seconds, start-up included. Everything else on the machine counts in both. The last line
is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FLAGS = {
    "metaworld-expert": "--policy.type=expert --env.type=metaworld --eval.n_episodes=200 --eval.record=none "
    "--env.task=reach-v3,push-v3,pick-place-v3,door-open-v3,drawer-open-v3",
    "metaworld-filmed": "--policy.type=expert --env.type=metaworld --eval.n_episodes=15 --eval.record=first:5 "
    "--env.task=reach-v3,push-v3,door-open-v3",
    "pusht-random": "--policy.type=random --env.type=pusht --env.task=PushT-v0 --eval.n_episodes=120 "
    "--eval.record=none",
    "metaworld-served": "--policy.path=builtin:metaworld-bc --env.type=metaworld --eval.n_episodes=60 "
    "--env.task=reach-v3,drawer-open-v3 --eval.record=none --eval.policy_servers=1",
}


def tuned(flags: str, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "robotrials", "tune", *shlex.split(flags), f"--seconds={seconds}", "--json"]
    told: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return told


def real(command: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", *shlex.split(command), f"--output_dir={Path(folder) / 'run'}"]
        began = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode not in (0, 2):
            raise SystemExit(done.stderr)
        return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default=",".join(FLAGS))
    arguments = parser.parse_args()
    figures: dict[str, dict[str, float | str]] = {}
    for name in arguments.only.split(","):
        content = tuned(FLAGS[name], arguments.seconds)
        wall, predicted = real(content["command"]), content["advice"]["wall_s"]
        figures[name] = {
            "predicted_s": round(predicted, 1),
            "real_s": round(wall, 1),
            "ratio": round(predicted / wall, 3),
            "workers": content["advice"]["workers"],
            "bottleneck": content["bottleneck"],
        }
        print(f"{name:20} " + "  ".join(f"{key} {value}" for key, value in figures[name].items()), flush=True)
    print(json.dumps({"bench": "tune", "seconds": arguments.seconds, **figures}))


if __name__ == "__main__":
    main()
