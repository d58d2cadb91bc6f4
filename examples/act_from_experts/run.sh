#!/usr/bin/env bash
# Scripted experts -> a LeRobot dataset -> lerobot-train -> an evaluation of what it learned. See README.md.
#
#   examples/act_from_experts/run.sh [FOLDER]      default: outputs/act_from_experts
#
# Needs Python 3.12 with robotrials[lerobot,metaworld,dataset] and lerobot[training] on the PATH.
set -euo pipefail
out=${1:-outputs/act_from_experts}
task=pick-place-v3

# 100 episodes of the expert, every step of each. No camera: this policy learns from the full state.
# Their seeds are 100000, 100001, ...; those of the evaluation below are others.
robotrials eval --policy.type=expert --env.type=metaworld --env.task=$task --seed=100000 --eval.n_episodes=100 \
  --eval.record=none --eval.dataset="$out/dataset" --eval.dataset_cameras=none --output_dir="$out/experts"

# A small ACT: 0.7 million parameters. It plays 8 actions of each chunk of 16.
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 lerobot-train --dataset.repo_id=local/experts --dataset.root="$out/dataset" \
  --policy.type=act --policy.device=cpu --policy.push_to_hub=false \
  --policy.chunk_size=16 --policy.n_action_steps=8 --policy.use_vae=false --policy.dropout=0 \
  --policy.dim_model=128 --policy.dim_feedforward=512 --policy.n_heads=4 --policy.n_encoder_layers=2 \
  --policy.normalization_mapping='{"STATE": "MEAN_STD", "ENV": "MEAN_STD", "ACTION": "MEAN_STD"}' \
  --policy.optimizer_lr=3e-4 --batch_size=32 --steps=2000 --save_freq=2000 --log_freq=200 --num_workers=1 \
  --output_dir="$out/training"

robotrials eval --policy.path="$out/training/checkpoints/last/pretrained_model" --policy.device=cpu \
  --env.type=metaworld --env.task=$task --eval.n_episodes=50 --output_dir="$out/evaluation"
