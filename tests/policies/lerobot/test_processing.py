"""Observations into LeRobot's batches and back: the numbers are LeRobot's own."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("lerobot")

import torch
from lerobot.envs import preprocess_observation
from lerobot.processor import (
    AbsoluteActionsProcessorStep,
    AddBatchDimensionProcessorStep,
    PolicyProcessorPipeline,
    ProcessorStep,
    RelativeActionsProcessorStep,
)
from lerobot.processor.converters import policy_action_to_transition, transition_to_policy_action

from robotrials.policies.lerobot.processing import Processing
from tests.policies import lerobot_rows

CPU = torch.device("cpu")


def processing(
    *before: ProcessorStep, after: list[ProcessorStep] | None = None, history: int | None = None
) -> Processing:
    post = PolicyProcessorPipeline(
        steps=after or [], to_transition=policy_action_to_transition, to_output=transition_to_policy_action
    )
    return Processing(PolicyProcessorPipeline(steps=list(before)), post, CPU, history)


def test_images_and_states_become_what_lerobot_makes_of_them() -> None:
    frames = [lerobot_rows.frame(i, 0) for i in range(3)]
    theirs = preprocess_observation(
        {
            "pixels": np.stack([frame["observation.image"] for frame in frames]),
            "agent_pos": np.stack([frame["observation.state"] for frame in frames]),
        }
    )
    ours = processing().batch(frames)
    for key, expected in theirs.items():
        assert torch.equal(ours[key], expected)
        assert ours[key].stride() == expected.stride()
    assert ours["task"] == [lerobot_rows.TASK.instruction] * 3


def test_history_lies_on_the_second_axis_oldest_first() -> None:
    rows = [
        {"observation.state": np.arange(6, dtype=np.float32).reshape(3, 2) + 10 * i, "task": f"task {i}"}
        for i in range(2)
    ]
    batch = processing(AddBatchDimensionProcessorStep(), history=3).batch(rows)
    assert batch["observation.state"].tolist() == [row["observation.state"].tolist() for row in rows]
    assert batch["task"] == ["task 0", "task 1"]


def test_history_of_one_has_its_axis_too() -> None:
    batch = processing(history=1).batch([lerobot_rows.frame(0, 0)])
    assert batch["observation.image"].shape == (1, 1, 3, 96, 96)


def test_relative_actions_are_decoded_with_the_state_that_the_policy_saw() -> None:
    relative = RelativeActionsProcessorStep(enabled=True)
    steps = processing(relative, after=[AbsoluteActionsProcessorStep(enabled=True, relative_step=relative)])
    steps.batch([{"observation.state": np.array([10.0 * i, 0.0], np.float32)} for i in range(2)])
    actions = steps.actions(torch.ones(2, 3, 2))
    assert actions.tolist() == [[[1.0, 1.0]] * 3, [[11.0, 1.0]] * 3]


class Tokenizer(ProcessorStep):
    """Stands for a step that pads text to the longest of the batch."""

    def __init__(self, padding: str) -> None:
        self.padding = padding

    def __call__(self, transition):
        return transition

    def transform_features(self, features):
        return features


@pytest.mark.parametrize(("padding", "apart"), [("longest", True), ("max_length", False)])
def test_rows_of_another_text_share_a_batch_only_where_its_length_cannot_matter(padding: str, apart: bool) -> None:
    steps = processing(AddBatchDimensionProcessorStep(), Tokenizer(padding))
    one, other = ({**lerobot_rows.frame(0, 0), "task": text} for text in ("push", "push the block"))
    assert (steps.group_key(one) != steps.group_key(other)) is apart


def test_rows_of_another_shape_never_share_a_batch() -> None:
    frame = lerobot_rows.frame(0, 0)
    small = {**frame, "observation.image": frame["observation.image"][:48]}
    assert processing().group_key(frame) != processing().group_key(small)
