"""Tests never meet the environments that ``robotrials bench install`` has made for the person who runs them, and a
simulator that CI has installed is not skipped quietly."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Generator

import pytest

REQUIRED = "ROBOTRIALS_REQUIRED_SIMULATOR"
"""Names the benchmark whose simulator must be there: a skip for want of it is a failure."""


@pytest.fixture(scope="session", autouse=True)
def _own_home() -> Generator[None, None, None]:
    with tempfile.TemporaryDirectory(prefix="robotrials-home-") as home:
        before = os.environ.get("ROBOTRIALS_HOME")
        os.environ["ROBOTRIALS_HOME"] = home
        yield
        if before is None:
            del os.environ["ROBOTRIALS_HOME"]
        else:
            os.environ["ROBOTRIALS_HOME"] = before


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """A shell starts what it puts in the background with Ctrl-C ignored, and all that it starts inherits that; tests
    interrupt what they have started."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, None]:
    outcome = yield
    _no_quiet_skip(outcome.get_result())  # type: ignore[attr-defined]


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, None]:
    outcome = yield
    _no_quiet_skip(outcome.get_result())  # type: ignore[attr-defined]


def _no_quiet_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip for want of the required simulator into a failure; other reasons stand."""
    simulator = os.environ.get(REQUIRED)
    if not simulator or not report.skipped or hasattr(report, "wasxfail"):
        return
    from robotrials.benchmarks.registry import benchmark_class

    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    if any(name in reason for name in (simulator, *benchmark_class(simulator).modules)):
        report.outcome = "failed"
        report.longrepr = f"{simulator} is required here, and was not found: {reason}"
