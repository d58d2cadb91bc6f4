"""Which OpenGL a worker renders with. MuJoCo reads MUJOCO_GL when it is imported, so a worker's environment must
hold it before the worker starts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from ctypes.util import find_library

from robotrials.errors import ConfigError

_OFFSCREEN = {"egl": "EGL", "osmesa": "OSMesa"}


_KNOWN = ("egl", "osmesa", "glfw", "glx", "cgl", "wgl", "disable", "disabled", "off", "false", "0", "no", "none", "")


def check_gl(environ: Mapping[str, str]) -> None:
    """
    Raises:
        ConfigError: MUJOCO_GL names what MuJoCo does not know; every worker would fail on import.
    """
    value = environ.get("MUJOCO_GL", "")
    if value.strip().lower() not in _KNOWN:
        raise ConfigError(f"MUJOCO_GL={value} is unknown to MuJoCo: set it to egl or osmesa, or unset it")


def gl_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables to add to a worker's environment: EGL where its library is found, else OSMesa, else nothing.

    What the user set wins, in MUJOCO_GL or in PYOPENGL_PLATFORM (MuJoCo refuses to be imported where the two differ).
    Both libraries render without a display. With neither, and off Linux, MuJoCo is left to its own choice.
    """
    if environ.get("MUJOCO_GL") or not sys.platform.startswith("linux"):
        return {}
    platform = environ.get("PYOPENGL_PLATFORM", "").lower()
    if platform:
        return {"MUJOCO_GL": platform} if platform in _OFFSCREEN else {}
    for backend, library in _OFFSCREEN.items():
        if find_library(library):
            return {"MUJOCO_GL": backend}
    return {}
