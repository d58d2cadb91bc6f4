from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from robotrials.cli.facts import fact_lines

PATH = "/a/path/that/is/longer/than/the/whole/terminal/is/wide/and/must/stay/one/word"


def drawn(value: str | Text, width: int) -> list[str]:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=width)
    return [line.plain for line in fact_lines([("Errors", value)], console)]


def test_a_long_value_goes_on_under_itself_between_words() -> None:
    words = "films took the most of the time and could be left out of this run"
    assert drawn(words, 60) == [
        "Errors     films took the most of the time and could be left",
        "           out of this run",
    ]
    assert drawn(words, 200) == [f"Errors     {words}"]


def test_a_path_is_never_broken() -> None:
    assert drawn(f"see {PATH} for more", 60) == ["Errors     see", f"           {PATH}", "           for more"]
    assert drawn(Text(f"{PATH} (3 videos)", no_wrap=True), 60) == [f"Errors     {PATH} (3 videos)"]


def test_colours_stay_on_their_words() -> None:
    console = Console(width=60)
    _, second = fact_lines([("Errors", Text("a " * 30 + "red", "red"))], console)
    assert second.plain.split()[-1] == "red"
    assert any(span.style == "red" for span in second.spans) or second.style == "red"
