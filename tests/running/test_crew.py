"""How many workers a run gets by itself."""

from __future__ import annotations

import pytest

from robotrials.running import crew


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files that the machine shows, by path; 4 cores."""
    files = {"/proc/meminfo": "MemTotal: 99999999 kB\nMemAvailable: 30000000 kB\n"}
    monkeypatch.setattr(crew, "_read", files.get)
    monkeypatch.setattr(crew, "available_cores", lambda: 4)
    return files


def test_a_policy_in_the_worker_gets_one_worker_a_core(machine: dict[str, str]) -> None:
    assert crew.auto_workers(served=False) == 4


def test_a_served_policy_gets_workers_that_wait_while_every_core_simulates(machine: dict[str, str]) -> None:
    assert crew.auto_workers(served=True) == 10


def test_little_memory_means_fewer_workers_but_one_a_core(machine: dict[str, str]) -> None:
    machine["/proc/meminfo"] = "MemAvailable: 10000000 kB\n"
    assert crew.auto_workers(served=True) == 6
    machine["/proc/meminfo"] = "MemAvailable: 1000000 kB\n"
    assert crew.auto_workers(served=True) == 4


@pytest.mark.parametrize(
    ("limit", "used"),
    [
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ],
)
def test_the_control_group_s_limit_counts_less_what_is_used(machine: dict[str, str], limit: str, used: str) -> None:
    machine[limit], machine[used] = "9000000000", "1000000000"
    assert crew.available_memory() == 8e9
    machine[limit] = "max"
    assert crew.available_memory() == 30000000 * 1024


def test_a_policy_on_a_gpu_gets_one_server(machine: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert crew.auto_servers({"device": "cuda"}, True, 12) == 1
    monkeypatch.setattr(crew.glob, "glob", lambda pattern: ["/dev/nvidia0"] if "nvidia" in pattern else [])
    assert crew.auto_servers({}, True, 12) == 1


@pytest.mark.parametrize(
    ("cores", "looks_every_step", "workers", "servers"),
    [(1, True, 9, 1), (2, False, 10, 1), (2, True, 10, 2), (8, False, 16, 4), (16, False, 24, 6), (16, False, 4, 1)],
)
def test_on_the_processor_servers_grow_with_the_cores_as_far_as_workers_keep_them_busy(
    machine: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    looks_every_step: bool,
    workers: int,
    servers: int,
) -> None:
    monkeypatch.setattr(crew, "available_cores", lambda: cores)
    assert crew.auto_servers({"device": "cpu"}, looks_every_step, workers) == servers


def test_servers_share_half_of_the_memory(machine: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "available_cores", lambda: 16)
    machine["/proc/meminfo"] = "MemAvailable: 13000000 kB\n"
    assert crew.auto_servers({"device": "cpu"}, True, 24) == 3
