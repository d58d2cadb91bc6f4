"""Every benchmark that is installed here keeps the promises of check-env: the real simulator, with small pictures."""

from __future__ import annotations

import os
from typing import Any

import pytest

from robotrials.benchmarks import registry
from robotrials.benchmarks.conformance.checks import CheckSettings
from robotrials.benchmarks.conformance.process import check
from robotrials.benchmarks.conformance.promises import PROMISES
from robotrials.plan.config import EnvChoice
from tests.conftest import REQUIRED

SMALL = {"observation_width": "64", "observation_height": "64"}
OPTIONS: dict[str, dict[str, Any]] = {
    "aloha": {"task": "AlohaTransferCube-v0,AlohaInsertion-v0", **SMALL},
    "gym": {"id": "Pendulum-v1", "success": "reward>=-0.01", "instruction": "Swing the pole up."},
    "gymnasium_robotics": {"task": "fetch", **SMALL},
    "libero": {"task": "libero_object", "task_ids": "0,1", **SMALL},
    "maniskill": {"task": "PickCube,StackCube", "visualization_width": "64", "visualization_height": "64", **SMALL},
    "metaworld": {"task": "push-v3,reach-v3", **SMALL},
    "pusht": SMALL,
    "robosuite": {"task": "Lift,Door", **SMALL},
}
"""Two tasks where there are two, so that one is built after the other."""
if LIBERO_PLUS := os.environ.get("LIBERO_PLUS_ROOT"):  # a checkout, with assets that no package index holds
    OPTIONS["libero_plus"] = {"task": "libero_object", "task_ids": "0,1", "root": LIBERO_PLUS, **SMALL}

SMOKE = CheckSettings(episodes=2, steps=10, memory=0)
WHOLE = CheckSettings(episodes=3, steps=60, memory=50, memory_seconds=240, tasks=2)


def here() -> list[str]:
    required = os.environ.get(REQUIRED)
    if required:
        return [required] if required in OPTIONS else []
    return [name for name in OPTIONS if registry.is_installed_here(benchmark(name))]


def benchmark(name: str) -> Any:
    return registry.benchmark_class(name) if name in registry.names() else _Absent


class _Absent:
    modules = ("a_simulator_that_is_not_here",)


@pytest.mark.parametrize("name", here())
def test_a_benchmark_keeps_its_promises(name: str) -> None:
    report = check(EnvChoice(name, OPTIONS[name]), SMOKE)
    assert not report.broken, report
    assert [finding.promise for finding in report.findings if finding.kept is None] in ([], ["memory"])
    assert [finding.promise for finding in report.findings] == list(PROMISES)


@pytest.mark.slow
@pytest.mark.parametrize("name", here())
def test_a_benchmark_keeps_its_promises_for_longer(name: str) -> None:
    report = check(EnvChoice(name, OPTIONS[name]), WHOLE)
    assert not report.broken, report
