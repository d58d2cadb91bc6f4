"""What a benchmark's own, isolated environment holds, so that simulators whose pins clash can stand side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

GL_LIBRARIES = ("libegl1", "libegl-mesa0", "libgl1", "libgl1-mesa-dri", "libosmesa6")
"""Debian packages with which MuJoCo renders without a display."""
OPENCV_LIBRARIES = ("libgl1", "libglib2.0-0")
"""Debian packages that OpenCV loads when it is imported."""


@dataclass(frozen=True)
class Installation:
    """The pins under which a benchmark was tested; ``robotrials bench install NAME`` makes an environment of them.

    ``requirements`` are pip requirements with exact versions. ``python`` is the range of versions they exist for, as in
    packaging (``>=3.11,<3.13``). ``system`` are Debian packages that must be there before it renders. ``unavailable``
    is set for a benchmark that no package index holds: why, and where its own instructions are.

    ``prepare`` names a script in ``robotrials/environments/prepare/`` that is run once, after the packages are
    installed, as ``bash SCRIPT PREFIX``: it may write below PREFIX only, needs no root, and exits other than 0, with a
    line on stderr that says why, where it cannot do its work. ``environment`` are variables that the benchmark's
    workers start with, unless the user has set them: ``{prefix}`` in a value stands for the environment's folder, and
    such a variable is set only for workers that run in one that ``bench install`` has made.
    """

    requirements: tuple[str, ...] = ()
    python: str = ">=3.10"
    system: tuple[str, ...] = ()
    unavailable: str = ""
    prepare: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
