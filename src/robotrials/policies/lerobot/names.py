"""The names of LeRobot 0.6 that this package uses, imported leanly. Nothing else here imports LeRobot by itself."""

from __future__ import annotations

import importlib

from robotrials.policies.lerobot import lean_imports

lean_imports.install()
with lean_imports.torch_compiler_left_out():
    importlib.import_module("torchvision.transforms.v2")
with lean_imports.training_parts_left_out():
    from lerobot.configs import FeatureType, NormalizationMode, PolicyFeature, PreTrainedConfig
    from lerobot.policies import PreTrainedPolicy, get_policy_class, make_pre_post_processors
    from lerobot.processor import PolicyProcessorPipeline, ProcessorStepRegistry
    from lerobot.utils.constants import ACTION, OBS_IMAGES
    from lerobot.utils.import_utils import register_third_party_plugins

__all__ = [
    "ACTION",
    "OBS_IMAGES",
    "FeatureType",
    "NormalizationMode",
    "PolicyFeature",
    "PolicyProcessorPipeline",
    "PreTrainedConfig",
    "PreTrainedPolicy",
    "ProcessorStepRegistry",
    "get_policy_class",
    "make_pre_post_processors",
    "register_third_party_plugins",
]
