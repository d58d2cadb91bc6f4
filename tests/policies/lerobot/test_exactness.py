"""Which batches keep a row's bits, and that the trial at the start finds those that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

pytest.importorskip("lerobot")

import torch

from robotrials.policies.lerobot import exactness
from robotrials.policies.lerobot.noise import RowNoise
from robotrials.policies.lerobot.policy import LeRobotPolicy
from tests.policies import lerobot_rows, tiny_lerobot

CPU = torch.device("cpu")
ROWS = [{"x": np.float64(i) * np.ones(3)} for i in range(4)]

Rows = Sequence[dict[str, np.ndarray]]


def honest(rows: Rows, seeds: Sequence[int]) -> np.ndarray:
    return np.stack([row["x"] for row in rows])[:, None]


def noisy(rows: Rows, seeds: Sequence[int]) -> np.ndarray:
    with exactness.noise_of(seeds, CPU):
        return honest(rows, seeds) + torch.randn(len(rows), 1, 3).numpy()


def by_place(rows: Rows, seeds: Sequence[int]) -> np.ndarray:
    return honest(rows, seeds) + np.arange(len(rows))[:, None, None] * 1e-9


def by_company(rows: Rows, seeds: Sequence[int]) -> np.ndarray:
    return honest(rows, seeds) + honest(rows, seeds).mean() * 1e-9


def one_number_for_all(rows: Rows, seeds: Sequence[int]) -> np.ndarray:
    with exactness.noise_of(seeds, CPU):
        return honest(rows, seeds) + float(torch.randn(1))


def hidden_noise(rows: Rows, seeds: Sequence[int]) -> np.ndarray:
    """Draws where no function of torch's is called: inside one, as fused kernels do."""
    if len(rows) > 1:
        torch.nn.functional.dropout(torch.ones(8), 0.5)
    return honest(rows, seeds)


def choose(run: Callable[..., np.ndarray], exact: bool = True, samples: bool = False) -> exactness.Batching:
    return exactness.choose_batching(run, ROWS, CPU, exact, samples)


@pytest.mark.parametrize("run", [honest, noisy])
def test_rows_that_keep_their_bits_are_padded(run: Callable[..., np.ndarray]) -> None:
    chosen = choose(run, samples=run is noisy)
    assert (chosen.size, chosen.padded, chosen.repeats) == (4, True, True)


@pytest.mark.parametrize("run", [by_place, by_company])
def test_rows_that_depend_on_their_batch_run_alone(run: Callable[..., np.ndarray]) -> None:
    chosen = choose(run)
    assert (chosen.size, chosen.padded) == (1, False)
    assert "place or company" in chosen.why


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("run", [one_number_for_all, hidden_noise])
def test_noise_that_is_no_rows_own_leaves_rows_alone(run: Callable[..., np.ndarray], exact: bool) -> None:
    chosen = choose(run, exact, samples=True)
    assert chosen.size == 1
    assert "noise" in chosen.why


def test_without_exactness_batches_are_not_padded() -> None:
    chosen = choose(by_place, exact=False)
    assert (chosen.size, chosen.padded) == (4, False)


def test_policy_that_does_not_repeat_itself_is_reported() -> None:
    counter = iter(range(1000))
    assert not choose(lambda rows, seeds: honest(rows, seeds) + next(counter)).repeats


def test_noise_is_noticed() -> None:
    draws = {
        run: exactness.draws_noise(run, ROWS[0], CPU) for run in (honest, lambda rows, seeds: torch.randn(1).numpy())
    }
    assert list(draws.values()) == [False, True]


def test_several_rows_draw_row_by_row() -> None:
    assert isinstance(exactness.noise_of([1, 2], CPU), RowNoise)


@pytest.mark.parametrize("kind", ["act", "vqbet"])
def test_full_and_nearly_empty_batches_give_the_same_bits(kind: str) -> None:
    policy = LeRobotPolicy(str(tiny_lerobot.shared(kind)), max_batch=4)
    assert policy.describe()["batching"]["padded"]
    rows = [lerobot_rows.row(policy, i) for i in range(9)]
    together = policy.act([lerobot_rows.session(policy, i) for i in range(9)], rows)
    for i in (0, 4, 8):
        assert np.array_equal(together[i], policy.act([lerobot_rows.session(policy, i)], [rows[i]])[0])


def test_another_server_with_the_same_checkpoint_gives_the_same_bits() -> None:
    first, second = (LeRobotPolicy(str(tiny_lerobot.shared("diffusion"))) for _ in range(2))
    torch.randn(7)  # what ran before must not matter
    a, b = (p.act([lerobot_rows.session(p, 2)], [lerobot_rows.row(p, 2)]) for p in (first, second))
    assert np.array_equal(a, b)


def test_inexact_batches_differ_by_rounding_alone() -> None:
    exact, loose = (LeRobotPolicy(str(tiny_lerobot.shared("diffusion")), exact=e) for e in (True, False))
    assert loose.describe()["batching"]["size"] == exactness.LARGEST_BATCH
    rows = [lerobot_rows.row(exact, i) for i in range(5)]
    a, b = (p.act([lerobot_rows.session(p, i) for i in range(5)], rows) for p in (exact, loose))
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-2)
