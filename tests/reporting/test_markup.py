from __future__ import annotations

import json

from robotrials.reporting.markup import Markup, breakable, data_block, join, tag, text


def test_text_and_attributes_are_escaped() -> None:
    hostile = """<img src=x onerror="alert(1)"> & 'x'"""
    assert tag("td", hostile, title=hostile) == (
        '<td title="&lt;img src=x onerror=&quot;alert(1)&quot;&gt; &amp; &#x27;x&#x27;">'
        "&lt;img src=x onerror=&quot;alert(1)&quot;&gt; &amp; &#x27;x&#x27;</td>"
    )


def test_markup_is_not_escaped_twice_and_none_is_left_out() -> None:
    assert join(tag("b", 1), None, "&") == "<b>1</b>&amp;"
    assert isinstance(join(), Markup)


def test_attribute_names_and_truths() -> None:
    made = tag("input", type="search", aria_label="x", class_="y", hidden=True, disabled=False, title=None)
    assert made == '<input type="search" aria-label="x" class="y" hidden>'


def test_a_long_name_breaks_after_its_marks_and_stays_escaped() -> None:
    assert breakable("a_b-<c>/d") == "a_<wbr>b-<wbr>&lt;c&gt;/<wbr>d"


def test_a_lone_surrogate_is_shown_and_can_be_written() -> None:
    assert text("\udcff").encode("utf-8") == b"\\udcff"


def test_no_text_can_end_a_data_block() -> None:
    hostile = "</script><script>alert(1)</script><!--\u2028&"
    block = data_block("data", {"name": hostile, "nan": float("nan"), "pair": (1, float("inf"))})
    inner = block.removeprefix('<script type="application/json" id="data">').removesuffix("</script>")
    assert "<" not in inner
    assert json.loads(inner) == {"name": hostile, "nan": None, "pair": [1, None]}
