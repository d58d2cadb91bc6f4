"""Text can be read: every colour of text on every ground has the contrast that WCAG 2.2 asks for (AA, 4.5 to 1)."""

from __future__ import annotations

import re
from importlib import resources

import pytest

ASSETS = resources.files("robotrials.reporting").joinpath("assets")
GROUNDS = ("page", "card", "wash", "accent-wash")
STYLES = ("base.css", "report.css", "leaderboard.css")


def style(name: str) -> str:
    return ASSETS.joinpath(name).read_text(encoding="utf-8")


def colours(scheme: str) -> dict[str, str]:
    """The variables of one colour scheme; the dark one changes those of the light one."""
    light, dark = re.findall(r":root \{(.*?)\}", style("base.css"), re.DOTALL)[:2]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light + (dark if scheme == "dark" else "")))


def contrast(one: str, other: str) -> float:
    """The ratio of relative luminances as WCAG 2.2 defines it."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def of_text() -> set[str]:
    """The variables that some rule uses for text: as ``color``, or as the fill of a label in a drawing."""
    rules = "\n".join(map(style, STYLES))
    return set(re.findall(r"[;{ ]color: var\(--([\w-]+)\)", rules)) | set(
        re.findall(r"-label \{ fill: var\(--([\w-]+)\)", rules)
    )


def test_the_formula_gives_the_published_values() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_on_every_ground(scheme: str) -> None:
    known, used = colours(scheme), of_text()
    assert used >= {"ink", "soft", "faint", "accent", "error", "failure", "success"}
    weak = {
        (text, ground): round(ratio, 2)
        for text in used
        for ground in GROUNDS
        if (ratio := contrast(known[text], known[ground])) < 4.5
    }
    assert weak == {}


def test_the_words_on_coloured_marks_have_contrast() -> None:
    grounds = re.findall(r"\.mark\.\w+ \{ background: (#[0-9a-f]{6})", style("report.css"))
    assert len(grounds) == 4
    assert min(contrast("#ffffff", ground) for ground in grounds) >= 4.5
