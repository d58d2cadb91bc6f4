"""Tiny LeRobot checkpoints with random weights, saved as LeRobot saves its own. Needs lerobot, no hub.

Each builder returns the folder; weights depend on ``seed`` alone. ``shared`` builds each kind once for all tests.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # before huggingface_hub is imported, which reads it once

import torch
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.policies import make_pre_post_processors
from lerobot.policies.factory import get_policy_class, make_policy_config

PUSHT = {
    "observation.image": PolicyFeature(FeatureType.VISUAL, (3, 96, 96)),
    "observation.state": PolicyFeature(FeatureType.STATE, (2,)),
}
METAWORLD = {
    "observation.image": PolicyFeature(FeatureType.VISUAL, (3, 480, 480)),
    "observation.state": PolicyFeature(FeatureType.STATE, (4,)),
}
ACTION_RANGE = {2: (0.0, 512.0), 4: (-1.0, 1.0)}
"""Bounds of the actions by their dimension: PushT's window, Meta-World's unit cube."""


def act(folder: Path, seed: int = 0, features: dict[str, PolicyFeature] = PUSHT, **changes: Any) -> Path:
    """ACT with chunks of 8, of which all 8 are played."""
    config = {
        "chunk_size": 8,
        "n_action_steps": 8,
        "pretrained_backbone_weights": None,
        "dim_model": 64,
        "n_heads": 4,
        "dim_feedforward": 128,
        "n_encoder_layers": 1,
        "n_vae_encoder_layers": 1,
        "latent_dim": 8,
    }
    return build("act", folder, seed, features, {**config, **changes})


def act_ensembling(folder: Path, seed: int = 0, features: dict[str, PolicyFeature] = PUSHT, **changes: Any) -> Path:
    """ACT that looks at every step and averages its chunks over time."""
    return act(folder, seed, features, **{"n_action_steps": 1, "temporal_ensemble_coeff": 0.01, **changes})


def diffusion(folder: Path, seed: int = 0, features: dict[str, PolicyFeature] = PUSHT, **changes: Any) -> Path:
    """Diffusion over two observations, DDPM with 5 steps, 8 actions of 16 played."""
    config = {
        "n_obs_steps": 2,
        "horizon": 16,
        "n_action_steps": 8,
        "pretrained_backbone_weights": None,
        "use_group_norm": True,
        "crop_shape": None,
        "spatial_softmax_num_keypoints": 8,
        "down_dims": (32, 64),
        "diffusion_step_embed_dim": 32,
        "n_groups": 4,
        "num_train_timesteps": 20,
        "num_inference_steps": 5,
        "noise_scheduler_type": "DDPM",
    }
    return build("diffusion", folder, seed, features, {**config, **changes})


def vqbet(folder: Path, seed: int = 0, features: dict[str, PolicyFeature] = PUSHT, **changes: Any) -> Path:
    """VQ-BeT over three observations, chunks of 5, its codebook marked as trained."""
    config = {
        "n_obs_steps": 3,
        "action_chunk_size": 5,
        "pretrained_backbone_weights": None,
        "use_group_norm": True,
        "crop_shape": None,
        "spatial_softmax_num_keypoints": 8,
        "vqvae_embedding_dim": 32,
        "vqvae_enc_hidden_dim": 32,
        "gpt_block_size": 32,
        "gpt_input_dim": 64,
        "gpt_output_dim": 64,
        "gpt_hidden_dim": 64,
        "gpt_n_layer": 2,
        "gpt_n_head": 4,
    }
    return build("vqbet", folder, seed, features, {**config, **changes})


def build(kind: str, folder: Path, seed: int, features: dict[str, PolicyFeature], config: dict[str, Any]) -> Path:
    """Save a policy of type ``kind`` with random weights, and processors with made-up statistics."""
    action_dim = 4 if features is METAWORLD else 2
    policy_config = make_policy_config(
        kind,
        input_features=dict(features),
        output_features={"action": PolicyFeature(FeatureType.ACTION, (action_dim,))},
        device="cpu",
        push_to_hub=False,
        **config,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = get_policy_class(kind)(policy_config)
    if kind == "vqbet":
        policy.vqbet.action_head.vqvae_model.discretized.fill_(True)
    preprocessor, postprocessor = make_pre_post_processors(
        policy_config, dataset_stats=_statistics(features, action_dim)
    )
    folder.mkdir(parents=True, exist_ok=True)
    policy.save_pretrained(folder)
    preprocessor.save_pretrained(folder)
    postprocessor.save_pretrained(folder)
    return folder


def _statistics(features: dict[str, PolicyFeature], action_dim: int) -> dict[str, dict[str, torch.Tensor]]:
    low, high = ACTION_RANGE[action_dim]
    found = {"action": _spread(torch.full((action_dim,), low), torch.full((action_dim,), high))}
    for key, feature in features.items():
        if feature.type is FeatureType.VISUAL:
            found[key] = _spread(torch.zeros(3, 1, 1), torch.ones(3, 1, 1))
        else:
            found[key] = _spread(torch.full(feature.shape, low), torch.full(feature.shape, high))
    return found


def _spread(low: torch.Tensor, high: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"min": low, "max": high, "mean": (low + high) / 2, "std": (high - low) / 4}


@functools.cache
def shared(kind: str) -> Path:
    """The checkpoint of builder ``kind`` for PushT with seed 0, for tests that only read it."""
    folder = Path(tempfile.mkdtemp(prefix="tiny_lerobot_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    built: Path = {"act": act, "act_ensembling": act_ensembling, "diffusion": diffusion, "vqbet": vqbet}[kind](folder)
    return built
