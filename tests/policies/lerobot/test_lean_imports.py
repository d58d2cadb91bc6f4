"""Leaving out of LeRobot what a policy does not need: nothing missing, nothing different."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("lerobot")

from tests.policies.tiny_lerobot import shared


def in_a_fresh_interpreter(program: str, *arguments: str) -> dict:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


LOAD = """
import json, sys
from robotrials.policies.lerobot.policy import LeRobotPolicy
policy = LeRobotPolicy(sys.argv[1])
heavy = ("transformers", "diffusers", "datasets", "pandas", "peft", "scipy", "torch._dynamo", "wandb")
print(json.dumps({"heavy": [name for name in heavy if name in sys.modules]}))
"""

NAMES = """
import importlib, json
from robotrials.policies.lerobot import lean_imports, names
found = {}
for package in ("lerobot.configs", "lerobot.policies", "lerobot.processor"):
    module = importlib.import_module(package)
    lean = {name: getattr(module, name) for name in module.__all__}
    lean_imports.import_all(package)
    found[package] = {
        "lean": sorted(lean),
        "different": [name for name in module.__all__ if getattr(module, name) is not lean.get(name)],
    }
known = names.PreTrainedConfig.get_known_choices()
import torch
import torchvision
boxes = torch.tensor([[0.0, 0.0, 0.0, 2.0, 2.0]])
pooled = torchvision.ops.roi_align(torch.ones(1, 1, 4, 4), boxes, 1)
print(json.dumps({"packages": found, "known": sorted(known), "pooled": pooled.item()}))
"""


def test_an_act_policy_loads_without_the_packages_of_other_policies() -> None:
    assert in_a_fresh_interpreter(LOAD, str(shared("act")))["heavy"] == []


def test_lean_packages_have_every_name_of_the_real_ones_and_the_same_objects() -> None:
    answer = in_a_fresh_interpreter(NAMES)
    for package, found in answer["packages"].items():
        assert found["different"] == [], package
        assert len(found["lean"]) > 10
    assert {"act", "diffusion", "smolvla", "pi0", "vqbet", "xvla"} <= set(answer["known"])
    assert answer["pooled"] == 1.0
