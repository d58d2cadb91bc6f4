"""What ``robotrials check-env`` tries. ``check`` and ``Report`` are those of ``process``, imported when first used."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("check", "Report"):
        from robotrials.benchmarks.conformance import process

        return getattr(process, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
