"""What robotrials writes, LeRobot reads, decodes, normalises with and trains on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lerobot")

from lerobot.datasets.lerobot_dataset import LeRobotDataset

from robotrials.datasets import join
from robotrials.datasets.layout import DatasetLayout
from robotrials.datasets.lerobot_v3 import write_dataset
from tests.datasets.kept import CAMERA, frame, keep, make_task, state

LENGTHS = (9, 1, 14, 6, 11)
LIFT, DROP = make_task("lift", side=32, hz=80.0), make_task("drop", side=32, hz=80.0)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five episodes of two tasks; the third does not fit into the first video file any more."""
    folder = tmp_path_factory.mktemp("run")
    kept = [keep(folder, (LIFT, DROP)[i % 2], i, steps, success=i != 2) for i, steps in enumerate(LENGTHS)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "MAX_VIDEO_S", 20 / 80)
        write_dataset(folder / "ds", DatasetLayout.of_tasks([LIFT, DROP], "all"), kept)
    assert len(list((folder / "ds").rglob("*.mp4"))) == 3
    return folder / "ds"


def test_every_frame_of_every_episode_is_read_back(root: Path) -> None:
    dataset = LeRobotDataset("robotrials/test", root=root)
    assert (dataset.num_episodes, len(dataset), dataset.fps) == (5, sum(LENGTHS), 80)
    row = iter(range(len(dataset)))
    for episode, steps in enumerate(LENGTHS):
        for step in range(steps):
            item = dataset[next(row)]
            np.testing.assert_allclose(
                item[CAMERA].permute(1, 2, 0) * 255, frame(episode, step, 32), atol=3, err_msg=f"{episode} {step}"
            )
            np.testing.assert_array_equal(item["observation.state"], state(episode, step))
            assert item["action"].tolist() == [step, 0.0, 1.0]
            assert item["next.reward"] == -step
            assert bool(item["next.done"]) == (step == steps - 1)
            assert item["seed"] == 1000 + episode
            assert item["task"] == ("Please lift", "Please drop")[episode % 2]


def test_chunks_of_actions_and_windows_of_frames_stay_within_their_episode(root: Path) -> None:
    times = {"action": [step / 80 for step in range(4)], CAMERA: [-2 / 80, -1 / 80, 0.0]}
    dataset = LeRobotDataset("robotrials/test", root=root, delta_timestamps=times)
    last = dataset[LENGTHS[0] - 1]
    assert last["action"][:, 0].tolist() == [8.0] * 4
    assert last["action_is_pad"].tolist() == [False, True, True, True]
    for past, step in zip(last[CAMERA], (6, 7, 8), strict=True):
        np.testing.assert_allclose(past.permute(1, 2, 0) * 255, frame(0, step, 32), atol=3)


def test_episodes_are_selected_by_how_they_ended(root: Path) -> None:
    whole = LeRobotDataset("robotrials/test", root=root)
    chosen = whole.meta.filter_episodes(lambda episode: not episode["success"])
    assert chosen == [2]
    part = LeRobotDataset("robotrials/test", root=root, episodes=chosen)
    assert len(part) == LENGTHS[2]
    np.testing.assert_allclose(part[3][CAMERA].permute(1, 2, 0) * 255, frame(2, 3, 32), atol=3)


def test_lerobot_train_learns_from_it_and_saves_a_policy_with_its_statistics(root: Path, tmp_path: Path) -> None:
    flags = {
        "dataset.repo_id": "robotrials/test",
        "dataset.root": root,
        "policy.type": "act",
        "policy.device": "cpu",
        "policy.push_to_hub": "false",
        "policy.pretrained_backbone_weights": "null",
        "policy.dim_model": 32,
        "policy.n_heads": 2,
        "policy.dim_feedforward": 32,
        "policy.n_encoder_layers": 1,
        "policy.use_vae": "false",
        "policy.chunk_size": 4,
        "policy.n_action_steps": 4,
        "dataset.use_imagenet_stats": "false",
        "batch_size": 2,
        "steps": 2,
        "num_workers": 0,
        "output_dir": tmp_path / "out",
    }
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "lerobot.scripts.lerobot_train",
            *(f"--{name}={value}" for name, value in flags.items()),
        ],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    from safetensors.numpy import load_file

    saved = tmp_path / "out/checkpoints/000002/pretrained_model"
    (normalizer,) = saved.glob("policy_preprocessor_step_*_normalizer_processor.safetensors")
    steps = np.concatenate([np.arange(length) for length in LENGTHS])
    stats = load_file(normalizer)
    np.testing.assert_allclose(stats["action.mean"], [steps.mean(), 0, 1], rtol=1e-6)
    np.testing.assert_allclose(stats["action.std"], [steps.std(), 0, 0], rtol=1e-6)
    assert stats[f"{CAMERA}.mean"].shape == (3, 1, 1)
