"""robotrials against the installed lerobot-eval: same checkpoint, seeds and episodes, start-up included, in one run.

    python bench/against_lerobot_eval.py --env pusht --chunk 8 --episodes 50 --batch-sizes 10
    python bench/against_lerobot_eval.py --env metaworld --chunk 10 --episodes 4 --batch-sizes 1

To be run by an interpreter that has LeRobot 0.6 and robotrials. The checkpoint is an ACT policy with random weights
(ResNet-18, 11 million parameters), since speed does not depend on what the weights have learned. lerobot-eval runs once
for each batch size given and its best counts; both sides record their default videos. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAKE_CHECKPOINT = """
import sys
from pathlib import Path
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.policies import make_pre_post_processors
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
import torch

folder, env, chunk = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
image, state, action = {"pusht": ((3, 96, 96), 2, 2), "metaworld": ((3, 480, 480), 4, 4)}[env]
torch.manual_seed(0)
config = ACTConfig(
    input_features={
        "observation.image": PolicyFeature(FeatureType.VISUAL, image),
        "observation.state": PolicyFeature(FeatureType.STATE, (state,)),
    },
    output_features={"action": PolicyFeature(FeatureType.ACTION, (action,))},
    chunk_size=chunk, n_action_steps=chunk, pretrained_backbone_weights=None, device="cpu",
    dim_model=64, n_heads=4, dim_feedforward=128, n_encoder_layers=1, n_vae_encoder_layers=1, latent_dim=8,
)
one = lambda *shape: {k: torch.full(shape, v) for k, v in {"mean": 0.0, "std": 1.0, "min": -1.0, "max": 1.0}.items()}
middle = {"pusht": 256.0, "metaworld": 0.0}[env]
stats = {"observation.image": one(3, 1, 1), "observation.state": one(state), "action": one(action)}
stats["action"]["mean"] = torch.full((action,), middle)
stats["action"]["std"] = torch.full((action,), 100.0 if env == "pusht" else 1.0)
policy = ACTPolicy(config)
before, after = make_pre_post_processors(config, dataset_stats=stats)
for part in (policy, before, after):
    part.save_pretrained(folder)
"""


def timed(command: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command that must succeed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run(
        command, capture_output=True, text=True, env={"MUJOCO_GL": "egl", **os.environ, "HF_HUB_OFFLINE": "1"}
    )
    wall = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def read_outcomes(folder: Path) -> dict[str, list[float]]:
    metrics = json.loads((folder / "eval_info.json").read_text())["per_task"][0]["metrics"]
    return {key: metrics[key] for key in ("sum_rewards", "max_rewards", "successes")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", choices=["pusht", "metaworld"], required=True)
    parser.add_argument("--chunk", type=int, required=True)
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--batch-sizes", default="10", help="comma list for lerobot-eval; the best counts")
    parser.add_argument("--workers", type=int, default=0, help="of robotrials; 0: its own choice")
    arguments = parser.parse_args()
    task = {"pusht": "PushT-v0", "metaworld": "push-v3"}[arguments.env]
    python = sys.executable
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        checkpoint = folder / "checkpoint"
        timed([python, "-c", MAKE_CHECKPOINT, str(checkpoint), arguments.env, str(arguments.chunk)])
        common = [f"--policy.path={checkpoint}", f"--env.type={arguments.env}", f"--env.task={task}"]
        common += [f"--eval.n_episodes={arguments.episodes}", "--seed=1000"]
        theirs = {}
        for size in arguments.batch_sizes.split(","):
            command = [str(Path(python).with_name("lerobot-eval")), *common, f"--eval.batch_size={size}"]
            command += [
                "--eval.use_async_envs=false",
                "--policy.device=cpu",
                f"--output_dir={folder / f'theirs-{size}'}",
            ]
            theirs[size] = timed(command)
        best = min(theirs, key=lambda size: theirs[size][0])
        command = [python, "-m", "robotrials", "eval", *common, f"--eval.batch_size={arguments.workers}"]
        ours = timed([*command, f"--output_dir={folder / 'ours'}"])
        described = json.loads((folder / "ours" / "run.json").read_text())
        seconds = json.loads((folder / "ours" / "eval_info.json").read_text())["overall"]
    figures = {
        "env": arguments.env,
        "chunk": arguments.chunk,
        "episodes": arguments.episodes,
        "lerobot_eval_batch": int(best),
        "lerobot_eval_wall_s": round(theirs[best][0], 1),
        "lerobot_eval_cpu_s": round(theirs[best][1], 1),
        "robotrials_wall_s": round(ours[0], 1),
        "robotrials_cpu_s": round(ours[1], 1),
        "times_faster": round(theirs[best][0] / ours[0], 2),
        "times_less_cpu": round(theirs[best][1] / ours[1], 2),
        "workers": described["sessions"][0]["workers"],
        "padded_batch": described["policy"].get("batching", {}).get("size"),
        "eval_s": round(seconds["eval_s"], 1),
    }
    for name, value in figures.items():
        print(f"{name:32} {value!s:>12}")
    print(json.dumps({"bench": "against_lerobot_eval", **figures}))


if __name__ == "__main__":
    main()
