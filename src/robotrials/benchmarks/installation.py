"""What a benchmark's own, isolated environment holds, so that simulators whose pins clash can stand side by side."""

from __future__ import annotations

from dataclasses import dataclass

GL_LIBRARIES = ("libegl1", "libegl-mesa0", "libgl1-mesa-dri", "libosmesa6")
"""Debian packages with which MuJoCo renders without a display."""


@dataclass(frozen=True)
class Installation:
    """The pins under which a benchmark was tested; ``robotrials bench install NAME`` makes an environment of them.

    ``requirements`` are pip requirements with exact versions. ``python`` is the range of versions they exist for, as in
    packaging (``>=3.11,<3.13``). ``system`` are Debian packages that must be there before it renders. ``unavailable``
    is set for a benchmark that no package index holds: why, and where its own instructions are.
    """

    requirements: tuple[str, ...] = ()
    python: str = ">=3.10"
    system: tuple[str, ...] = ()
    unavailable: str = ""
