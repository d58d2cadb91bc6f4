"""LeRobot checkpoints into memory: overrides, and every way to be refused."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lerobot")

import torch
from safetensors.torch import load_file, save_file

from robotrials.errors import ConfigError, NotInstalledError
from robotrials.policies.lerobot.policy import LeRobotPolicy
from tests.policies import lerobot_rows, tiny_lerobot


@pytest.fixture
def act(tmp_path: Path) -> Path:
    """A copy of the ACT checkpoint that a test may damage."""
    return shutil.copytree(tiny_lerobot.shared("act"), tmp_path / "act")


def test_spec_says_what_the_checkpoint_reads_and_hands_out() -> None:
    spec = LeRobotPolicy(str(tiny_lerobot.shared("act")), max_batch=1).spec()
    assert spec.name == "lerobot/act"
    assert {key: str(feature) for key, feature in spec.observations.items()} == {
        "task": "None",
        "observation.image": "uint8[96, 96, 3]",
        "observation.state": "float32[2]",
    }
    assert (spec.action_dim, spec.n_action_steps, spec.n_obs_steps, spec.needs_env) == (2, 8, 1, False)


def test_override_changes_the_effective_action_steps() -> None:
    policy = LeRobotPolicy(str(tiny_lerobot.shared("act")), max_batch=1, n_action_steps="3")
    assert policy.spec().n_action_steps == policy.n_action_steps == policy.describe()["n_action_steps"] == 3
    full = LeRobotPolicy(str(tiny_lerobot.shared("act")), max_batch=1)
    (short,), (long,) = (p.act([lerobot_rows.session(p)], [lerobot_rows.row(p, 0)]) for p in (policy, full))
    assert np.array_equal(short, long[:3])


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("n_action_step", "3", r"no option --policy\.n_action_step \(did you mean n_action_steps\?\)"),
        ("n_action_steps", "many", r"--policy\.n_action_steps must be a whole number, got 'many'"),
        ("use_amp", "perhaps", r"--policy\.use_amp must be true or false"),
        ("n_action_steps", "9", r"refused by LeRobot: .*chunk size"),
        ("input_features", "{}", r"no option --policy\.input_features"),
        ("max_batch", 0, r"--policy\.max_batch must be at least 1"),
        ("session_mode", "history", r"--policy\.session_mode=history would be wrong for policy act: it needs chunk"),
        ("session_mode", "fast", r"must be one of chunk, history, copy"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(option: str, value: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        LeRobotPolicy(str(tiny_lerobot.shared("act")), **{"max_batch": 1, option: value})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--policy\.device=cuda is not available here"):
        LeRobotPolicy(str(tiny_lerobot.shared("act")), device="cuda")


def test_weights_of_another_architecture_are_refused(act: Path) -> None:
    weights = load_file(act / "model.safetensors")
    removed = sorted(weights)[-1]
    save_file({key: value for key, value in weights.items() if key != removed}, act / "model.safetensors")
    with pytest.raises(ConfigError, match=rf"lacks 1 of the \d+ tensors of policy act: {removed}"):
        LeRobotPolicy(str(act))


def test_damaged_weights_are_refused(act: Path) -> None:
    (act / "model.safetensors").write_bytes(b"\x00" * 64)
    with pytest.raises(ConfigError, match="LeRobot could not load this act policy"):
        LeRobotPolicy(str(act))


def test_unknown_policy_type_lists_what_exists(act: Path) -> None:
    config = json.loads((act / "config.json").read_text())
    (act / "config.json").write_text(json.dumps({**config, "type": "diffusions"}))
    with pytest.raises(ConfigError, match=r"did you mean diffusion\?.*lerobot_policy_"):
        LeRobotPolicy(str(act))


def test_hub_repository_that_cannot_be_had_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"nobody/nothing is no folder here, and which commit .* HF_HUB_OFFLINE"):
        LeRobotPolicy("nobody/nothing")


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from lerobot.utils import import_utils

    diffusion = tiny_lerobot.shared("diffusion")
    monkeypatch.setitem(import_utils._require_package_cache, "diffusers", False)
    with pytest.raises(NotInstalledError, match=r"lerobot\[diffusion\]"):
        LeRobotPolicy(str(diffusion))


def test_renaming_kept_in_the_checkpoint_does_not_act_a_second_time(act: Path) -> None:
    file = act / "policy_preprocessor.json"
    saved = json.loads(file.read_text())
    saved["steps"][0]["config"]["rename_map"] = {"observation.image": "observation.images.top"}
    file.write_text(json.dumps(saved))
    plain, renamed = (LeRobotPolicy(str(path), max_batch=1) for path in (tiny_lerobot.shared("act"), act))
    (a,), (b,) = (p.act([lerobot_rows.session(p)], [lerobot_rows.row(p, 0)]) for p in (plain, renamed))
    assert np.array_equal(a, b)


def test_adapter_is_applied_to_its_base(act: Path, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    from lerobot.configs import PreTrainedConfig
    from lerobot.policies import get_policy_class

    config = PreTrainedConfig.from_pretrained(act)
    base = get_policy_class("act").from_pretrained(str(act), config=config)
    base.name_or_path = str(act)
    lora = peft.LoraConfig(
        target_modules=["model.action_head"], init_lora_weights=False, base_model_name_or_path=str(act)
    )
    torch.manual_seed(0)
    wrapped = peft.get_peft_model(base, lora)
    adapter = tmp_path / "adapter"
    wrapped.save_pretrained(adapter)
    config.use_peft = True
    config._save_pretrained(adapter)
    for name in act.glob("policy_*"):
        shutil.copy(name, adapter)

    policy, plain = LeRobotPolicy(str(adapter), max_batch=1), LeRobotPolicy(str(act), max_batch=1)
    adapted = policy.act([lerobot_rows.session(policy)], [lerobot_rows.row(policy, 0)])
    unadapted = plain.act([lerobot_rows.session(plain)], [lerobot_rows.row(plain, 0)])
    assert not np.allclose(adapted, unadapted, atol=1e-3)
    merged = wrapped.merge_and_unload()
    merged.config.use_peft = False
    merged.save_pretrained(tmp_path / "merged")
    for name in act.glob("policy_*"):
        shutil.copy(name, tmp_path / "merged")
    as_one = LeRobotPolicy(str(tmp_path / "merged"), max_batch=1)
    expected = as_one.act([lerobot_rows.session(as_one)], [lerobot_rows.row(as_one, 0)])
    np.testing.assert_allclose(adapted, expected, rtol=1e-4)
    assert " on sha256:" in policy.revision


def test_description_is_json_and_names_what_can_change_an_outcome() -> None:
    policy = LeRobotPolicy(str(tiny_lerobot.shared("act")), max_batch=2)
    described = json.loads(json.dumps(policy.describe()))
    assert described["revision"] == policy.revision
    assert described["session_mode"] == "chunk"
    assert described["batching"]["size"] == 2
    assert described["torch_threads"] == torch.get_num_threads() == 1
    assert described["packages"]["torch"] == torch.__version__.partition("+")[0]
    assert "lerobot" in sys.modules
