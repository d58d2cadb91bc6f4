"""YAML that people write for us, read so that a slip is met by its name. Not for workers, which have no PyYAML."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from robotrials.errors import ConfigError


class _StrictLoader(yaml.SafeLoader):
    """A safe loader that refuses a key given twice, where YAML's own rule is that the last one wins, silently; and an
    alias inside of what it names, which would be a map without an end. A date is text, as it is written: no option is
    one, and folders and names are called by them."""

    yaml_implicit_resolvers = {  # noqa: RUF012  as the base class declares it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            if event.anchor in self._open:
                raise yaml.composer.ComposerError(None, None, f"*{event.anchor} stands inside itself", event.start_mark)
            return super().compose_node(parent, index)
        anchor = self.peek_event().anchor  # type: ignore[no-untyped-call]
        self._open.append(anchor)
        try:
            return super().compose_node(parent, index)
        finally:
            self._open.pop()

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key} is given twice", key_node.start_mark)
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._open: list[str | None] = []


def read_yaml(path: Path, flag: str = "") -> Any:
    """What the YAML (or JSON) file holds. ``flag`` (``--config_path=``) is how a file that cannot be read is called.

    Raises:
        ConfigError: it cannot be read, or is not YAML; the message has line and column.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{flag}{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {_where(error)}") from None
    except RecursionError:
        raise ConfigError(f"{path} is not valid YAML: it is nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise ConfigError(f"{path} is not valid YAML: {error}") from None


def _where(error: yaml.YAMLError) -> str:
    """One line out of YAML's several: what is wrong, and where."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})" if mark else problem
