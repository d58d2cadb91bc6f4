from __future__ import annotations

import sys
from ctypes.util import find_library

import pytest

from robotrials.benchmarks.gl import gl_environment


def test_the_users_choice_is_left_alone() -> None:
    assert gl_environment({"MUJOCO_GL": "glfw"}) == {}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere MuJoCo chooses")
def test_mujoco_follows_the_platform_chosen_for_pyopengl() -> None:
    assert gl_environment({"PYOPENGL_PLATFORM": "osmesa"}) == {"MUJOCO_GL": "osmesa"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere MuJoCo chooses")
def test_the_first_library_that_is_there_is_chosen() -> None:
    there = [{"MUJOCO_GL": name} for name, library in (("egl", "EGL"), ("osmesa", "OSMesa")) if find_library(library)]
    assert gl_environment({}) == (there[0] if there else {})
