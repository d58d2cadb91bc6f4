"""Bit-identical actions whatever the batch: torch's settings, and a look at whether batching keeps a row's bits.

Measured with torch 2.11 on a CPU (AMD EPYC, AVX-512, oneDNN and MKL), the same row with other neighbours and in other
places: ACT keeps its bits at every fixed batch size from 2 to 16; Diffusion does not at 3 and 4, and no mode of
``MKL_CBWR`` changes that. Batch sizes differ from each other by 1e-6, and so do thread counts. Hence: one thread count
and one padded size, both part of the run's identity; and where the trial below finds that a fixed size is not enough,
single rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch

from robotrials.benchmarks.base import Observation
from robotrials.policies.lerobot.noise import RowNoise, UnsplittableDrawError, seeded

PADDED_SIZES = {"cpu": (4, 8), "cuda": (8,)}
"""Rows that every batch is padded to by default, by device type (1 on others): the first size at which the policy keeps
a row's bits. Part of the run's identity, so it may not depend on how many cores, workers or servers there are. ACT on
one thread of a CPU takes 28, 26, 42, 70, 138 ms for 1, 2, 4, 8, 16 rows, and keeps its bits at all; Diffusion does from
8. More workers than cores (``running.crew``) and a batcher that waits while all cores simulate keep batches full.
"""

LARGEST_BATCH = 16
"""Rows of a batch by default where nothing is padded."""

Run = Callable[[Sequence[Observation], Sequence[int]], np.ndarray]
"""Actions (B, T, A) for B observations, with the seeds of their noise."""


@dataclass(frozen=True)
class Batching:
    """How rows meet: ``size`` rows a forward pass at most, ``padded`` to exactly that; ``samples``: noise is drawn.

    ``repeats`` is False when the same row alone gave different bits twice: then nothing can make the run exact.
    """

    size: int
    padded: bool
    samples: bool
    repeats: bool
    why: str


def default_sizes(device: torch.device, exact: bool) -> tuple[int, ...]:
    """Rows of a batch to try, in order, unless ``--policy.max_batch`` says otherwise."""
    return PADDED_SIZES.get(device.type, (1,)) if exact else (LARGEST_BATCH,)


def configure_torch(device: torch.device, threads: int, exact: bool) -> None:
    """Process-wide settings: the thread count always, deterministic kernels where exactness is asked for."""
    torch.set_num_threads(threads)
    torch.backends.cuda.matmul.allow_tf32 = True  # as lerobot-eval does: other bits otherwise
    torch.backends.cudnn.benchmark = not exact  # its choice of kernel depends on timing
    if exact and device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True, warn_only=True)


def draws_noise(run: Run, row: Observation, device: torch.device) -> bool:
    """Whether a forward pass takes numbers from torch's global generators."""
    with seeded(0, device):
        before = _generator_states(device)
        run([row], [0])
        return any(not torch.equal(a, b) for a, b in zip(before, _generator_states(device), strict=True))


def choose_batching(
    run: Run, rows: Sequence[Observation], device: torch.device, exact: bool, samples: bool
) -> Batching:
    """Try ``rows`` (as many as a batch may hold) in company and alone, and choose.

    ``run`` must honour the seeds it is given (``noise.RowNoise`` for several rows).
    """
    first = rows[0]
    alone = run([first], [1])
    repeats = _same(alone, run([first], [1]))
    size = len(rows)
    if size == 1:
        return Batching(1, False, samples, repeats, "one row at a time was asked for")
    with seeded(0, device):
        before = _generator_states(device)
        try:
            keeps = _keeps_bits(run, rows) if exact else True
            if not exact:
                run(rows, list(range(size)))
        except UnsplittableDrawError as error:
            return Batching(1, False, samples, repeats, f"noise cannot be drawn row by row: {error}")
        if any(not torch.equal(a, b) for a, b in zip(before, _generator_states(device), strict=True)):
            return Batching(1, False, samples, repeats, "draws noise where it cannot be made a row's own")
    if not exact:
        return Batching(size, False, samples, repeats, "as many rows as wait: numbers may depend on the batch")
    if keeps:
        return Batching(size, True, samples, repeats, f"a row keeps its bits in a batch padded to {size}")
    return Batching(1, False, samples, repeats, f"in a batch of {size} a row's bits depend on its place or company")


def _keeps_bits(run: Run, rows: Sequence[Observation]) -> bool:
    """Whether row 0 gives the same bits in every place of a full batch, and beside any company."""
    size = len(rows)
    seeds = [1, *range(2, size + 1)]
    same = run([rows[0]] * size, [1] * size)
    if not all(_same(same[:1], same[i : i + 1]) for i in range(1, size)):
        return False
    beside = run(rows, seeds)
    last = run([*rows[1:], rows[0]], [*seeds[1:], 1])
    return _same(same[:1], beside[:1]) and _same(same[:1], last[-1:]) and _same(beside[1:], last[:-1])


def noise_of(seeds: Sequence[int], device: torch.device) -> AbstractContextManager[object]:
    """The context in which a forward pass over ``len(seeds)`` rows draws its noise."""
    return seeded(seeds[0], device) if len(seeds) == 1 else RowNoise(seeds)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True)


def _generator_states(device: torch.device) -> list[torch.Tensor]:
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return states
