"""Strings and YAML values into typed dataclasses, with errors that name the flag and the nearest right one."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from robotrials.errors import ConfigError
from robotrials.plan.flow import read_flow

T = TypeVar("T")


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> str:
    """`` (did you mean X?)`` when one of ``known`` is like ``name``, from ``least`` to 1, else an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=least)
    return f" (did you mean {close[0]}?)" if close else ""


def build(cls: type[T], values: Mapping[str, Any], prefix: str) -> T:
    """An instance of dataclass ``cls`` from ``values``; ``prefix`` (``--env.``) is how messages call its fields.

    Raises:
        ConfigError: an unknown field (with the nearest known one), or a value of another type.
    """
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in fields:
            # A prefix that is no flag (the name of a file) says where, and is not repeated before every option.
            shown = prefix if prefix.startswith("--") else ""
            flags = [shown + field for field in fields]
            hint = nearest(shown + name, flags) if nearest(name, fields) else ""
            raise ConfigError(f"unknown option {prefix}{name}{hint}; known: {', '.join(flags)}")
        given[name] = coerce(value, hints[name], prefix + name)
        choices = fields[name].metadata.get("choices")
        if choices and given[name] not in choices:
            raise ConfigError(f"{prefix}{name} must be one of {', '.join(map(str, choices))}; got {value!r}")
    return cls(**given)


def coerce(value: Any, hint: Any, flag: str) -> Any:
    """``value`` as type ``hint``; text is read as a command line means it (``true``, ``null``, maps as in ``flow``)."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        is_null = value is None or (isinstance(value, str) and value.lower() in ("null", "none"))
        if is_null and type(None) in args:
            return None
        return coerce(value, next(a for a in args if a is not type(None)), flag)
    if hint is Any:
        return value
    if hint is bool:
        text = str(value).lower()
        if text in ("true", "1", "yes", "on"):
            return True
        if text in ("false", "0", "no", "off"):
            return False
        raise ConfigError(f"{flag} must be true or false, got {value!r}")
    if hint is int:
        return _number(value, int, "a whole number", flag)
    if hint is float:
        return _number(value, float, "a number", flag)
    if hint is str:
        if isinstance(value, (list, tuple)):
            return ",".join(map(str, value))
        if isinstance(value, (dict, bool)) or value is None:
            raise ConfigError(f"{flag} must be text, got {value!r}")
        return str(value)
    if hint is Path:
        return Path(value).expanduser()
    if origin is tuple or origin is list:
        items = [item.strip() if isinstance(item, str) else item for item in _items(value, flag)]
        made = [coerce(item, args[0], flag) for item in items if item != ""]
        return tuple(made) if origin is tuple else made
    if origin in (dict, Mapping) or hint in (dict,) or getattr(origin, "__name__", "") == "Mapping":
        return _mapping(value, flag)
    raise TypeError(f"no rule to read {flag} as {hint!r}")


def _number(value: Any, kind: type, words: str, flag: str) -> Any:
    if isinstance(value, bool):
        raise ConfigError(f"{flag} must be {words}, got {value!r}")
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):  # of infinity there is no whole number
        raise ConfigError(f"{flag} must be {words}, got {value!r}") from None
    if kind is int and isinstance(value, float) and value != number:
        raise ConfigError(f"{flag} must be {words}, got {value!r}")
    return number


def _mapping(value: Any, flag: str) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = read_flow(value)
        except ValueError as error:
            raise ConfigError(f'{flag} must be a map such as {{"a": "b"}} or {{a: b}}: {error}') from None
    if not isinstance(value, Mapping):
        raise ConfigError(f"{flag} must be a map such as {{a: b}}, got {value!r}")
    return dict(value)


def _items(value: Any, flag: str) -> list[Any]:
    """What a list option holds: ``a,b``, ``[a, b]`` or ``["a", "b"]``."""
    if not isinstance(value, str):
        return list(value)
    if not value.lstrip().startswith("["):
        return value.split(",")
    try:
        return list(read_flow(value))
    except ValueError as error:
        raise ConfigError(f"{flag} must be a list such as a,b or [a, b]: {error}") from None
