from __future__ import annotations

import pytest

from robotrials.benchmarks.adapters.metaworld.tasks import GROUPS, INSTRUCTION, INSTRUCTIONS, canonical


def test_groups_have_lerobots_sizes() -> None:
    sizes = {group: len(tasks) for group, tasks in GROUPS.items()}
    assert sizes == {"easy": 28, "medium": 11, "hard": 6, "very_hard": 5, "mt50": 50, "all": 50}


def test_every_task_is_in_one_group() -> None:
    assert sum(len(tasks) for tasks in INSTRUCTIONS.values()) == len(INSTRUCTION) == 50
    assert set(GROUPS["mt50"]) == set(INSTRUCTION)


def test_the_tasks_are_those_of_meta_world() -> None:
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS

    assert set(INSTRUCTION) == set(ALL_V3_ENVIRONMENTS)


def test_sentences_are_the_ones_policies_are_trained_on() -> None:
    assert INSTRUCTION["push-v3"] == "Push the puck to a goal"
    assert INSTRUCTION["drawer-open-v3"] == "Open a drawer"
    assert INSTRUCTION["pick-place-wall-v3"] == "Pick a puck, bypass a wall and place the puck"


def test_groups_and_sentences_are_lerobots() -> None:
    lerobot = pytest.importorskip("lerobot.envs.metaworld")
    assert lerobot.TASK_DESCRIPTIONS == INSTRUCTION
    assert {group: tuple(tasks) for group, tasks in lerobot.DIFFICULTY_TO_TASKS.items()} == {
        group: tasks for group, tasks in GROUPS.items() if group not in ("mt50", "all")
    }


@pytest.mark.parametrize("name", ["push-v3", "push", "metaworld-push-v3", "metaworld-push", " push-v3 "])
def test_other_spellings_of_a_task_mean_the_task(name: str) -> None:
    assert canonical(name) == "push-v3"


@pytest.mark.parametrize("name", ["easy", "push-v2", "nonsense"])
def test_other_names_are_left_as_they_are(name: str) -> None:
    assert canonical(name) == name
