from __future__ import annotations

import pytest

from robotrials.errors import ConfigError
from robotrials.plan.episode import EpisodeSpec
from robotrials.run.recording import RecordRule


@pytest.mark.parametrize(
    ("text", "modes"),
    [
        ("none", ["no", "no", "no"]),
        ("all", ["yes", "yes", "yes"]),
        ("failures", ["on_failure"] * 3),
        ("first:2", ["yes", "yes", "no"]),
        ("first:0", ["no", "no", "no"]),
    ],
)
def test_rule_films_what_it_says(text: str, modes: list[str]) -> None:
    episodes = [EpisodeSpec(i, "s", "t", i, i, None, 10) for i in range(3)]
    assert [RecordRule.parse(text).mode(episode) for episode in episodes] == modes


@pytest.mark.parametrize("text", ["", "first", "first:", "first:-1", "first:x", "some", "10"])
def test_anything_else_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(ConfigError, match="none, failures, all or first:N"):
        RecordRule.parse(text)
