from __future__ import annotations

import os

import pytest

from robotrials.machine import threads


def fake_files(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    monkeypatch.setattr(threads, "_read", files.get)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))


def test_affinity_counts_without_a_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_files(monkeypatch, {})
    assert threads.available_cores() == 16


def test_quota_of_cgroup_v2_cuts_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_files(monkeypatch, {"/proc/self/cgroup": "0::/job", "/sys/fs/cgroup/job/cpu.max": "350000 100000"})
    assert threads.available_cores() == 3


def test_quota_of_a_parent_group_binds(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/proc/self/cgroup": "0::/a/b", "/sys/fs/cgroup/a/b/cpu.max": "max 100000"}
    fake_files(monkeypatch, {**files, "/sys/fs/cgroup/a/cpu.max": "200000 100000"})
    assert threads.available_cores() == 2


def test_quota_of_cgroup_v1_cuts_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = "/sys/fs/cgroup/cpu"
    files = {f"{folder}/cpu.cfs_quota_us": "150000", f"{folder}/cpu.cfs_period_us": "100000"}
    fake_files(monkeypatch, files)
    assert threads.available_cores() == 1


def test_no_quota_is_written_as_minus_one_in_v1(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = "/sys/fs/cgroup/cpu"
    fake_files(monkeypatch, {f"{folder}/cpu.cfs_quota_us": "-1", f"{folder}/cpu.cfs_period_us": "100000"})
    assert threads.available_cores() == 16


def test_every_pool_is_limited() -> None:
    limits = threads.thread_limits(1)
    assert set(limits.values()) == {"1"}
    assert {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LP_NUM_THREADS"} <= limits.keys()
