"""Checkpoints from before LeRobot 0.4, whose statistics are buffers among the weights, act as their successors do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lerobot")

import torch
from lerobot.configs import FeatureType, PolicyFeature
from safetensors.torch import load_file, save_file

from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError
from robotrials.policies.lerobot.policy import LeRobotPolicy
from tests.policies import lerobot_rows, tiny_lerobot

WRIST = {
    "observation.images.wrist_cam": PolicyFeature(FeatureType.VISUAL, (3, 96, 96)),
    "observation.state": PolicyFeature(FeatureType.STATE, (2,)),
}
"""A name with an underscore, which LeRobot's own migration takes for a dot."""


def tdmpc(folder: Path, features: dict[str, PolicyFeature]) -> Path:
    config = {"latent_dim": 8, "mlp_dim": 16, "image_encoder_hidden_dim": 8, "state_encoder_hidden_dim": 8}
    return tiny_lerobot.build("tdmpc", folder, 0, features, {**config, "cem_iterations": 1, "n_gaussian_samples": 8})


def row(policy: LeRobotPolicy) -> Observation:
    """An observation whose camera has the name that ``policy`` knows."""
    names = {"observation.image": next(key for key in policy.spec().observations if "image" in key)}
    return {names.get(key, key): value for key, value in lerobot_rows.row(policy, 0).items()}


BUILDERS = {
    "act": lambda folder: tiny_lerobot.act(folder, features=WRIST),
    "diffusion": lambda folder: tiny_lerobot.diffusion(folder, features=WRIST),
    "vqbet": lambda folder: tiny_lerobot.vqbet(folder, features=WRIST),
    "tdmpc": lambda folder: tdmpc(folder, tiny_lerobot.PUSHT),
}


def aged(new: Path, old: Path) -> Path:
    """``new`` as LeRobot 0.3 would have saved it."""
    shutil.copytree(new, old)
    weights = load_file(old / "model.safetensors")
    statistics = load_file(next(old.glob("policy_preprocessor_*normalizer_processor.safetensors")))
    modes = json.loads((old / "config.json").read_text())["normalization_mapping"]
    for name, tensor in statistics.items():
        key, part = name.rsplit(".", 1)
        kind = "ACTION" if key == "action" else "STATE" if key.endswith("state") else "VISUAL"
        if part not in {"MEAN_STD": ("mean", "std"), "MIN_MAX": ("min", "max")}.get(modes[kind], ()):
            continue
        for layer in ("normalize_targets", "unnormalize_outputs") if kind == "ACTION" else ("normalize_inputs",):
            weights[f"{layer}.buffer_{key.replace('.', '_')}.{part}"] = tensor.clone()
    save_file(weights, old / "model.safetensors")
    for file in old.glob("policy_*"):
        file.unlink()
    return old


@pytest.mark.parametrize("kind", BUILDERS)
def test_old_checkpoint_acts_bit_for_bit_as_with_processors(tmp_path: Path, kind: str) -> None:
    new = BUILDERS[kind](tmp_path / "new")
    policies = [LeRobotPolicy(str(path), max_batch=1) for path in (new, aged(new, tmp_path / "old"))]
    acted = [p.act([lerobot_rows.session(p)], [row(p)]) for p in policies]
    assert np.array_equal(*acted)
    assert policies[0].revision != policies[1].revision


def test_statistics_that_were_never_filled_in_are_refused(tmp_path: Path) -> None:
    old = aged(BUILDERS["act"](tmp_path / "new"), tmp_path / "old")
    weights = load_file(old / "model.safetensors")
    name = "normalize_inputs.buffer_observation_state.mean"
    save_file({**weights, name: torch.full_like(weights[name], torch.inf)}, old / "model.safetensors")
    with pytest.raises(ConfigError, match=r"observation\.state\.mean by which it is normalised is not finite"):
        LeRobotPolicy(str(old))


def test_migrated_checkpoint_whose_names_lost_their_underscore_is_refused(tmp_path: Path) -> None:
    folder = BUILDERS["act"](tmp_path / "act")
    state = next(folder.glob("policy_preprocessor_*normalizer_processor.safetensors"))
    save_file({name.replace("_", "."): tensor for name, tensor in load_file(state).items()}, state)
    with pytest.raises(ConfigError, match=r"lacks observation\.images\.wrist_cam\.mean.*has .*wrist\.cam\.mean"):
        LeRobotPolicy(str(folder))
