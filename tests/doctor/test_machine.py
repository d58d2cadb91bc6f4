from __future__ import annotations

from pathlib import Path

import pytest

from robotrials.doctor import machine

GB = 1_000_000_000


def make_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


MEMINFO = "MemTotal: 32000000 kB\nMemAvailable:   20000000 kB"

TREES = {
    "no limit": ({"proc/self/cgroup": "0::/"}, "20.5 GB available, bounded by the machine", "ok"),
    "v2, the parent's": (
        {
            "proc/self/cgroup": "0::/slurm/job7",
            "sys/fs/cgroup/slurm/job7/memory.max": "max",
            "sys/fs/cgroup/slurm/job7/memory.current": "1000",
            "sys/fs/cgroup/slurm/memory.max": str(6 * GB),
            "sys/fs/cgroup/slurm/memory.current": str(2 * GB),
        },
        "4.0 GB available, bounded by the cgroup /slurm",
        "ok",
    ),
    "v2, in a container": (
        {
            "proc/self/cgroup": "0::/docker/abc",
            "sys/fs/cgroup/memory.max": str(2 * GB),
            "sys/fs/cgroup/memory.current": str(GB // 2),
        },
        "1.5 GB available, bounded by the cgroup /",
        "warning",
    ),
    "v1": (
        {
            "proc/self/cgroup": "8:cpu,cpuacct:/x\n4:memory:/jobs/7",
            "sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes": str(3 * GB),
            "sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes": "0",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "0",
        },
        "3.0 GB available, bounded by the cgroup /jobs/7",
        "ok",
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_memory_is_what_the_tightest_limit_leaves(name: str, tmp_path: Path) -> None:
    files, what, level = TREES[name]
    finding = machine.memory(make_tree(tmp_path, {"proc/meminfo": MEMINFO, **files}))
    assert (finding.what, finding.level) == (what, level)
    assert bool(finding.todo) == (level == "warning")


def test_a_machine_that_tells_nothing_is_a_warning(tmp_path: Path) -> None:
    assert machine.memory(tmp_path).level == "warning"


def test_cores_that_may_not_be_used_are_told() -> None:
    assert machine.cores(4, 4).what.startswith("4 usable:")
    assert machine.cores(2, 64).what.startswith("2 usable of 64 (affinity, or a cgroup's quota)")


def test_shared_memory_that_is_not_mounted_is_a_problem(tmp_path: Path) -> None:
    assert machine.shared_memory(str(tmp_path / "nowhere")).level == "problem"
    assert machine.shared_memory("/dev/shm").check == "/dev/shm"


def test_this_machine_is_examined() -> None:
    assert [finding.check for finding in machine.examine()] == ["cores", "memory", "/dev/shm"]
