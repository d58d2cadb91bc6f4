"""Checks that several policies make of their options."""

from __future__ import annotations

from robotrials.errors import ConfigError


def at_least_one(name: str, value: int) -> int:
    """``value`` of ``--policy.<name>``; ConfigError when it is below 1."""
    if value < 1:
        raise ConfigError(f"--policy.{name} must be at least 1, got {value}")
    return value
