"""Errors that differ in numbers alone are one kind."""

from __future__ import annotations

from robotrials.results.error_groups import error_groups, without_numbers
from robotrials.results.record import EndReason, EpisodeRecord


def erred(episode: int, message: str | None) -> EpisodeRecord:
    return EpisodeRecord(episode, 1, "w0", EndReason.ERROR, None, 0, None, None, error=message)


def test_numbers_do_not_make_a_kind() -> None:
    records = [
        erred(0, "ValueError: other"),
        erred(1, "RuntimeError: step 17 of env 3: unstable at 0x7f2a (1.5e-3 s)\nTraceback 1"),
        erred(2, "RuntimeError: step 18 of env 1: unstable at 0xbeef (22 s)\nTraceback 2"),
        erred(3, None),
        EpisodeRecord(4, 1, "w0", EndReason.SUCCESS, True, 1, 0.0, 0.0),
    ]
    first, *others = error_groups(records)
    assert (first.episodes, first.variants) == ((1, 2), 2)
    assert first.example.endswith("Traceback 1")
    assert first.words == (
        "2 x RuntimeError: step 17 of env 3: unstable at 0x7f2a (1.5e-3 s) (and 1 more that differ in numbers)"
    )
    assert [group.words for group in others] == ["ValueError: other", "no message"]


def test_words_make_a_kind() -> None:
    assert without_numbers("env 3: no asset drawer") != without_numbers("env 3: no asset door")
    assert len(error_groups([erred(0, "timeout in reset"), erred(1, "timeout in step")])) == 2


def test_the_same_message_many_times_is_said_without_a_word_of_numbers() -> None:
    (group,) = error_groups([erred(i, "RuntimeError: boom") for i in range(3)])
    assert group.words == "3 x RuntimeError: boom"
