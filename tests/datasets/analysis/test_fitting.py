"""Several processes fit the same mixtures as one, and lose none when one of them ends."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from robotrials.datasets.analysis import fitting
from robotrials.datasets.analysis.fitting import Fitters, FittingJob
from robotrials.datasets.analysis.mixture import Mixture


def jobs(n: int) -> list[FittingJob]:
    rng = np.random.default_rng(0)
    far = np.repeat([0.0, 8.0], 30)[:, None, None]
    two = (rng.normal(size=(60, 3, 2)) + far).astype(np.float32)
    return [FittingJob(two if number % 2 else rng.normal(size=(40, 3, 2)), (7, number), 2) for number in range(n)]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The further processes, which are always worth it here."""
    seen: list[subprocess.Popen[bytes]] = []
    start = fitting._start

    def noted() -> subprocess.Popen[bytes]:
        seen.append(start())
        return seen[-1]

    monkeypatch.setattr(fitting, "_WORTH_S", 0.0)
    monkeypatch.setattr(fitting, "_start", noted)
    return seen


def alone(n: int) -> list[Mixture]:
    with Fitters() as fitters:
        return fitters.fit(jobs(n))


@pytest.fixture
def last(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process takes a job only after the others had time to."""
    take = fitting._next

    def slowly(todo: Any, done: Any) -> None:
        time.sleep(0.3)
        take(todo, done)

    monkeypatch.setattr(fitting, "_next", slowly)


@pytest.mark.usefixtures("last")
def test_three_processes_fit_what_one_does(started: list[subprocess.Popen[bytes]]) -> None:
    expected = alone(9)
    assert [mixture.modes for mixture in expected] == [1, 2, 1, 2, 1, 2, 1, 2, 1]
    with Fitters(3) as fitters:
        assert fitters.fit(jobs(1)) == expected[:1]
        assert started == []  # nothing was left to share
        assert fitters.fit(jobs(9)) == expected
        assert [child.poll() for child in started] == [None, None]
    assert [child.returncode for child in started] == [-9, -9]


@pytest.mark.usefixtures("last")
def test_what_a_process_takes_with_it_is_fitted_again(
    started: list[subprocess.Popen[bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    with Fitters(2) as fitters:
        fitters.fit(jobs(3))
        started[0].kill()
        started[0].wait()
        assert fitters.fit(jobs(4)) == alone(4)
        assert "ended with status -9" in caplog.text
        assert fitters.fit(jobs(4)) == alone(4)
    assert len(started) == 1  # it is not started again only to end again


@pytest.mark.usefixtures("last", "started")
def test_an_answer_that_is_none_is_an_error_and_not_computed_again_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "print('greetings', flush=True); input()"
    told = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    monkeypatch.setattr(fitting, "_start", lambda: subprocess.Popen([sys.executable, "-c", code], **told))
    with Fitters(2) as fitters, pytest.raises(ValueError, match="Expecting value"):
        fitters.fit(jobs(3))
