"""Checkpoints as folders, looked at without LeRobot: this runs in every interpreter."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from robotrials.errors import ConfigError, ContractError, NotInstalledError
from robotrials.plan.config import PolicyChoice
from robotrials.plan.task import ActionSpec, Feature, TaskSpec
from robotrials.policies import registry
from robotrials.policies.lerobot import checkpoint
from robotrials.policies.lerobot import policy as lerobot_policy
from robotrials.policies.lerobot.features import Needs

CONFIG: dict[str, Any] = {
    "type": "act",
    "input_features": {
        "observation.image": {"type": "VISUAL", "shape": [3, 96, 96]},
        "observation.state": {"type": "STATE", "shape": [2]},
    },
    "output_features": {"action": {"type": "ACTION", "shape": [2]}},
    "n_action_steps": 8,
}
STATE = {"type": "STATE", "shape": [2]}
PUSHT = TaskSpec(
    suite="pusht",
    name="PushT-v0",
    id=0,
    instruction="Push the block onto its outline",
    max_steps=300,
    control_hz=10.0,
    observations={"observation.image": Feature((96, 96, 3), "uint8"), "observation.state": Feature((2,))},
    action=ActionSpec(2, (0.0, 0.0), (512.0, 512.0)),
)


def folder(where: Path, without: str = "", **config: Any) -> Path:
    """A folder with the files of a checkpoint (their contents do not matter here) but the one called ``without``."""
    where.mkdir(parents=True, exist_ok=True)
    for name in ("model.safetensors", "policy_preprocessor.json", "policy_postprocessor.json"):
        (where / name).write_text("{}")
    (where / "config.json").write_text(json.dumps({**CONFIG, **config}))
    if without:
        (where / without).unlink()
    return where


def test_checkpoint_is_recognised(tmp_path: Path) -> None:
    found = checkpoint.inspect(str(folder(tmp_path)))
    assert (found.kind, found.is_adapter, found.folder) == ("act", False, tmp_path)


@pytest.mark.parametrize(
    ("without", "says"),
    [
        ("config.json", "has no config.json. It holds model.safetensors"),
        ("model.safetensors", "has no model.safetensors. It holds config.json"),
        ("policy_preprocessor.json", "has no policy_preprocessor.json, where LeRobot keeps normalisation"),
    ],
)
def test_what_is_missing_from_a_folder_is_named(tmp_path: Path, without: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        checkpoint.inspect(str(folder(tmp_path, without)))
    assert f"--policy.path={tmp_path}" in str(error.value)
    assert says in str(error.value)


def test_missing_folder_and_file_in_its_place_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        checkpoint.inspect(str(tmp_path / "nowhere"))
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="this is a file"):
        checkpoint.inspect(str(tmp_path / "file"))


def test_training_folder_leads_to_its_last_checkpoint(tmp_path: Path) -> None:
    last = folder(tmp_path / "checkpoints" / "last" / "pretrained_model")
    with pytest.raises(ConfigError, match=f"--policy.path={last}"):
        checkpoint.inspect(str(tmp_path))


def test_pickled_weights_are_refused_whatever_else_is_there(tmp_path: Path) -> None:
    where = folder(tmp_path, "model.safetensors")
    (where / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"only pytorch_model\.bin.*safetensors alone"):
        checkpoint.inspect(str(where))


@pytest.mark.parametrize("content", ["{", "[]", '{"kind": "act"}', '{"type": 3}'])
def test_configuration_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    where = folder(tmp_path)
    (where / "config.json").write_text(content)
    with pytest.raises(ConfigError, match=r"config\.json"):
        checkpoint.inspect(str(where))


def test_adapter_needs_adapter_weights(tmp_path: Path) -> None:
    where = folder(tmp_path, use_peft=True)
    with pytest.raises(ConfigError, match=r"adapter_model\.safetensors"):
        checkpoint.inspect(str(where))
    (where / "adapter_model.safetensors").write_bytes(b"")
    assert checkpoint.inspect(str(where)).is_adapter


def test_revision_follows_weights_processors_and_configuration_and_nothing_else(tmp_path: Path) -> None:
    where = folder(tmp_path)
    seen = {checkpoint.revision(str(where))}
    (where / "README.md").write_text("now with a card")
    (where / "train_config.json").write_text("{}")
    (where / "training_state").mkdir()
    assert checkpoint.revision(str(where)) in seen
    for name in ("model.safetensors", "policy_postprocessor.json", "config.json"):
        (where / name).write_text(f"other {name}")
        revision = checkpoint.revision(str(where))
        assert revision not in seen
        seen.add(revision)


def test_revision_of_an_adapter_follows_its_base(tmp_path: Path) -> None:
    base, adapter = folder(tmp_path / "base"), folder(tmp_path / "adapter")
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
    before = checkpoint.revision(str(adapter))
    (base / "model.safetensors").write_text("trained on")
    assert checkpoint.revision(str(adapter)) != before


def test_registry_takes_a_checkpoint_by_its_path_alone(tmp_path: Path) -> None:
    choice = PolicyChoice(path=str(folder(tmp_path)), options={"n_action_steps": "4"})
    assert registry.type_of(choice) == "lerobot"
    registry.validate(choice)
    assert registry.revision(choice).startswith("sha256:")


def test_fitting_task_has_no_problems() -> None:
    assert Needs.of(CONFIG).problems(PUSHT, {}) == []


def problem(config: dict[str, Any], task: TaskSpec = PUSHT, **rename_map: str) -> str:
    (found,) = Needs.of({**CONFIG, **config}).problems(task, rename_map)
    return found


def test_problems_name_both_sides_with_shapes() -> None:
    state = {"type": "STATE", "shape": [14]}
    assert problem({"input_features": {"observation.state": state}}) == (
        "policy act reads observation.state as float32[14], but PushT-v0 gives float32[2]"
    )
    camera = {"type": "VISUAL", "shape": [3, 480, 640]}
    assert problem({"input_features": {"observation.image": camera}}) == (
        "policy act reads observation.image as uint8[480, 640, 3], but PushT-v0 gives uint8[96, 96, 3]"
    )
    action = {"action": {"type": "ACTION", "shape": [7]}}
    assert problem({"output_features": action}) == "policy act gives actions of 7 numbers, but PushT-v0 takes 2"


def test_missing_camera_suggests_the_rename_that_mends_it() -> None:
    inputs = {"observation.images.top": {"type": "VISUAL", "shape": [3, 96, 96]}}
    found = problem({"input_features": inputs})
    assert "reads observation.images.top uint8[96, 96, 3], which PushT-v0 does not have" in found
    assert "it has observation.image uint8[96, 96, 3], observation.state float32[2]" in found
    assert """--rename_map='{"observation.image": "observation.images.top"}'""" in found
    renamed = {"observation.image": "observation.images.top"}
    assert Needs.of({**CONFIG, "input_features": inputs}).problems(PUSHT, renamed) == []


def test_renames_are_only_suggested_of_what_is_unread_and_of_the_same_shape() -> None:
    wide = {"observation.images.top": {"type": "VISUAL", "shape": [3, 480, 640]}}
    assert "rename_map" not in problem({"input_features": wide})
    other = {"observation.image": CONFIG["input_features"]["observation.image"], "observation.joints": STATE}
    task = replace(PUSHT, observations={**PUSHT.observations, "observation.environment_state": Feature((16,))})
    assert """--rename_map='{"observation.state": "observation.joints"}'""" in problem({"input_features": other}, task)


def test_rename_that_went_wrong_is_to_be_left_out() -> None:
    inputs = {"input_features": {"observation.state": STATE}}
    away = Needs.of({**CONFIG, **inputs}).problems(PUSHT, {"observation.state": "state"})
    assert "--rename_map calls it state: leave that entry out" in away[0]
    both = Needs.of({**CONFIG, **inputs}).problems(PUSHT, {"observation.image": "observation.state"})
    assert both == [
        "--rename_map calls observation.image observation.state, which PushT-v0 has too: leave that entry out"
    ]
    joints = {"input_features": {"observation.joints": STATE}}
    (lost,) = Needs.of({**CONFIG, **joints}).problems(PUSHT, {"observation.nothing": "observation.joints"})
    assert "--rename_map takes it from observation.nothing, which is not there either" in lost
    (wrong,) = Needs.of({**CONFIG, **joints}).problems(PUSHT, {"observation.image": "observation.joints"})
    assert wrong.endswith("gives uint8[96, 96, 3] (observation.image, by --rename_map: leave that entry out)")


def test_policies_that_resize_take_images_of_any_size() -> None:
    camera = {"observation.image": {"type": "VISUAL", "shape": [3, 256, 256]}}
    for config in ({"type": "smolvla"}, {"type": "diffusion", "resize_shape": [84, 84]}):
        needs = Needs.of({**CONFIG, **config, "input_features": camera})
        assert needs.problems(PUSHT, {}) == []
        assert needs.observations() == {"task": None, "observation.image": None}


def test_absent_cameras_are_allowed_only_as_far_as_empty_cameras_says() -> None:
    inputs = {
        key: {"type": "VISUAL", "shape": [3, 96, 96]} for key in ("observation.image", "observation.images.wrist")
    }
    vla = {**CONFIG, "type": "smolvla", "input_features": inputs}
    (found,) = Needs.of(vla).problems(PUSHT, {})
    assert "observation.images.wrist" in found
    assert "--policy.empty_cameras=1" in found
    lenient = Needs.of({**vla, "empty_cameras": 1})
    assert lenient.problems(PUSHT, {}) == []
    assert lenient.absent_cameras(PUSHT, {}) == ["observation.images.wrist"]


def test_placeholder_cameras_are_never_asked_of_a_benchmark() -> None:
    inputs = {
        **CONFIG["input_features"],
        "observation.images.empty_camera_0": {"type": "VISUAL", "shape": [3, 480, 640]},
    }
    needs = Needs.of({**CONFIG, "type": "smolvla", "input_features": inputs})
    assert needs.problems(PUSHT, {}) == []
    assert "observation.images.empty_camera_0" not in needs.observations()


def test_problems_are_found_from_the_folder_alone(tmp_path: Path) -> None:
    choice = PolicyChoice(type="lerobot", path=str(folder(tmp_path, output_features={"action": {"shape": [7]}})))
    with pytest.raises(ContractError, match="actions of 7 numbers, but PushT-v0 takes 2"):
        lerobot_policy.fitted(choice, [PUSHT], {})


def test_fitting_adds_what_the_benchmark_decides_and_keeps_what_was_asked_for(tmp_path: Path) -> None:
    choice = PolicyChoice("lerobot", str(folder(tmp_path)), {"device": "cpu"})
    assert lerobot_policy.fitted(choice, [PUSHT], {}).options == {"action_dim": 2, "device": "cpu"}


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("config.json", {"input_features": [1]}, r"config\.json: input_features must map names to"),
        (
            "config.json",
            {"input_features": {"observation.state": {"type": "STATE"}}},
            r"features\.observation\.state must",
        ),
        (
            "config.json",
            {"input_features": {"a.b": {"type": "VISUAL", "shape": [9, 9]}}},
            r"a\.b: the shape of an image is",
        ),
        (
            "config.json",
            {"input_features": {"a.b": {"type": "SOUND", "shape": [9]}}},
            r"a\.b: type 'SOUND' is unknown; kno",
        ),
        ("config.json", {"output_features": {"action": {"shape": []}}}, r"output_features\.action must be like"),
        ("config.json", {"empty_cameras": "abc"}, r"config\.json: empty_cameras must be a whole number"),
        ("adapter_config.json", '{"base_mod', r"adapter_config\.json is not JSON, perhaps only half written"),
        ("adapter_config.json", '{"base_model_name_or_path": 3}', r"base_model_name_or_path must be text"),
        (
            "policy_preprocessor.json",
            "[]",
            r"policy_preprocessor\.json must hold a JSON object \{\.\.\.\}, it holds a list",
        ),
        (
            "policy_preprocessor.json",
            '{"steps": [{}]}',
            r"steps of policy_preprocessor\.json must be a list of objects",
        ),
        ("policy_postprocessor.json", '{"steps": 3}', r"steps of policy_postprocessor\.json must be a list of objects"),
    ],
)
def test_damaged_files_are_refused_at_once_by_file_and_field(
    tmp_path: Path, file: str, content: Any, says: str
) -> None:
    where = folder(tmp_path)
    (where / "adapter_model.safetensors").write_bytes(b"")
    (where / file).write_text(content if isinstance(content, str) else json.dumps({**CONFIG, **content}))
    with pytest.raises(ConfigError, match=says) as error:
        registry.validate(PolicyChoice("lerobot", str(where)))
    assert str(where) in str(error.value)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("n_action_steps", "abc", "must be a whole number, got 'abc'"),
        ("n_action_steps", "0", "must be at least 1, got 0"),
        ("n_action_steps", -1, "must be at least 1, got -1"),
        ("empty_cameras", "abc", "must be a whole number, got 'abc'"),
        ("empty_cameras", "-1", "must be at least 0, got -1"),
    ],
)
def test_counts_that_are_none_are_refused_before_anything_is_loaded(
    tmp_path: Path, option: str, value: Any, says: str
) -> None:
    for path in (str(folder(tmp_path)), "owner/name"):
        with pytest.raises(ConfigError, match=f"--policy.{option} {says}"):
            registry.validate(PolicyChoice("lerobot", path, {option: value}))


@pytest.mark.skipif(find_spec("lerobot") is not None, reason="LeRobot is installed here")
def test_interpreter_without_lerobot_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(NotInstalledError, match=r"pip install .*\[lerobot\]") as error:
        lerobot_policy.LeRobotPolicy(str(folder(tmp_path)))
    assert ("--policy.python" in str(error.value)) is (sys.version_info < (3, 12))
