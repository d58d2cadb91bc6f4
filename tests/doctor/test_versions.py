from __future__ import annotations

import sys
from importlib.metadata import version

import pytest

from robotrials.doctor.simulators import installed_in
from robotrials.doctor.versions import CLASHES, examine, packages


@pytest.mark.parametrize(
    ("installed", "clashing"),
    [
        ({"metaworld": "3.0.0", "mujoco": "4.0.0"}, ["metaworld"]),
        ({"metaworld": "3.1.1", "mujoco": "3.3.0"}, []),
        ({"robosuite": "1.5.2", "mujoco": "4.0.0rc1"}, ["robosuite"]),
        ({"gymnasium-robotics": "1.4.2", "mujoco": "3.17.0"}, ["gymnasium-robotics"]),
        ({"gymnasium-robotics": "1.4.2", "mujoco": "3.10.0"}, []),
        ({"mujoco": "3.3.0", "mujoco-core": "4.0.0"}, ["mujoco"]),
        ({"mujoco": "4.0.0", "mujoco-core": "4.0.0"}, []),
        ({"mplib": "0.1.1", "numpy": "2.4.6"}, ["mplib"]),
        ({"mplib": "0.1.1", "numpy": "1.26.4"}, []),
        ({"numpy": "2.4.6"}, []),
    ],
)
def test_the_table_knows_what_was_met(installed: dict[str, str], clashing: list[str]) -> None:
    found = [finding for finding in examine("here", installed) if finding.level == "problem"]
    assert [finding.what.split()[0] for finding in found] == clashing
    assert all(finding.todo for finding in found)


def test_every_row_says_what_happens_and_what_to_do() -> None:
    assert all(clash.what and clash.todo and clash.versions and clash.other_versions for clash in CLASHES)


def test_an_interpreter_is_asked_for_what_it_has() -> None:
    assert installed_in(sys.executable, ["numpy", "no-such-distribution"]) == {"numpy": version("numpy")}
    assert installed_in("/no/such/python", packages()) == {}
