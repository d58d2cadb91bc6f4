"""A software Vulkan driver for simulators that render with Vulkan, where there is no graphics card.

``prepare/lavapipe.sh PREFIX`` makes ``PREFIX/lavapipe/icd.json``; here this process is pointed to it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_CHOSEN_BY_USER = ("VK_ICD_FILENAMES", "VK_DRIVER_FILES")


def use_lavapipe(prefix: Path | None = None) -> Path | None:
    """Let Vulkan load the driver below ``prefix`` (this interpreter's environment), and no other.

    Nothing happens where that driver is not there, or the user has chosen one. Must be called before the first Vulkan
    instance is made. Returns the file that Vulkan will read, None if it is left to its own choice.
    """
    if any(os.environ.get(variable) for variable in _CHOSEN_BY_USER):
        return None
    folder = Path(prefix or sys.prefix) / "lavapipe"
    if not (folder / "icd.json").is_file():
        return None
    os.environ["VK_ICD_FILENAMES"] = str(folder / "icd.json")
    # Mesa keeps compiled shaders, by default in the home folder; here, the next worker finds them too.
    os.environ.setdefault("MESA_SHADER_CACHE_DIR", str(folder / "shaders"))
    _load_first(folder / "libraries")
    return folder / "icd.json"


def _load_first(names: Path) -> None:
    """Load the libraries that the system lacks: the driver finds those that are loaded, wherever they come from.

    The file lists them with what needs others first, so the last is loaded first.
    """
    for line in reversed(names.read_text().splitlines() if names.is_file() else []):
        ctypes.CDLL(line, mode=ctypes.RTLD_GLOBAL)
