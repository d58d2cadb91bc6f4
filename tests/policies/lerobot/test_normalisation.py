"""Statistics that a checkpoint needs to be normalised, looked for without LeRobot: this runs in every interpreter."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from robotrials.errors import ConfigError
from robotrials.policies.lerobot import checkpoint
from tests.policies.lerobot.test_checkpoint import folder

MODES = {"VISUAL": "IDENTITY", "STATE": "MEAN_STD", "ACTION": "MIN_MAX"}
INPUTS = {
    "observation.images.wrist_cam": {"type": "VISUAL", "shape": [3, 96, 96]},
    "observation.state": {"type": "STATE", "shape": [2]},
}
STATE = ("observation.state.mean", "observation.state.std")
ACTION = ("action.min", "action.max")


def tensors(file: Path, names: Iterable[str]) -> None:
    """A safetensors file of one float for each of ``names``."""
    entries = {name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i, name in enumerate(names)}
    header = json.dumps(entries).encode()
    file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4 * len(entries)))


def saved(
    where: Path,
    inputs: Iterable[str] = STATE,
    action: Iterable[str] = ACTION,
    modes: dict[str, str] = MODES,
    **settings: Any,
) -> Path:
    """A checkpoint whose processors hold the statistics named ``inputs`` and ``action``."""
    folder(where, input_features=INPUTS, normalization_mapping=modes)
    features = {**INPUTS, "action": {"type": "ACTION", "shape": [2]}}
    for side, step, names in (("pre", "normalizer", inputs), ("post", "unnormalizer", action)):
        state = f"policy_{side}processor_step_0_{step}_processor.safetensors"
        entry = {
            "registry_name": f"{step}_processor",
            "config": {"features": features, "norm_map": modes, **settings},
            "state_file": state,
        }
        (where / f"policy_{side}processor.json").write_text(json.dumps({"steps": [entry]}))
        tensors(where / state, names)
    return where


def refusal(where: Path) -> str:
    with pytest.raises(ConfigError) as error:
        checkpoint.inspect(str(where))
    return str(error.value)


def test_checkpoint_with_all_of_its_statistics_is_taken(tmp_path: Path) -> None:
    assert checkpoint.inspect(str(saved(tmp_path))).kind == "act"


@pytest.mark.parametrize("mode", ["MEAN_STD", "MIN_MAX", "QUANTILES", "QUANTILE10"])
def test_each_mode_needs_its_own_statistics(tmp_path: Path, mode: str) -> None:
    needs = {"MEAN_STD": ("mean", "std"), "MIN_MAX": ("min", "max"), "QUANTILES": ("q01", "q99")}
    first, second = needs.get(mode, ("q10", "q90"))
    modes = {"STATE": mode, "ACTION": "IDENTITY"}
    whole = saved(tmp_path / "whole", (f"observation.state.{first}", f"observation.state.{second}"), (), modes)
    assert checkpoint.inspect(str(whole)).kind == "act"
    half = refusal(saved(tmp_path / "half", (f"observation.state.{first}",), (), modes))
    assert f"lacks observation.state.{second}, so observation.state would not be normalised ({mode})" in half


@pytest.mark.parametrize("stored", ["so100.buffer.action.min", "buffer_action.min", "Action.min"])
def test_statistics_under_another_name_are_no_statistics_and_are_named(tmp_path: Path, stored: str) -> None:
    said = refusal(saved(tmp_path, action=(stored, stored.replace("min", "max"))))
    assert "policy_postprocessor_step_0_unnormalizer_processor.safetensors lacks action.min" in said
    assert f"It has {stored}, which LeRobot does not read as that" in said


def test_statistics_of_another_feature_look_like_none(tmp_path: Path) -> None:
    said = refusal(saved(tmp_path, action=STATE, modes={**MODES, "ACTION": "MEAN_STD"}))
    assert "lacks action.mean" in said
    assert "It has" not in said


def test_statistics_of_several_robots_are_counted(tmp_path: Path) -> None:
    several = [f"{robot}.buffer.action.{part}" for robot in ("so100", "so100-red") for part in ("min", "max")]
    assert "It has so100-red.buffer.action.min and 1 more like it" in refusal(saved(tmp_path, action=several))


def test_dots_in_place_of_underscores_are_seen(tmp_path: Path) -> None:
    turned = tuple(f"observation.images.wrist.cam.{part}" for part in ("mean", "std"))
    said = refusal(saved(tmp_path, (*STATE, *turned), modes={**MODES, "VISUAL": "MEAN_STD"}))
    assert "lacks observation.images.wrist_cam.mean" in said
    assert "It has observation.images.wrist.cam.mean" in said


def test_processors_saved_without_a_data_set_are_refused(tmp_path: Path) -> None:
    for name in ("policy_preprocessor.json", "policy_postprocessor.json"):
        where = saved(tmp_path / name)
        entry = json.loads((where / name).read_text())
        del entry["steps"][0]["state_file"]
        (where / name).write_text(json.dumps(entry))
        assert f"{name} lacks " in refusal(where)
        (where / name).write_text(json.dumps({"steps": []}))
        assert f"{name} has no step that normalises, but config.json says" in refusal(where)


def test_feature_that_the_step_does_not_list_is_refused(tmp_path: Path) -> None:
    where = saved(tmp_path, features={"action": {"type": "ACTION", "shape": [2]}})
    assert "does not list observation.state among the features of its normaliser" in refusal(where)


def test_what_is_said_to_stay_as_it_is_needs_no_statistics(tmp_path: Path) -> None:
    where = saved(tmp_path, inputs=(), normalize_observation_keys=["observation.images.wrist_cam"])
    assert checkpoint.inspect(str(where)).kind == "act"


def test_mode_that_is_unknown_is_refused(tmp_path: Path) -> None:
    said = refusal(saved(tmp_path, modes={**MODES, "STATE": "MEANSTD"}))
    assert "normalization mode MEANSTD is unknown; known: IDENTITY, MEAN_STD" in said


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"\xff" * 64, struct.pack("<Q", 2) + b"[]"])
def test_damaged_statistics_are_refused(tmp_path: Path, content: bytes) -> None:
    where = saved(tmp_path)
    (where / "policy_preprocessor_step_0_normalizer_processor.safetensors").write_bytes(content)
    assert "policy_preprocessor_step_0_normalizer_processor.safetensors is damaged" in refusal(where)


def test_file_of_statistics_that_is_gone_is_named(tmp_path: Path) -> None:
    where = saved(tmp_path)
    (where / "policy_preprocessor_step_0_normalizer_processor.safetensors").unlink()
    assert "keeps statistics in policy_preprocessor_step_0_normalizer_processor.safetensors, which" in refusal(where)


def old(where: Path, names: Iterable[str], kind: str = "act") -> Path:
    """A checkpoint from before processors, with the tensors ``names``."""
    folder(where, type=kind, input_features=INPUTS, normalization_mapping={**MODES, "VISUAL": "MEAN_STD"})
    for name in ("policy_preprocessor.json", "policy_postprocessor.json"):
        (where / name).unlink()
    tensors(where / "model.safetensors", names)
    return where


OLD = (
    "model.weight",
    *(f"normalize_inputs.buffer_observation_images_wrist_cam.{part}" for part in ("mean", "std")),
    *(f"normalize_inputs.buffer_observation_state.{part}" for part in ("mean", "std")),
    *(f"unnormalize_outputs.buffer_action.{part}" for part in ("min", "max")),
)


def test_old_checkpoint_is_recognised_by_the_statistics_among_its_weights(tmp_path: Path) -> None:
    assert checkpoint.inspect(str(old(tmp_path / "old", OLD))).is_old
    assert not checkpoint.inspect(str(saved(tmp_path / "new"))).is_old
    said = refusal(old(tmp_path / "bare", ("model.weight",)))
    assert "has no policy_preprocessor.json and no policy_postprocessor.json" in said


def test_old_checkpoint_lacking_a_statistic_is_refused(tmp_path: Path) -> None:
    renamed = [name.replace("outputs.buffer_action", "outputs.so100_buffer_action") for name in OLD]
    said = refusal(old(tmp_path, renamed))
    assert "model.safetensors lacks unnormalize_outputs.buffer_action.min" in said
    assert "It has unnormalize_outputs.so100_buffer_action.min" in said


def test_old_checkpoint_of_a_type_that_was_stored_otherwise_is_refused(tmp_path: Path) -> None:
    assert "is a pi0 checkpoint from before LeRobot 0.4" in refusal(old(tmp_path, OLD, "pi0"))
