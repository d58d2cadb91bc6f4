"""``--config_path``: a YAML (or JSON) file with the same names as the flags, nested or dotted."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from robotrials.errors import ConfigError
from robotrials.plan.config import SETTINGS

SECTIONS = ("policy", "env", *SETTINGS)
MAPS = ("rename_map",)
"""Names whose value is itself a map; any other map is a section, so that a misspelt one is met by name."""


class _StrictLoader(yaml.SafeLoader):
    """A safe loader that refuses a key given twice: YAML's own rule is that the last one wins, silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key} is given twice", key_node.start_mark)
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)


def read_config_file(path: Path) -> dict[str, Any]:
    """The file's values under the flags' dotted names: ``{"eval.n_episodes": 10, "policy.type": "expert"}``.

    Names and types are not checked here; the flags' own checks are applied to them by the caller.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or is not a map of names to values.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config_path={path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        content = yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {_where(error)}") from None
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
        for name, inner in items.items():
            name = name.replace("-", "_")
            if name in flat:
                raise ConfigError(f"{path}: {name} is given twice")
            flat[name] = inner
    return flat


def _inside(section: Mapping[Any, Any]) -> dict[Any, Any]:
    """A section's names and values. A run's own eval_config.json keeps ``--policy.*`` and ``--env.*`` under
    ``options``, and writes null for what was not said: read so, it starts the same run."""
    options = section.get("options")
    if not isinstance(options, Mapping):
        return dict(section)
    said = {name: value for name, value in section.items() if name != "options" and value is not None}
    return {**said, **options}


def _where(error: yaml.YAMLError) -> str:
    """One line out of YAML's several: what is wrong, and where."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})" if mark else problem
