"""From robotrials' observations to the batch a LeRobot policy takes, and from its actions back.

Numbers are those of lerobot-eval (0.6.1: ``envs/utils.py`` preprocess_observation, then the checkpoint's preprocessor,
the policy, its postprocessor one action at a time). Two things differ on purpose: uint8 images go to the device and
become floats there, once a batch; and a whole chunk is postprocessed at its look, so actions relative to the state that
the policy saw are decoded with that state (lerobot-eval decodes the k-th action with the state k steps later).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from robotrials.benchmarks.base import Observation
from robotrials.policies.lerobot.features import TASK
from robotrials.policies.lerobot.names import PolicyProcessorPipeline

Batch = dict[str, Any]
"""LeRobot's batch: tensors with a leading row axis by key, and ``task``, a list of strings."""

_ROW_BY_ROW = frozenset({"unnormalizer_processor", "device_processor"})
"""Postprocessor steps that treat every action alike, so (B * T, A) in one go gives the numbers of T calls of (B, A)."""

_BLIND_TO_TEXT = frozenset(
    {
        "rename_observations_processor",
        "to_batch_processor",
        "device_processor",
        "normalizer_processor",
        "relative_actions_processor",
        "smolvla_new_line_processor",
        "pi0_new_line_processor",
    }
)
"""Preprocessor steps whose results have the same shape whatever the instruction."""


class Processing:
    """A checkpoint's pre- and postprocessor around batches of rows.

    Args:
        history: how many past observations the batch holds, on its second axis; None: no such axis. Observations have a
            leading time axis where it is more than 1.
    """

    def __init__(
        self,
        preprocessor: PolicyProcessorPipeline,
        postprocessor: PolicyProcessorPipeline,
        device: torch.device,
        history: int | None,
    ) -> None:
        self._preprocess = preprocessor
        self._postprocess = postprocessor
        self._device = device
        self._history = history
        self._in_one_go = _names(postprocessor) <= _ROW_BY_ROW
        self._text_shapes_batch = _text_may_shape_batch(preprocessor)

    def group_key(self, observation: Observation) -> tuple[Any, ...]:
        """Rows may share a batch iff their keys are equal: same shapes, and, where the policy reads text, same text.

        Tokenisers pad to the longest text of a batch, so with another text beside it a row would get another shape.
        """
        shapes = tuple((key, value.shape) for key, value in observation.items() if isinstance(value, np.ndarray))
        return (observation.get(TASK) if self._text_shapes_batch else None, *shapes)

    def batch(self, observations: Sequence[Observation]) -> Batch:
        """Stack rows and preprocess them: tensors (B, ...), with history (B, n_obs_steps, ...), on the device."""
        rows, steps = len(observations), self._history or 1
        raw: Batch = {}
        for key, first in observations[0].items():
            if isinstance(first, str):
                continue
            stacked = torch.from_numpy(np.stack([np.asarray(observation[key]) for observation in observations]))
            if steps > 1:
                stacked = stacked.flatten(0, 1)
            raw[key] = self._to_float(stacked.to(self._device))
        raw[TASK] = [str(observation.get(TASK, "")) for observation in observations for _ in range(steps)]
        batch: Batch = self._preprocess(raw)
        return _unflatten(batch, rows, steps) if self._history else batch

    def actions(self, chunk: torch.Tensor) -> np.ndarray:
        """Postprocess a (B, T, A) chunk: (B, T, A') float32 on the host."""
        if self._in_one_go:
            done = self._postprocess(chunk.flatten(0, 1)).unflatten(0, chunk.shape[:2])
        else:
            done = torch.stack([self._postprocess(step) for step in chunk.unbind(1)], dim=1)
        return np.asarray(done.to("cpu", torch.float32).numpy())

    def _to_float(self, tensor: torch.Tensor) -> torch.Tensor:
        """uint8 (B, H, W, C) to float32 (B, C, H, W) in [0, 1]; anything else to float32."""
        if tensor.dtype != torch.uint8 or tensor.ndim != 4:
            return tensor.float()
        image = tensor.permute(0, 3, 1, 2).contiguous().float()
        # A Python number would be applied on a GPU as its rounded reciprocal: other bits than the division on the CPU.
        return image.div_(torch.full((), 255.0, device=tensor.device))


def _unflatten(batch: Batch, rows: int, steps: int) -> Batch:
    """Give tensors of B * T rows their time axis back; what is not a tensor is taken from the newest step."""
    found: Batch = {}
    for key, value in batch.items():
        if isinstance(value, torch.Tensor) and value.ndim and len(value) == rows * steps:
            found[key] = value.unflatten(0, (rows, steps))
        elif isinstance(value, list) and len(value) == rows * steps:
            found[key] = value[steps - 1 :: steps]
        else:
            found[key] = value
    return found


def _names(pipeline: PolicyProcessorPipeline) -> set[str]:
    return {str(getattr(type(step), "_registry_name", type(step).__name__)) for step in pipeline.steps}


def _text_may_shape_batch(preprocessor: PolicyProcessorPipeline) -> bool:
    for step in preprocessor.steps:
        name = getattr(type(step), "_registry_name", type(step).__name__)
        if name in _BLIND_TO_TEXT or getattr(step, "padding", None) == "max_length":
            continue
        return True
    return False


def step_names(config: Mapping[str, Any]) -> set[str]:
    """Names of the steps in a saved pipeline (``policy_preprocessor.json``), as overrides call them."""
    return {str(step.get("registry_name") or step["class"].rpartition(".")[2]) for step in config.get("steps", [])}
