"""What the chaos suite shares: how long it goes on, the seed it draws from, undisturbed runs to compare with."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.chaos.runs import METAWORLD, PUSHT, TOY, ChaosRun, Outcomes, outcomes

FULL = os.environ.get("ROBOTRIALS_CHAOS", "") == "full"
"""``make chaos``; otherwise the short form, with the same faults and fewer of each."""
SEED = int(os.environ.get("ROBOTRIALS_CHAOS_SEED") or (secrets.randbelow(10**6) if FULL else 7))

_CASES: dict[str, tuple[tuple[str, ...], int]] = {"toy": (TOY, 40), "metaworld": (METAWORLD, 6), "pusht": (PUSHT, 6)}


def pytest_report_header() -> str:
    form = "full" if FULL else "short"
    return f"chaos: {form} form; ROBOTRIALS_CHAOS_SEED={SEED} repeats its draws"


@pytest.fixture
def full() -> bool:
    return FULL


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Draws of this test alone, so that it can be repeated alone. The seed is shown when the test fails."""
    print(f"ROBOTRIALS_CHAOS_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of a short name: paths of sockets end at 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="chaos-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def make_run(folder: Path) -> Iterator[Callable[..., ChaosRun]]:
    """Runs in ``folder`` (or a folder in it); what they leave is ended."""
    made: list[ChaosRun] = []

    def make(flags: Sequence[str], name: str = "", directory: Path | None = None) -> ChaosRun:
        place = folder / name
        place.mkdir(exist_ok=True)
        made.append(ChaosRun(place, (*flags, f"--env.scratch={place}") if TOY[1] in flags else flags, directory))
        return made[-1]

    yield make
    for run in made:
        run.end()


@pytest.fixture(scope="session")
def reference() -> Iterator[Callable[[str], Outcomes]]:
    """The outcomes of a case, by one worker that nobody disturbs."""
    place = Path(tempfile.mkdtemp(prefix="chaos-"))
    known: dict[str, Outcomes] = {}

    def outcomes_of(case: str) -> Outcomes:
        if case not in known:
            flags, n = _CASES[case]
            run = ChaosRun(place / case, flags)
            run.begin("--eval.batch_size=1", f"--eval.n_episodes={n}")
            assert run.wait() == 0, run.said
            known[case] = outcomes(run.directory)
        return known[case]

    yield outcomes_of
    shutil.rmtree(place, ignore_errors=True)
