from __future__ import annotations

from dataclasses import dataclass, field

from lerobot.configs import NormalizationMode, PreTrainedConfig


@PreTrainedConfig.register_subclass("drifter")
@dataclass
class DrifterConfig(PreTrainedConfig):
    n_action_steps: int = 3
    normalization_mapping: dict[str, NormalizationMode] = field(
        default_factory=lambda: {"STATE": NormalizationMode.IDENTITY, "ACTION": NormalizationMode.IDENTITY}
    )

    observation_delta_indices = None
    action_delta_indices = None
    reward_delta_indices = None

    def get_optimizer_preset(self):
        return None

    def get_scheduler_preset(self):
        return None

    def validate_features(self):
        pass
