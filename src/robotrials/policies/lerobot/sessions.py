"""Where the state of an episode lives: three ways to drive a LeRobot policy without its own queues.

LeRobot's policies keep action queues, observation histories and ensembles in the policy object, for one rollout at a
time. Read from LeRobot 0.6.1 (``policies/*/modeling_*.py``), each policy is driven in the lightest way that is right:

``chunk``    no history: ``predict_action_chunk`` on a batch of any episodes' newest observations.
``history``  the worker hands over the last ``n_obs_steps`` observations; the policy's observation queues are filled
             with them for one call and emptied again, so they never outlive a batch.
``copy``     anything else (temporal ensembling, planners with a warm start, policies nobody looked at): each session
             has its own policy object that shares the weights, driven through ``select_action`` at every step.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch

from robotrials.errors import ConfigError
from robotrials.policies.base import Session
from robotrials.policies.lerobot.names import ACTION, OBS_IMAGES, PreTrainedPolicy
from robotrials.policies.lerobot.processing import Batch

CHUNK, HISTORY, COPY = "chunk", "history", "copy"
MODES = (CHUNK, HISTORY, COPY)

_WITHOUT_HISTORY = frozenset(
    {"act", "eo1", "evo1", "fastwam", "groot", "pi0", "pi05", "pi0_fast", "smolvla", "vla_jepa", "wall_x", "xvla"}
)
"""Their ``predict_action_chunk`` depends on the batch alone; ``select_action`` only queues what it returns."""

_WITH_HISTORY = frozenset({"diffusion", "multi_task_dit", "vqbet"})
"""Their ``predict_action_chunk`` reads ``_queues``, which ``select_action`` fills with the last ``n_obs_steps``."""


@dataclass
class LeRobotSession(Session):
    """An episode's state: its noise generator, and in mode ``copy`` a policy object of its own."""

    twin: PreTrainedPolicy | None = None

    def next_seed(self) -> int:
        """The seed of the noise of this look: depends on the episode and on how many looks went before."""
        return int(self.rng.integers(2**63))


def choose_mode(policy: PreTrainedPolicy, asked: str | None) -> str:
    """``asked``, or the lightest mode that is right for ``policy``.

    Raises:
        ConfigError: ``asked`` is no mode, or cannot be right for this policy.
    """
    config = policy.config
    right = COPY
    if config.type in _WITH_HISTORY:
        right = HISTORY
    elif config.type in _WITHOUT_HISTORY and config.n_obs_steps == 1 and not _ensembles(config):
        right = CHUNK
    if asked is None:
        return right
    if asked not in MODES:
        raise ConfigError(f"--policy.session_mode must be one of {', '.join(MODES)}; got {asked}")
    known = config.type in _WITH_HISTORY | _WITHOUT_HISTORY
    if asked not in (right, COPY) and (known or asked == HISTORY):
        raise ConfigError(f"--policy.session_mode={asked} would be wrong for policy {config.type}: it needs {right}")
    return asked


def why_mode(policy: PreTrainedPolicy, mode: str) -> str:
    """One clause for run.json: why this policy is driven this way."""
    config = policy.config
    if mode == CHUNK:
        return "predict_action_chunk depends on the newest observation alone"
    if mode == HISTORY:
        return f"reads the last {config.n_obs_steps} observations, which the worker keeps"
    if _ensembles(config):
        return "averages its chunks over time, so each session has a policy object of its own"
    return "keeps state of its own between steps, so each session has a policy object of its own"


def effective_n_action_steps(policy: PreTrainedPolicy) -> int:
    """How many actions of a chunk lerobot-eval would play before the policy looks again."""
    config = policy.config
    if config.type == "vqbet":
        return int(config.action_chunk_size)
    if config.type == "groot":
        return int(policy._action_queue_steps)
    return int(getattr(config, "n_action_steps", 1))


def light_copy(policy: PreTrainedPolicy) -> PreTrainedPolicy:
    """Another policy object with its own state and buffers that shares ``policy``'s parameters.

    Raises:
        ConfigError: the policy holds something that cannot be copied.
    """
    # Deep, because state also hangs on plain attributes (ACT's ensembler) that a shallow copy would share.
    shared: dict[int, Any] = {id(parameter): parameter for parameter in policy.parameters()}
    try:
        twin = copy.deepcopy(policy, shared)
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise ConfigError(
            f"policy {policy.config.type} keeps its state in the policy object and cannot be copied for each episode "
            f"({error}); run one episode at a time, or name a way that does without copies: --policy.session_mode=chunk"
        ) from error
    twin.reset()
    return twin


def chunk_forward(policy: PreTrainedPolicy, batch: Batch) -> torch.Tensor:
    """Mode ``chunk``: (B, T, A) for a batch of newest observations."""
    return policy.predict_action_chunk(batch)


def history_forward(policy: PreTrainedPolicy, batch: Batch) -> torch.Tensor:
    """Mode ``history``: (B, T, A) for a batch whose tensors are (B, n_obs_steps, ...).

    The queues are filled as ``select_action`` would have left them, then emptied, whatever happens.
    """
    tensors = {key: value for key, value in batch.items() if isinstance(value, torch.Tensor) and value.ndim > 1}
    if policy.config.image_features:
        # The camera axis goes before (C, H, W), as in select_action.
        tensors[OBS_IMAGES] = torch.stack([tensors[key] for key in policy.config.image_features], dim=-4)
    policy.reset()
    try:
        for key, queue in policy._queues.items():
            if key != ACTION and key in tensors:
                queue.extend(tensors[key].unbind(1))
        newest = {**batch, **{key: value[:, -1] for key, value in tensors.items()}}
        newest.pop(ACTION, None)
        return policy.predict_action_chunk(newest)
    finally:
        policy.reset()


def copy_forward(twin: PreTrainedPolicy, batch: Batch) -> torch.Tensor:
    """Mode ``copy``: (1, 1, A), the one action that the session's own policy gives for this step."""
    return twin.select_action(batch).unsqueeze(1)


def _ensembles(config: Any) -> bool:
    return getattr(config, "temporal_ensemble_coeff", None) is not None
