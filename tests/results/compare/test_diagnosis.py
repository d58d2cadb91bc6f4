from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from robotrials.plan.task import ActionSpec, Feature, TaskSpec
from robotrials.results.compare.diagnosis import failure_clusters, look_at_first
from robotrials.results.record import Signals
from robotrials.results.stored import StoredEpisode

TASK = TaskSpec(
    *("s", "push", 0, "push it", 200, 20.0),
    {"observation.image": Feature((8, 8, 3), "uint8"), "observation.state": Feature((4,))},
    ActionSpec(2, (-1.0, -1.0), (1.0, 1.0)),
)
FINE = Signals((-0.4, -0.9), (0.5, 0.8), 0.1)
POLICY: dict[str, Any] = {"n_action_steps": 8, "observations": {"observation.image": None}}


def episode(index: int, success: bool | None = False, task: str = "push", state: int | None = None) -> StoredEpisode:
    end = {True: "success", False: "time_limit", None: "error"}[success]
    return StoredEpisode("s", task, "", index, 1000 + index, state, success, end, 200)


def look(signals: list[Signals], policy: dict[str, Any] | None = None, options: dict[str, Any] | None = None) -> str:
    episodes = [episode(i) for i in range(5)]
    found = look_at_first([TASK], episodes, signals, policy or POLICY, options or {}, {})
    return "\n".join(f"{what}: {words}" for what, words in found)


def test_nothing_is_diagnosed_where_something_succeeded_or_erred() -> None:
    for other in (True, None):
        episodes = [episode(0), episode(1, other)]
        assert look_at_first([TASK], episodes, [FINE], POLICY, {}, {}) == []
    assert look_at_first([TASK], [], [], POLICY, {}, {}) == []


def test_all_that_could_be_wrong_is_shown_even_when_it_looks_right() -> None:
    assert look([FINE]) == (
        "Actions: between -0.9 and 0.8, allowed [-1, 1]; 10 % at or beyond the bounds\n"
        "Steps: 5 of 5 episodes ran to the step limit of 200 (10 s at 20 Hz); is it what the policy was trained for?\n"
        "Chunks: 8 actions are played before the policy looks again; the training's number?\n"
        "Reads: observation.image; does not read observation.state; is each the view it was trained on, "
        "the right way up?"
    )


def test_one_action_is_spoken_of_as_one() -> None:
    text = look([FINE], {"n_action_steps": 1})
    assert "Chunks: 1 action is played before the policy looks again; the training's number?" in text


@pytest.mark.parametrize(
    ("signals", "words"),
    [
        (
            replace(FINE, saturated=0.9),
            "Actions: ! between -0.9 and 0.8, allowed [-1, 1]; 90 % at or beyond the bounds",
        ),
        (replace(FINE, action_low=(0.0, 0.0), action_high=(0.01, 0.02)), "they hardly move"),
        (replace(FINE, blank=("observation.image",)), "Images: ! observation.image: one colour all over"),
        (replace(FINE, still=("observation.state",)), "Images: ! observation.state never changed"),
    ],
)
def test_what_is_surely_wrong_comes_first(signals: Signals, words: str) -> None:
    first = look([signals]).splitlines()[0]
    assert words in first


def test_an_image_that_changes_in_one_episode_is_not_still() -> None:
    assert "never changed" not in look([replace(FINE, still=("observation.image",)), FINE])


def test_another_number_of_actions_than_the_checkpoints_is_named() -> None:
    words = look([FINE], {**POLICY, "checkpoint_n_action_steps": 100})
    assert words.startswith("Chunks: ! 8 actions of each chunk are played, the checkpoint says 100")
    assert "asked for by --policy.n_action_steps=8" in look([FINE], None, {"n_action_steps": "8"})


def test_failures_gather_by_task_and_by_initial_state() -> None:
    episodes = [episode(i, i % 10 != 3, "push", i % 10) for i in range(60)]
    episodes += [episode(i, i < 5, "reach", i % 10) for i in range(60)]
    lines = failure_clusters(episodes)
    assert lines[0] == "61 failed: 61 at the step limit"
    assert lines[1] == "s/reach: 55 of 60 failed, 6 of 60 elsewhere"
    spread = [episode(i, i % 10 != 3, "push", i % 10) for i in range(60)]
    assert failure_clusters(spread)[1:] == ["initial state 3: 6 of 6 failed, 0 of 54 elsewhere"]


def test_chance_is_no_cluster() -> None:
    episodes = [episode(i, i % 2 == 0, task) for task in ("a", "b", "c") for i in range(20)]
    assert failure_clusters(episodes) == ["30 failed: 30 at the step limit"]


def test_how_failures_ended_is_said_with_their_length() -> None:
    early = [replace(episode(i), end="failure", steps=40 + i) for i in range(3)]
    assert failure_clusters([*early, episode(4)]) == [
        "4 failed: 3 ended before it, 1 at the step limit (after 40 to 42 steps)"
    ]
    assert failure_clusters([episode(0, True)]) == []
