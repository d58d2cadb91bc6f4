"""Names in another project's observation, nested or flat, and the LeRobot keys that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robotrials.errors import ConfigError, ContractError

Paths = dict[tuple[str, ...], str]
"""Where in the foreign observation, and which of our keys."""

ECHO = "robotrials/request"
"""Name of the number that our own openpi server repeats, and of the entry of its metadata that says so."""

_OPENPI_CAMERAS = ("observation/image", "observation/wrist_image")


def read_keys(keys: Mapping[str, Any], flag: str) -> Paths:
    """``{"images": {"top": "observation.image"}, "prompt": "task"}`` as paths.

    Raises:
        ConfigError: a value that is neither a name nor a map of names, or no name at all.
    """
    paths: Paths = {}
    for name, value in keys.items():
        if not isinstance(name, str):
            raise ConfigError(f"{flag} maps names, which are text, got {name!r}")
        if isinstance(value, Mapping):
            paths.update({(name, *path): key for path, key in read_keys(value, flag).items()})
        elif isinstance(value, str):
            paths[(name,)] = value
        else:
            raise ConfigError(f"{flag} maps the server's names to observation keys, got {name!r}: {value!r}")
    if not paths:
        raise ConfigError(f"{flag} names no key")
    return paths


def default_openpi_keys(keys: Sequence[str], images: Sequence[str]) -> dict[str, str]:
    """The names of openpi's LIBERO example: ``observation/image``, ``observation/wrist_image``, ``observation/state``,
    ``prompt``; further cameras and vectors by their own names after ``observation/``."""
    named = {_OPENPI_CAMERAS[n] if n < 2 else _after_slash(key): key for n, key in enumerate(images)}
    named |= {_after_slash(key): key for key in keys if key not in images and key != "task"}
    return {**named, "prompt": "task"}


def place(paths: Paths, observation: Mapping[str, Any]) -> dict[str, Any]:
    """Our ``observation`` under the foreign names."""
    placed: dict[str, Any] = {}
    for path, key in paths.items():
        inner = placed
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = observation[key]
    return placed


def pick(paths: Paths, message: Mapping[Any, Any]) -> dict[str, Any]:
    """A foreign observation under our names.

    Raises:
        ContractError: a name is missing; the message lists what is there.
    """
    picked: dict[str, Any] = {}
    for path, key in paths.items():
        found: Any = message
        for name in path:
            if not isinstance(found, Mapping) or name not in found:
                have = ", ".join(sorted(str(k) for k in message)) or "nothing"
                raise ContractError(f"the observation lacks {'.'.join(path)} (for {key}); it holds {have}")
            found = found[name]
        picked[key] = found
    return picked


def _after_slash(key: str) -> str:
    short = key.removeprefix("observation.images.").removeprefix("observation.")
    return f"observation/{short}"
