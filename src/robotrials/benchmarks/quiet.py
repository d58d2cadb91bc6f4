"""Imports that print: what they say tells their authors' news, and nothing that a person who evaluates could change."""

from __future__ import annotations

import os
import warnings


def keep_imports_quiet() -> None:
    """pygame greets, looks for a screen, and warns (now, or when something is first drawn) that it uses pkg_resources;
    packages of the Farama Foundation tell news."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
    try:
        from farama_notifications import notifications
    except ImportError:
        return
    notifications.clear()
