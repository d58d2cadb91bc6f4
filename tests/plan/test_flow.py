from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from robotrials.plan.flow import read_flow

KEYS = st.text("abc_./x", min_size=1, max_size=6).filter(lambda word: word.strip(".") != "")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_json_is_read_as_json(value: Any) -> None:
    assert read_flow(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "{agentview_image: camera1, robot0_eye_in_hand_image: camera2}",
        "{observation.images.top: observation.images.camera1}",
        "{a: 1, b: 2.5, c: -3, d: true, e: null, f: ~, g: no}",
        "{a: {b: [1, 2, x y]}, 'it''s': \"q\\\"\"}",
        "[a, b, [c]]",
        "[ 'a' , \"b\", ]",
        "{}",
        "[]",
        "{a: , b: 1}",
        "{url: http://host:80/x, when: 12:30x}",
        "{a b: c d}",
    ],
)
def test_flow_style_is_read_as_yaml_reads_it(text: str) -> None:
    assert read_flow(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{a:b}", "expected ':' at character 5"),
        ("{a: b", "expected a comma or } at character 6"),
        ("[a, b", "expected a comma or ] at character 6"),
        ("{a: b} c", "unexpected 'c' at character 8"),
        ("{a: b, a: c}", "'a' is given twice"),
        ("{a: 'b}", "a quote that is not closed"),
        ("{a: b: c}", "unexpected ':'"),
        ("[" * 60 + "]" * 60 + "x", "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_neither_says_where(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("}", r"\}")):
        read_flow(text)


@given(st.text("{}[],: '\"ab1.~-\\", max_size=30))
def test_anything_is_a_value_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        read_flow(text)
