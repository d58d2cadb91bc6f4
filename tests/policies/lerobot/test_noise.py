"""Noise of a batch, row by row."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from robotrials.policies.lerobot.noise import RowNoise, UnsplittableDrawError, seeded  # noqa: E402

CPU = torch.device("cpu")
SEEDS = [5, 6, 2**62]

DRAWS = {
    "randn": lambda b: torch.randn(b, 16, 2),
    "randn size": lambda b: torch.randn(size=(b, 3), dtype=torch.float64),
    "rand tuple": lambda b: torch.rand((b, 2)),
    "randint": lambda b: torch.randint(0, 1000, (b, 2)),
    "randint high": lambda b: torch.randint(1000, size=(b,)),
    "randn_like": lambda b: torch.randn_like(torch.zeros(b, 5, dtype=torch.float64)),
    "rand_like": lambda b: torch.rand_like(torch.zeros(b, 5)),
    "normal of tensors": lambda b: torch.normal(torch.zeros(b, 2), torch.ones(b, 2)),
    "normal of numbers": lambda b: torch.normal(0.0, 2.0, (b, 2)),
    "normal_": lambda b: torch.zeros(b, 3).normal_(1.0, 2.0),
    "uniform_": lambda b: torch.zeros(b, 3).uniform_(-1, 1),
    "multinomial": lambda b: torch.multinomial(torch.ones(b, 50), 1),
    "several rows of a row": lambda b: torch.multinomial(torch.ones(b * 4, 50), 1).view(b, 4),
    "bernoulli": lambda b: torch.bernoulli(torch.full((b, 30), 0.5)),
    "distribution": lambda b: torch.distributions.Normal(torch.zeros(b, 2), torch.ones(b, 2)).sample(),
    "categorical": lambda b: torch.distributions.Categorical(probs=torch.ones(b, 50)).sample(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_row_draws_in_company_what_it_draws_alone(name: str) -> None:
    def twice(rows: int):
        return torch.cat([DRAWS[name](rows).reshape(rows, -1), DRAWS[name](rows).reshape(rows, -1)], dim=1)

    with RowNoise(SEEDS):
        many = twice(len(SEEDS))
    assert not torch.equal(many[0], many[1])
    for row, seed in zip(many, SEEDS, strict=True):
        with seeded(seed, CPU):
            assert torch.equal(twice(1)[0], row)


def test_generators_outside_stay_where_they_are() -> None:
    before = torch.get_rng_state()
    with RowNoise(SEEDS):
        torch.randn(3, 2)
    with seeded(1, CPU):
        torch.randn(3, 2)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("draw", [lambda: torch.randn(4, 2), lambda: torch.randn(()), lambda: torch.zeros(4).normal_()])
def test_draw_that_is_no_multiple_of_the_rows_is_refused(draw) -> None:
    with RowNoise(SEEDS), pytest.raises(UnsplittableDrawError):
        draw()


def test_generator_given_by_the_policy_itself_is_kept() -> None:
    with RowNoise(SEEDS):
        given = torch.randn(4, generator=torch.Generator().manual_seed(3))
    assert torch.equal(given, torch.randn(4, generator=torch.Generator().manual_seed(3)))
