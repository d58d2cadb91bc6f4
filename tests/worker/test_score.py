from __future__ import annotations

import pytest

from robotrials.benchmarks.scoring import Scoring
from robotrials.errors import ContractError
from robotrials.plan.episode import EpisodeSpec
from robotrials.results.record import EndReason
from robotrials.worker.score import Score


def played(*steps: tuple[bool, bool, object], scoring: Scoring | None = None, limit: int = 5) -> tuple[Score, object]:
    """``steps``: terminated, truncated, success."""
    score = Score("push", EpisodeSpec(0, "s", "push", 0, 1, None, limit), scoring or Scoring())
    end = None
    for step in steps:
        end = score.add(1.0, *step)
    return score, end


NOT_YET, SOLVED = (False, False, False), (False, False, True)


@pytest.mark.parametrize(
    ("at_end", "steps", "success", "end", "marks"),
    [
        (False, [NOT_YET, SOLVED, NOT_YET, NOT_YET, NOT_YET], True, EndReason.SUCCESS, ("success_lost",)),
        (True, [NOT_YET, SOLVED, NOT_YET, NOT_YET, NOT_YET], False, EndReason.TIME_LIMIT, ("success_lost",)),
        (True, [NOT_YET, SOLVED, (True, False, False)], False, EndReason.FAILURE, ("success_lost",)),
        (True, [NOT_YET, (True, False, True)], True, EndReason.SUCCESS, ()),
        (False, [SOLVED, NOT_YET, (False, True, True)], True, EndReason.SUCCESS, ("solved_at_once",)),
        (False, [(True, False, True)], True, EndReason.SUCCESS, ("solved_at_once",)),
        (False, [(True, False, False)], False, EndReason.FAILURE, ("ended_at_once",)),
        (False, [(False, True, False)], False, EndReason.TIME_LIMIT, ()),
    ],
)
def test_an_episode_is_judged_by_any_step_or_by_the_last(
    at_end: bool, steps: list[tuple[bool, bool, object]], success: bool, end: EndReason, marks: tuple[str, ...]
) -> None:
    score, ended = played(*steps, scoring=Scoring(at_end))
    assert (score.success, ended, score.marks(end)) == (success, end, marks)


def test_an_episode_of_one_step_is_over_with_its_first() -> None:
    score, end = played((True, False, True), limit=1)
    assert (end, score.marks(EndReason.SUCCESS)) == (EndReason.SUCCESS, ())


def test_a_named_exception_is_a_failure_whatever_came_before() -> None:
    score, _ = played(NOT_YET, SOLVED, scoring=Scoring(failures=("builtins.ArithmeticError",)))
    assert score.raised(ZeroDivisionError("no path")) is EndReason.EXCEPTION
    assert (score.success, score.exception, score.reward_max) == (False, "ZeroDivisionError: no path", 1.0)
    with pytest.raises(KeyError):
        score.raised(KeyError("goal"))


def test_one_that_was_raised_by_the_reset_leaves_no_reward() -> None:
    score, _ = played(scoring=Scoring(failures=("builtins.ArithmeticError",)))
    score.raised(ZeroDivisionError())
    assert (score.steps, score.reward_sum, score.reward_max) == (0, 0.0, 0.0)


def test_a_missing_signal_is_an_error() -> None:
    with pytest.raises(ContractError, match="push returned no success signal at step 2"):
        played(NOT_YET, (True, False, None))
