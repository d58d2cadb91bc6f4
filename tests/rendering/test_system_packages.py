from __future__ import annotations

import os
import shutil

import pytest

from robotrials.rendering import system_packages
from robotrials.rendering.system_packages import install_line, missing


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="needs dpkg")
def test_what_dpkg_does_not_have_is_missing() -> None:
    assert missing(["dpkg", "no-such-package-here"]) == ["no-such-package-here"]


def test_a_library_that_came_some_other_way_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_packages, "_installed", lambda packages: set())
    monkeypatch.setattr(system_packages, "find_library", {"EGL": "libEGL.so.1"}.get)
    assert missing(["libegl1", "libosmesa6"]) == ["libosmesa6"]


def test_nothing_wanted_is_nothing_missing() -> None:
    assert missing([]) == []


def test_the_line_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "apt-get install -y --no-install-recommends libegl1 libosmesa6"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert install_line(["libegl1", "libosmesa6"]) == line
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert install_line(["libegl1", "libosmesa6"]) == f"sudo {line}"
