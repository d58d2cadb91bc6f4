"""Versions that are known not to work together, as a table. Each was met by running it (MuJoCo 3.3.0 to 4.0.0)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from robotrials.doctor.finding import OK, PROBLEM, Finding
from robotrials.environments.interpreters import in_range


@dataclass(frozen=True)
class Clash:
    """``package`` in the range ``versions`` does not work with ``other`` in ``other_versions``."""

    package: str
    versions: str
    other: str
    other_versions: str
    what: str
    todo: str


_FRESH = "in a fresh environment, since MuJoCo 4 leaves files behind that break a downgrade: pip install"

CLASHES = (
    Clash(
        package="metaworld",
        versions="<=3.1.1",
        other="mujoco",
        other_versions=">=4",
        what="none of its tasks can be built",
        todo=f'{_FRESH} "mujoco>=3.3.0,<3.9"',
    ),
    Clash(
        package="robosuite",
        versions="<=1.5.2",
        other="mujoco",
        other_versions=">=4",
        what="every environment raises AssertionError",
        todo=f'{_FRESH} "mujoco==3.3.0"',
    ),
    Clash(
        package="gymnasium-robotics",
        versions="<=1.4.2",
        other="mujoco",
        other_versions=">=3.17",
        what="Fetch and Hand tasks cannot be built (the type of a joint)",
        todo=f'{_FRESH} "mujoco>=3.3.0,<3.11"',
    ),
    Clash(
        package="mujoco",
        versions="<4",
        other="mujoco-core",
        other_versions=">=4",
        what="it was downgraded in place, and import looks for libmujoco.so.4",
        todo="make a fresh environment, for instance with robotrials bench install",
    ),
    Clash(
        package="mplib",
        versions="<=0.1.1",
        other="numpy",
        other_versions=">=2",
        what="ManiSkill's motion planners end the process (segmentation fault)",
        todo='pip install "numpy<2" "opencv-python<4.12"',
    ),
)


def packages() -> list[str]:
    """All distributions that the table speaks of."""
    return sorted({name for clash in CLASHES for name in (clash.package, clash.other)})


def examine(where: str, installed: Mapping[str, str]) -> list[Finding]:
    """The clashes in one interpreter; one finding that all is well where there are none. ``installed``: distribution to
    version, of what is there."""
    found = [
        Finding(
            f"versions ({where})",
            PROBLEM,
            f"{clash.package} {installed[clash.package]} with {clash.other} {installed[clash.other]}: {clash.what}",
            clash.todo,
        )
        for clash in clashes(installed)
    ]
    known = [f"{name} {installed[name]}" for name in packages() if name in installed]
    return found or ([Finding(f"versions ({where})", OK, ", ".join(known))] if known else [])


def clashes(installed: Mapping[str, str]) -> Iterable[Clash]:
    """Rows of the table that apply."""
    for clash in CLASHES:
        if clash.package in installed and clash.other in installed:
            mine, other = _numbers(installed[clash.package]), _numbers(installed[clash.other])
            if in_range(mine, clash.versions) and in_range(other, clash.other_versions):
                yield clash


def _numbers(version: str) -> tuple[int, ...]:
    """(3, 17, 0) of 3.17.0, 3.17.0rc1 or 3.17.0+cpu."""
    return tuple(int(part) for part in re.match(r"[\d.]*", version)[0].strip(".").split(".") if part)  # type: ignore[index]
