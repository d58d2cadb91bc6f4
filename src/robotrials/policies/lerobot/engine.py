"""A loaded LeRobot policy that acts for many episodes at once: way of driving, batching and noise put together."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from robotrials.benchmarks.base import Observation
from robotrials.policies.base import PolicySpec
from robotrials.policies.lerobot import exactness, sessions
from robotrials.policies.lerobot.features import TASK, Needs
from robotrials.policies.lerobot.loading import Loaded, versions
from robotrials.policies.lerobot.processing import Processing
from robotrials.policies.lerobot.sessions import CHUNK, COPY, HISTORY, LeRobotSession


class Engine:
    """Everything between observations and actions.

    Args:
        loaded: policy and processors; the policy belongs to this object from here on.
        max_batch: rows of one forward pass; None: by the device (``exactness.default_sizes``).
        exact: keep every row's bits whatever the batch.
        mode: how state is kept (``sessions.MODES``); None: the lightest that is right for this policy.
        absent: cameras of the checkpoint that the benchmark lacks and the policy may do without.
    """

    def __init__(
        self,
        loaded: Loaded,
        max_batch: int | None = None,
        exact: bool = True,
        mode: str | None = None,
        absent: Sequence[str] = (),
        threads: int = 1,
    ) -> None:
        self._policy = policy = loaded.policy
        self._loaded = loaded
        self.device = torch.device(str(policy.config.device))
        self._exact = exact
        self._threads = threads
        exactness.configure_torch(self.device, threads, exact)
        self.mode = sessions.choose_mode(policy, mode)
        self.needs = Needs.of(loaded.config_dict())
        self._observations = self.needs.observations(absent)
        self._n_obs_steps = int(policy.config.n_obs_steps) if self.mode == HISTORY else 1
        self._processing = Processing(
            loaded.preprocessor,
            loaded.postprocessor,
            self.device,
            history=self._n_obs_steps if self.mode == HISTORY else None,
        )
        self.n_action_steps = sessions.effective_n_action_steps(policy)
        self._played = 1 if self.mode == COPY else self.n_action_steps
        self.batching = self._choose_batching(max_batch)
        self._action_dim, self._played = self._shape_of_chunk()
        if self.mode != COPY:
            self.n_action_steps = self._played

    def spec(self) -> PolicySpec:
        return PolicySpec(
            f"lerobot/{self._policy.config.type}",
            observations=self._observations,
            action_dim=self._action_dim,
            n_action_steps=self._played,
            n_obs_steps=self._n_obs_steps,
            max_batch=self.batching.size,
        )

    def twin(self) -> Any:
        """A policy object for one session in mode ``copy``, else None."""
        return sessions.light_copy(self._policy) if self.mode == COPY else None

    def act(self, of: Sequence[LeRobotSession], observations: Sequence[Observation]) -> np.ndarray:
        """(B, n_action_steps, A) float32 for B sessions; see ``Policy.act``."""
        seeds = [session.next_seed() for session in of]
        actions: list[np.ndarray | None] = [None] * len(of)
        for rows in self._batches(observations):
            some = [observations[i] for i in rows]
            if self.mode == COPY:
                chunk = self._run_copy(of[rows[0]].twin, some[0], seeds[rows[0]])
            else:
                chunk = self._run_padded(some, [seeds[i] for i in rows])
            for i, row in zip(rows, chunk, strict=True):
                actions[i] = row
        return np.stack([row for row in actions if row is not None])

    def describe(self) -> dict[str, Any]:
        """What a run records of its policy: everything here can change an outcome."""
        config = self._policy.config
        return {
            "type": config.type,
            "revision": self._loaded.revision,
            "n_action_steps": self.n_action_steps,
            "n_obs_steps": int(config.n_obs_steps),
            "session_mode": self.mode,
            "session_mode_why": sessions.why_mode(self._policy, self.mode),
            "batching": asdict(self.batching),
            "exact": self._exact,
            "device": str(config.device),
            "device_name": torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu",
            "dtype": str(next(self._policy.parameters()).dtype).removeprefix("torch."),
            "use_amp": bool(config.use_amp),
            "torch_threads": self._threads,
            "packages": versions(),
        }

    def _batches(self, observations: Sequence[Observation]) -> list[list[int]]:
        """Positions of ``observations`` that go through the policy together."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i, observation in enumerate(observations):
            groups.setdefault(self._processing.group_key(observation), []).append(i)
        size = self.batching.size
        return [group[i : i + size] for group in groups.values() for i in range(0, len(group), size)]

    def _run_padded(self, observations: Sequence[Observation], seeds: Sequence[int]) -> np.ndarray:
        """(B, T, A) for B <= size rows; repeats of the first row fill a batch that is to be full."""
        missing = self.batching.size - len(observations) if self.batching.padded else 0
        full = self._run([*observations, *[observations[0]] * missing], [*seeds, *[0] * missing])
        return full[: len(observations)]

    def _run(self, observations: Sequence[Observation], seeds: Sequence[int]) -> np.ndarray:
        """One forward pass over exactly these rows."""
        forward = sessions.history_forward if self.mode == HISTORY else sessions.chunk_forward
        with torch.inference_mode(), self._autocast():
            batch = self._processing.batch(observations)
            noise = exactness.noise_of(seeds, self.device) if self._samples else contextlib.nullcontext()
            with noise:
                chunk = forward(self._policy, batch)
            return self._processing.actions(chunk[:, : self._played])

    def _run_copy(self, twin: Any, observation: Observation, seed: int) -> np.ndarray:
        with torch.inference_mode(), self._autocast():
            batch = self._processing.batch([observation])
            with exactness.noise_of([seed], self.device):
                chunk = sessions.copy_forward(twin, batch)
            return self._processing.actions(chunk)

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        """As lerobot-eval: mixed precision around processing and policy alike."""
        return torch.autocast(self.device.type) if self._policy.config.use_amp else contextlib.nullcontext()

    def _choose_batching(self, max_batch: int | None) -> exactness.Batching:
        if self.mode == COPY:
            return exactness.Batching(1, False, True, True, "each session drives its own copy of the policy")
        sizes = exactness.default_sizes(self.device, self._exact) if max_batch is None else (max_batch,)
        rows = [self._made_up_row(i) for i in range(max(sizes))]
        self._samples = False
        self._samples = exactness.draws_noise(self._run, rows[0], self.device)
        for size in sizes:
            found = exactness.choose_batching(self._run, rows[:size], self.device, self._exact, self._samples)
            if found.size > 1:
                break
        return found

    def _shape_of_chunk(self) -> tuple[int, int]:
        """The (T, A) that really come out: a policy may return fewer actions than n_action_steps promises, and
        processors may change their size."""
        row = self._made_up_row(0)
        chunk = self._run_copy(self.twin(), row, 0) if self.mode == COPY else self._run_padded([row], [0])
        return chunk.shape[2], min(self._played, chunk.shape[1])

    def _made_up_row(self, number: int) -> Observation:
        """An observation of the right shapes with random content."""
        rng = np.random.Generator(np.random.PCG64(number))
        times = (self._n_obs_steps,) if self._n_obs_steps > 1 else ()
        row: Observation = {TASK: "pick up the cube"}
        for key in self._observations:
            feature = self.needs.inputs.get(key)
            if feature is None:
                continue
            shape = (*times, *feature.shape)
            if feature.is_image:
                row[key] = rng.integers(0, 256, shape, dtype=np.uint8)
            else:
                row[key] = rng.random(shape, dtype=np.float32)
        return row


__all__ = ["CHUNK", "COPY", "HISTORY", "Engine"]
