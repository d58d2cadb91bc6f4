"""Strings and YAML values into typed dataclasses, with errors that name the flag and the nearest right one."""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from robotrials.errors import ConfigError
from robotrials.plan.flow import read_flow

T = TypeVar("T")

MAX_INT = 2**63 - 1
"""The largest whole number that messages, the ledger and datasets hold."""


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
        check_bounds(given[name], fields[name].metadata, prefix + name)
    return cls(**given)


def coerce(value: Any, hint: Any, flag: str) -> Any:
    """``value`` as type ``hint``; text is read as a command line means it (``true``, ``null``, maps as in ``flow``)."""
    value = _without_numpy(value)
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
        if not isinstance(value, (str, os.PathLike)):
            raise ConfigError(f"{flag} must be a path, got {value!r}; in YAML a name of digits needs quotes")
        return Path(value).expanduser()
    if origin is tuple or origin is list:
        if not isinstance(value, (str, list, tuple)):
            raise ConfigError(f"{flag} must be a list, or text with commas, got {value!r}")
        items = [item.strip() if isinstance(item, str) else item for item in _items(value, flag)]
        made = [coerce(item, args[0], flag) for item in items if item != ""]
        return tuple(made) if origin is tuple else made
    if hint is dict:
        return _mapping(value, flag)
    if origin is dict or getattr(origin, "__name__", "") == "Mapping":
        return plain(_mapping(value, flag), flag)
    raise TypeError(f"no rule to read {flag} as {hint!r}")


def _number(value: Any, kind: type, words: str, flag: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ConfigError(f"{flag} must be {words}, got {value!r}")
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):  # of infinity there is no whole number
        raise ConfigError(f"{flag} must be {words}, got {_short(value)}") from None
    if kind is int and isinstance(value, float) and value != number:
        raise ConfigError(f"{flag} must be {words}, got {value!r}")
    if kind is float and not math.isfinite(number):
        raise ConfigError(f"{flag} must be finite, got {_short(value)}")
    return number


def check_bounds(value: Any, bounds: Mapping[str, Any], flag: str) -> None:
    """Refuse a number outside of the ``least``, ``most`` and ``above`` of its ``option``; a whole one has at most 64
    bits. What is no number passes.

    Raises:
        ConfigError: the message names the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    least, most, above = (bounds.get(name) for name in ("least", "most", "above"))
    if isinstance(value, int) and abs(value) > MAX_INT:
        least, most = (-MAX_INT if least is None else least), (MAX_INT if most is None else most)
    fits = (least is None or value >= least) and (most is None or value <= most) and (above is None or value > above)
    if least == 0 and value < 0:
        raise ConfigError(f"{flag} must not be negative, got {value}")
    if not fits:
        words = [f"at least {least:,}"] if least is not None else [f"above {above:,}"] if above is not None else []
        words += [f"at most {most:,}"] if most is not None else []
        raise ConfigError(f"{flag} must be {' and '.join(words)}, got {value}")


def plain(value: Any, flag: str) -> Any:
    """``value`` as JSON and messages between processes hold it: NumPy's numbers and arrays become Python's, paths text.

    Raises:
        ConfigError: it holds something else, or a number that is not finite or has more than 64 bits.
    """
    value = _without_numpy(value)
    if isinstance(value, Mapping):
        return {_key(key, flag): plain(item, f"{flag}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{flag}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        number = _number(value, type(value), "a number", flag)
        check_bounds(number, {}, flag)
        return number
    raise ConfigError(f"{flag} must be numbers, text, true, false, null, lists and maps of these, got {value!r:.80}")


def _key(key: Any, flag: str) -> str:
    if not isinstance(key, str):
        raise ConfigError(f"{flag} must have names as keys, got {key!r}; in YAML a name of digits needs quotes")
    return key


def _without_numpy(value: Any) -> Any:
    """NumPy's number as Python's, and its array as lists; anything else as it is."""
    # Told by what it has: importing NumPy would take longer than the rest of a command line.
    return value.tolist() if hasattr(value, "tolist") and hasattr(value, "dtype") else value


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:60]}... ({len(shown):,} characters)"


def _mapping(value: Any, flag: str) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = read_flow(value)
        except (ValueError, RecursionError) as error:
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
