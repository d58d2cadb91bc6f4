"""``--config_path``: a YAML (or JSON) file with the same names as the flags, nested or dotted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError
from robotrials.plan.config import SETTINGS
from robotrials.plan.strict_yaml import read_yaml

SECTIONS = ("policy", "env", *SETTINGS)
MAPS = ("rename_map",)
"""Names whose value is itself a map; any other map is a section, so that a misspelt one is met by name."""


def read_config_file(path: Path) -> dict[str, Any]:
    """The file's values under the flags' dotted names: ``{"eval.n_episodes": 10, "policy.type": "expert"}``.

    Names and types are not checked here; the flags' own checks are applied to them by the caller.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or is not a map of names to values.
    """
    content = read_yaml(path, "--config_path=")
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path} must hold a map of flag names to values, not a {type(content).__name__}")
    return _flatten(content, path)


def _flatten(content: Mapping[Any, Any], path: Path) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping) and key not in MAPS:
            items = {f"{key}.{name}": inner for name, inner in _inside(value).items()}
        elif key not in SECTIONS:
            items = {str(key): value}
        elif value is None:
            items = {}
        else:
            raise ConfigError(f"{path}: {key} must be a map such as {{type: {value}}}, got {value!r}")
        for name, inner in _deeper(items).items():
            name = name.replace("-", "_")
            if name in flat:
                raise ConfigError(f"{path}: {name} is given twice")
            flat[name] = inner
    return flat


def _deeper(items: Mapping[str, Any]) -> dict[str, Any]:
    """With the sections within ``eval`` flat, too: LeRobot has ``eval: {docker: {image: ...}}``."""
    flat: dict[str, Any] = {}
    for name, value in items.items():
        is_section = name.startswith("eval.") and isinstance(value, Mapping)
        flat |= {f"{name}.{inner}": its for inner, its in value.items()} if is_section else {name: value}
    return flat


def _inside(section: Mapping[Any, Any]) -> dict[Any, Any]:
    """A section's names and values. A run's own eval_config.json keeps ``--policy.*`` and ``--env.*`` under
    ``options``, and writes null for what was not said: read so, it starts the same run."""
    options = section.get("options")
    if not isinstance(options, Mapping):
        return dict(section)
    said = {name: value for name, value in section.items() if name != "options" and value is not None}
    return {**said, **options}
