"""Strings become typed options, or an error that names the flag."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from robotrials.errors import ConfigError
from robotrials.plan.config import EvalSettings, option
from robotrials.plan.options import build


@dataclass(frozen=True)
class Options:
    count: int = 1
    ratio: float = 0.5
    flag: bool = False
    text: str = ""
    maybe: int | None = 3
    path: Path | None = None
    names: tuple[str, ...] = ()
    table: Mapping[str, str] = field(default_factory=dict)
    kind: str = option("a", "which", choices=("a", "b"))


@pytest.mark.parametrize(
    ("name", "given", "right"),
    [
        ("count", "12", 12),
        ("count", 12.0, 12),
        ("ratio", "2", 2.0),
        ("flag", "true", True),
        ("flag", "False", False),
        ("flag", True, True),
        ("text", "1", "1"),
        ("text", ["a", "b"], "a,b"),
        ("maybe", "null", None),
        ("maybe", "7", 7),
        ("path", "x/y", Path("x/y")),
        ("path", None, None),
        ("names", "a, b", ("a", "b")),
        ("names", "[a, b]", ("a", "b")),
        ("names", '["a", "b"]', ("a", "b")),
        ("names", "[]", ()),
        ("table", "{a: b, c: 'd e'}", {"a": "b", "c": "d e"}),
        ("table", '{"a": "b"}', {"a": "b"}),
        ("table", {"a": "b"}, {"a": "b"}),
        ("kind", "b", "b"),
    ],
)
def test_value_is_read_as_its_type(name: str, given: object, right: object) -> None:
    assert getattr(build(Options, {name: given}, "--x."), name) == right


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("count", "1.5", "--x.count must be a whole number, got '1.5'"),
        ("count", 1.5, "--x.count must be a whole number"),
        ("count", math.inf, "--x.count must be a whole number, got inf"),
        ("count", True, "--x.count must be a whole number"),
        ("count", "null", "--x.count must be a whole number"),
        ("ratio", "many", "--x.ratio must be a number"),
        ("flag", "maybe", "--x.flag must be true or false"),
        ("table", "{a:b}", "--x.table must be a map such as"),
        ("table", "[1]", "--x.table must be a map"),
        ("kind", "c", "--x.kind must be one of a, b; got 'c'"),
        ("cuont", "1", r"unknown option --x.cuont \(did you mean --x.count\?\)"),
        ("zzz", "1", "unknown option --x.zzz; known: --x.count, --x.ratio"),
    ],
)
def test_refusal_names_the_flag_and_what_would_be_right(name: str, given: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build(Options, {name: given}, "--x.")


def test_defaults_of_eval_are_the_documented_ones() -> None:
    settings = build(EvalSettings, {}, "--eval.")
    assert (settings.n_episodes, settings.batch_size, settings.max_attempts, settings.record) == (50, 0, 3, "first:10")
    assert (settings.step_timeout, settings.record_fps, settings.exact) == (120.0, 20.0, True)
