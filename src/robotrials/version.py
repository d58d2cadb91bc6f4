"""The version of this package, and where its files are."""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"

PACKAGE = Path(__file__).resolve().parent
"""The folder that holds the modules of ``robotrials``."""
