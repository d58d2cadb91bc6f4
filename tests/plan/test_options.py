"""Strings become typed options, or an error that names the flag."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
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
    side: int = option(8, "pixels", least=1, most=16384)
    limit: int = option(0, "steps", least=0)
    hz: float = option(1.0, "rate", above=0)


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
        ("count", np.int64(7), 7),
        ("count", np.float32(7.0), 7),
        ("ratio", np.float32(0.5), 0.5),
        ("maybe", np.array(7), 7),
        ("flag", np.bool_(True), True),
        ("names", np.array(["a", "b"]), ("a", "b")),
        ("table", {"a": np.int64(1), "b": [np.float64(0.5)], "c": np.arange(2)}, {"a": 1, "b": [0.5], "c": [0, 1]}),
        ("side", "16384", 16384),
        ("limit", "0", 0),
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
        ("count", np.float32(1.5), "--x.count must be a whole number, got 1.5"),
        ("count", np.bool_(True), "--x.count must be a whole number"),
        ("count", np.arange(2), "--x.count must be a whole number"),
        ("count", "9" * 24, "and at most 9,223,372,036,854,775,807, got 999"),
        ("count", -(2**70), "--x.count must be at least -9,223,372,036,854,775,807 and at most 9,223"),
        ("ratio", "nan", "--x.ratio must be finite, got 'nan'"),
        ("ratio", math.inf, "--x.ratio must be finite, got inf"),
        ("ratio", "1e400", "--x.ratio must be finite, got '1e400'"),
        ("path", 2026, "--x.path must be a path, got 2026; in YAML"),
        ("names", None, "--x.names must be a list, or text with commas, got None"),
        ("names", 3, "--x.names must be a list"),
        ("table", '{"a": [NaN]}', r"--x.table.a\[0\] must be finite, got nan"),
        ("table", '{"a": {"b": 1e999}}', "--x.table.a.b must be finite, got inf"),
        ("table", {"a": 10**30}, "--x.table.a must be at least -9,223"),
        ("table", {"a": object()}, "--x.table.a must be numbers, text, true, false, null, lists and maps"),
        ("table", {1: "a"}, "--x.table must have names as keys, got 1"),
        ("side", "0", "--x.side must be at least 1 and at most 16,384, got 0"),
        ("side", 16385, "--x.side must be at least 1 and at most 16,384"),
        ("limit", "-5", "--x.limit must not be negative, got -5"),
        ("hz", "0", "--x.hz must be above 0, got 0.0"),
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
