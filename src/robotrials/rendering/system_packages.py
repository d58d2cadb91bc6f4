"""Which Debian packages are missing, and the exact line that installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from ctypes.util import find_library

_LIBRARY = {
    "libegl1": "EGL",
    "libosmesa6": "OSMesa",
    "libgl1": "GL",
    "libgles2": "GLESv2",
    "libglib2.0-0": "glib-2.0",
    "libvulkan1": "vulkan",
}
"""Libraries by which a package is known to be there where another package, or none, has brought them."""


def missing(packages: Iterable[str]) -> list[str]:
    """Those of ``packages`` that dpkg does not have installed and whose library is not found either.

    Without dpkg only those are told whose library is known.
    """
    wanted = list(packages)
    installed = _installed(wanted)
    lacking = []
    for package in wanted:
        library = _LIBRARY.get(package)
        if package in installed or (library and find_library(library)):
            continue
        if library or shutil.which("dpkg-query"):
            lacking.append(package)
    return lacking


def install_line(packages: Iterable[str]) -> str:
    """``sudo apt-get install ...``, without sudo for root."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get install -y --no-install-recommends {' '.join(packages)}"


def _installed(packages: list[str]) -> set[str]:
    if not packages or not shutil.which("dpkg-query"):
        return set()
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages],
        capture_output=True,
        text=True,
        check=False,  # it fails where one is unknown, having answered for the others
    )
    words = (line.split() for line in done.stdout.splitlines())
    return {word[0] for word in words if len(word) == 2 and word[1] == "installed"}
