"""Frozen dataclasses to plain maps and back, with every field checked: the shape of all that crosses a process border.

Only what messages need: ``int float str bool None bytes``, enums by value, optional values, tuples, string-keyed
mappings, and dataclasses of these. A peer's bytes can therefore become nothing but data of the declared types.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from robotrials.errors import WireError

T = TypeVar("T")
Decoder = Callable[[Any], Any]
Encoder = Callable[[Any], Any]


def to_plain(value: Any) -> dict[str, Any]:
    """The fields of dataclass ``value`` as maps, lists and scalars that msgpack can pack."""
    return _encoder(type(value))(value)  # type: ignore[no-any-return, arg-type]


def from_plain(cls: type[T], value: Any) -> T:
    """The dataclass ``cls`` that ``value`` describes.

    Raises:
        WireError: a missing, unknown or wrongly typed field; the message names it.
    """
    return _decoder(cls)(value)  # type: ignore[no-any-return, arg-type]


@cache
def _encoder(hint: Any) -> Encoder:
    """Made once for each type: most of a message's fields need nothing done to them."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        fields = [(f.name, _encoder(hints[f.name])) for f in dataclasses.fields(hint)]
        as_is = tuple(name for name, encode in fields if encode is _same)
        other = tuple((name, encode) for name, encode in fields if encode is not _same)

        def encode_fields(value: Any) -> dict[str, Any]:
            plain = {name: getattr(value, name) for name in as_is}
            for name, encode in other:
                plain[name] = encode(getattr(value, name))
            return plain

        return encode_fields
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda value: value.value
    if origin in (typing.Union, types.UnionType):
        inner = _encoder(next(a for a in args if a is not type(None)))
        return inner if inner is _same else lambda value: None if value is None else inner(value)
    if origin is tuple:
        each = _encoder(args[0])
        return _same if each is _same else lambda value: [each(item) for item in value]
    if origin is not None and issubclass(origin, Mapping):
        item_of = _encoder(args[1])
        return dict if item_of is _same else lambda value: {key: item_of(item) for key, item in value.items()}
    return _same


def _same(value: Any) -> Any:
    return value


@cache
def _decoder(hint: Any) -> Decoder:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return _plain
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _dataclass_decoder(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum_decoder(hint)
    if origin in (typing.Union, types.UnionType):
        options = [a for a in args if a is not type(None)]
        if len(options) != 1:
            raise TypeError(f"messages hold no union of several types: {hint}")
        inner = _decoder(options[0])
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        if len(args) != 2 or args[1] is not Ellipsis:
            raise TypeError(f"messages hold tuples of one type and any length only: {hint}")
        return _sequence_decoder(_decoder(args[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_decoder(_decoder(args[1]))
    if hint in (int, float, str, bool, bytes):
        return _scalar_decoder(hint)
    raise TypeError(f"messages cannot hold {hint!r}")


def _scalar_decoder(kind: type) -> Decoder:
    def decode(value: Any) -> Any:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return float(value)
        raise WireError(f"expected {kind.__name__}, got {type(value).__name__}")

    return decode


def _enum_decoder(kind: type[Enum]) -> Decoder:
    def decode(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise WireError(f"{value!r} is no {kind.__name__}") from None

    return decode


def _sequence_decoder(inner: Decoder) -> Decoder:
    def decode(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise WireError(f"expected a list, got {type(value).__name__}")
        return tuple(inner(item) for item in value)

    return decode


def _mapping_decoder(inner: Decoder) -> Decoder:
    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            raise WireError(f"expected a map, got {type(value).__name__}")
        if not all(isinstance(key, str) for key in value):
            raise WireError("a map's keys must be text")
        return {key: inner(item) for key, item in value.items()}

    return decode


def _dataclass_decoder(cls: type) -> Decoder:
    hints = typing.get_type_hints(cls)
    decoders = {f.name: _decoder(hints[f.name]) for f in dataclasses.fields(cls)}

    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            raise WireError(f"{cls.__name__}: expected a map, got {type(value).__name__}")
        if value.keys() != decoders.keys():
            odd = ", ".join(sorted(map(str, value.keys() ^ decoders.keys())))
            raise WireError(f"{cls.__name__}: missing or unknown fields: {odd}")
        made = {}
        for name, decoder in decoders.items():
            try:
                made[name] = decoder(value[name])
            except WireError as error:
                raise WireError(f"{cls.__name__}.{name}: {error}") from None
        return cls(**made)

    return decode


def _plain(value: Any) -> Any:
    """Anything msgpack can carry, for options whose meaning the receiver checks itself."""
    return value
