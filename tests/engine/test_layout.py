"""How many workers a run gets by itself."""

from __future__ import annotations

import pytest

from robotrials.engine import layout


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What is left, in bytes; 4 cores."""
    left = {"bytes": 30e9}
    monkeypatch.setattr(layout, "available_memory", lambda: left["bytes"])
    monkeypatch.setattr(layout, "available_cores", lambda: 4)
    return left


def test_a_policy_in_the_worker_gets_one_worker_a_core(memory: dict[str, float]) -> None:
    assert layout.auto_workers(served=False) == 4


def test_a_served_policy_gets_workers_that_wait_while_every_core_simulates(memory: dict[str, float]) -> None:
    assert layout.auto_workers(served=True) == 10


def test_little_memory_means_fewer_workers_but_one_a_core(memory: dict[str, float]) -> None:
    memory["bytes"] = 10e9
    assert layout.auto_workers(served=True) == 6
    memory["bytes"] = 1e9
    assert layout.auto_workers(served=True) == 4


def test_a_policy_on_a_gpu_gets_one_server(memory: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    assert layout.auto_servers({"device": "cuda"}, True, 12) == 1
    monkeypatch.setattr(layout.glob, "glob", lambda pattern: ["/dev/nvidia0"] if "nvidia" in pattern else [])
    assert layout.auto_servers({}, True, 12) == 1


@pytest.mark.parametrize(
    ("cores", "looks_every_step", "workers", "servers"),
    [(1, True, 9, 1), (2, False, 10, 1), (2, True, 10, 2), (8, False, 16, 4), (16, False, 24, 6), (16, False, 4, 1)],
)
def test_on_the_processor_servers_grow_with_the_cores_as_far_as_workers_keep_them_busy(
    memory: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    looks_every_step: bool,
    workers: int,
    servers: int,
) -> None:
    monkeypatch.setattr(layout, "available_cores", lambda: cores)
    assert layout.auto_servers({"device": "cpu"}, looks_every_step, workers) == servers


def test_servers_share_half_of_the_memory(memory: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "available_cores", lambda: 16)
    memory["bytes"] = 13e9
    assert layout.auto_servers({"device": "cpu"}, True, 24) == 3
