"""The global generators, one stream for each of their users."""

from __future__ import annotations

import random
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pytest

from robotrials.plan import global_random
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.global_random import Generators, seed_global_generators, standing

EPISODE = EpisodeSpec(0, "toys", "a", 0, 1000, None, 60)
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def draws(kind: str, count: int) -> list[float]:
    if kind == "python":
        return [random.gauss(0.0, 1.0) for _ in range(count)]
    if kind == "numpy":
        return [float(np.random.randn()) for _ in range(count)]
    import torch

    return [float(torch.randn(())) for _ in range(count)]


@pytest.mark.parametrize("kind", ["python", "numpy", pytest.param("torch", marks=needs_torch)])
def test_each_stream_goes_on_where_it_was_whatever_the_others_drew(kind: str) -> None:
    with standing(Generators(7)):
        whole = draws(kind, 6)
    with standing(Generators(8)):
        other = draws(kind, 6)
    assert whole != other
    mine, theirs = Generators(7), Generators(8)
    found: list[float] = []
    rest: list[float] = []
    for count in (1, 0, 3, 2):  # odd counts leave the second normal number of a pair waiting
        with standing(mine):
            found += draws(kind, count)
        with standing(theirs):
            rest += draws(kind, count)
    assert (found, rest) == (whole, other)


@pytest.mark.parametrize("kind", ["python", "numpy", pytest.param("torch", marks=needs_torch)])
def test_those_that_stood_before_are_put_back(kind: str) -> None:
    seed_global_generators(EPISODE)
    whole = draws(kind, 6)
    seed_global_generators(EPISODE)
    found = draws(kind, 3)
    with standing(Generators(7)):
        draws(kind, 3)
    assert found + draws(kind, 3) == whole


@pytest.mark.parametrize("kind", ["python", "numpy", pytest.param("torch", marks=needs_torch)])
def test_a_draw_is_noticed_and_none_is_not(kind: str) -> None:
    if kind == "torch":
        draws(kind, 1)  # so that it is imported
    mine = Generators(7)
    for count in (0, 1, 0, 1, 1, 0, 2):
        with standing(mine) as drawn:
            draws(kind, count)
        assert drawn.drew is bool(count)


def test_an_exception_puts_back_too() -> None:
    seed_global_generators(EPISODE)
    expected = np.random.get_state()[1].tolist()  # type: ignore[index, union-attr]
    with pytest.raises(ValueError, match="a must"), standing(Generators(7)):
        np.random.choice(int(np.random.rand() - 5))
    assert np.random.get_state()[1].tolist() == expected  # type: ignore[index, union-attr]


def test_a_generator_of_another_kind_has_streams_too() -> None:
    if not hasattr(np.random, "set_bit_generator"):
        pytest.skip("this NumPy cannot replace its global generator")
    before = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(3))
        with standing(Generators(7)):
            whole = draws("numpy", 4)
        mine = Generators(7)
        found: list[float] = []
        for _ in range(2):
            with standing(mine):
                found += draws("numpy", 2)
            draws("numpy", 1)
        assert found == whole
    finally:
        np.random.set_bit_generator(before)


@needs_torch
def test_torch_is_seeded_when_it_is_imported_late_and_not_imported_for_it() -> None:
    code = """
import sys
from robotrials.plan.global_random import Generators, standing
mine = Generators(7)
with standing(mine):
    assert "torch" not in sys.modules
    import torch
    assert type(torch.__spec__.loader).__name__ != "_SeedingLoader"
    late = torch.randn(2).tolist()
with standing(Generators(7)) as drawn:
    early = torch.randn(2).tolist()
assert late == early and drawn.drew
with standing(Generators(9)) as drawn:
    pass
assert not drawn.drew
with standing(Generators(8)):
    assert torch.randn(2).tolist() != late
"""
    subprocess.run([sys.executable, "-c", code], check=True)


class State(list[float]):
    """A generator's state, as a tensor: its seed and how often it was drawn from."""


class FakeCuda:
    """``torch.cuda`` with two devices: what is seeded before CUDA is started counts from then on."""

    def __init__(self) -> None:
        self.started = False
        self.queued = 0
        self.states = [State([0, 0]), State([0, 0])]

    def device_count(self) -> int:
        return 2

    def is_initialized(self) -> bool:
        return self.started

    def manual_seed_all(self, seed: int) -> None:
        self.queued = seed
        if self.started:
            self.states = [State([seed, 0]) for _ in self.states]

    def get_rng_state_all(self) -> list[State]:
        return [State(state) for state in self.states]

    def set_rng_state_all(self, states: list[State]) -> None:
        self.states = [State(state) for state in states]

    def draw(self) -> list[float]:
        if not self.started:
            self.started = True
            self.manual_seed_all(self.queued)
        self.states[1][1] += 1
        return list(self.states[1])


class FakeGenerator:
    def __init__(self, device: object = "cpu") -> None:
        self.state = State([0, 0])

    def manual_seed(self, seed: int) -> FakeGenerator:
        self.state = State([seed, 0])
        return self

    def get_state(self) -> State:
        return self.state


class FakeTorch(ModuleType):
    def __init__(self) -> None:
        super().__init__("torch")
        self.default_generator, self.cuda = FakeGenerator(), FakeCuda()
        self.Generator = FakeGenerator

    def get_rng_state(self) -> State:
        return State(self.default_generator.state)

    def set_rng_state(self, state: State) -> None:
        self.default_generator.state = State(state)

    def equal(self, a: State, b: State) -> bool:
        return a == b

    def device(self, kind: str, index: int) -> str:
        return f"{kind}:{index}"


@pytest.mark.parametrize("started", [False, True])
def test_cudas_generators_have_streams_too_whenever_cuda_is_started(
    monkeypatch: pytest.MonkeyPatch, started: bool
) -> None:
    torch = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(global_random._Queued, "word", None)
    monkeypatch.setattr(global_random._Queued, "has_cuda", None)
    monkeypatch.setattr(global_random, "_standing", Generators(0))
    if started:
        torch.cuda.draw()
    mine, theirs = Generators(7), Generators(8)
    found = []
    for generators in (mine, theirs):  # before anybody has drawn
        with standing(generators) as drawn:
            pass
        assert not drawn.drew
    for generators in (mine, mine, theirs, mine):
        with standing(generators) as drawn:
            found.append(torch.cuda.draw())
        assert drawn.drew
        with standing(theirs) as drawn:
            pass
        assert not drawn.drew
    assert found == [[7, 1], [7, 2], [8, 1], [7, 3]]
