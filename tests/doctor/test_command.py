from __future__ import annotations

import json

import pytest

from robotrials.benchmarks import inventory
from robotrials.cli.main import main
from robotrials.doctor import simulators
from robotrials.doctor.finding import Finding


@pytest.fixture(autouse=True)
def _only_pusht(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing every simulator takes a while; one shows that it is done."""
    monkeypatch.setattr(inventory, "names", lambda: ["pusht"])


def test_it_examines_all_and_ends_well_where_nothing_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor", "--json"])
    findings = json.loads(capsys.readouterr().out)
    checks = {finding["check"] for finding in findings}
    assert {"cores", "memory", "/dev/shm", "EGL", "OSMesa", "rendering", "versions (this Python)"} <= checks
    assert status == any(finding["level"] == "problem" for finding in findings)


def test_a_problem_is_shown_with_what_to_do_and_in_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(simulators, "examine", lambda: [Finding("pusht", "problem", "import fails", "install it anew")])
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "problem  pusht" in out
    assert "-> install it anew" in out


def test_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "pusht"]) == 1
    assert "takes no 'pusht'" in capsys.readouterr().err
