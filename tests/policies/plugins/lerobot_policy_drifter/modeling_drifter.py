from __future__ import annotations

from collections import deque

import torch
from lerobot.policies import PreTrainedPolicy

from .configuration_drifter import DrifterConfig


class Memory:
    """State on a plain attribute, which ``reset`` clears in place: a shallow copy of the policy would share it."""

    def __init__(self) -> None:
        self.seen: list[torch.Tensor] = []


class DrifterPolicy(PreTrainedPolicy):
    """Drifts: each action depends on all states seen so far, on a buffer that counts steps, and on noise."""

    config_class = DrifterConfig
    name = "drifter"

    def __init__(self, config: DrifterConfig, **_):
        super().__init__(config)
        self.model = torch.nn.Linear(2, 2)
        self.register_buffer("steps", torch.zeros(()))
        self.memory = Memory()
        self.reset()

    def reset(self):
        self.memory.seen.clear()
        self.steps.zero_()
        self._action_queue = deque(maxlen=self.config.n_action_steps)

    @torch.no_grad()
    def predict_action_chunk(self, batch, **_):
        mean = torch.stack(self.memory.seen).mean(0)
        noise = torch.randn(len(mean), self.config.n_action_steps, 2)
        return self.model(mean)[:, None] + self.steps + noise

    @torch.no_grad()
    def select_action(self, batch, **_):
        self.memory.seen.append(batch["observation.state"])
        self.steps += 1
        if not self._action_queue:
            self._action_queue.extend(self.predict_action_chunk(batch).unbind(1))
        return self._action_queue.popleft()

    def get_optim_params(self):
        return self.parameters()

    def forward(self, batch):
        raise NotImplementedError
