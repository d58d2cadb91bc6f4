"""X-VLA's own processing around LIBERO: the numbers that lerobot-eval's pipelines give."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("lerobot")

import torch
from lerobot.configs import FeatureType, NormalizationMode, PolicyFeature
from lerobot.policies.xvla.processor_xvla import LiberoProcessorStep, make_xvla_libero_pre_post_processors
from lerobot.processor import NormalizerProcessorStep, PolicyProcessorPipeline, UnnormalizerProcessorStep
from lerobot.processor.converters import policy_action_to_transition, transition_to_policy_action

from robotrials.policies.lerobot.processing import Processing
from robotrials.policies.lerobot.xvla import add_benchmark_steps

IMAGE, STATE = "observation.images.image", "observation.state"
FEATURES = {STATE: PolicyFeature(FeatureType.STATE, (20,)), "action": PolicyFeature(FeatureType.ACTION, (10,))}
MODES = {"STATE": NormalizationMode.MEAN_STD, "ACTION": NormalizationMode.MEAN_STD}
STATISTICS = {
    STATE: {"mean": torch.full((20,), 0.5), "std": torch.full((20,), 2.0)},
    "action": {"mean": torch.full((10,), 0.1), "std": torch.full((10,), 0.7)},
}


def checkpoint_pipelines() -> tuple[PolicyProcessorPipeline, PolicyProcessorPipeline]:
    """What a checkpoint brings: steps that change state and action, so that the order of all steps shows."""
    before = NormalizerProcessorStep(features=FEATURES, norm_map=MODES, stats=STATISTICS)
    after = UnnormalizerProcessorStep(features=FEATURES, norm_map=MODES, stats=STATISTICS)
    return PolicyProcessorPipeline(steps=[before]), PolicyProcessorPipeline(
        steps=[after], to_transition=policy_action_to_transition, to_output=transition_to_policy_action
    )


def test_observation_and_action_are_those_of_lerobot_evals_pipelines() -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
    state = rng.normal(size=20).astype(np.float32)
    chunk = torch.from_numpy(rng.normal(size=(1, 5, 10)).astype(np.float32))

    env_before, env_after = make_xvla_libero_pre_post_processors()
    # The benchmark does that one: --env.layout=xvla.
    env_before.steps = [step for step in env_before.steps if not isinstance(step, LiberoProcessorStep)]
    before, after = checkpoint_pipelines()
    raw = {
        IMAGE: torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255,
        STATE: torch.from_numpy(state)[None],
        "task": ["lift it"],
    }
    expected = before(env_before(raw))
    steps = [env_after({"action": after(action)})["action"] for action in chunk.unbind(1)]

    own_before, own_after = checkpoint_pipelines()
    add_benchmark_steps(own_before, own_after)
    processing = Processing(own_before, own_after, torch.device("cpu"), history=None)
    found = processing.batch([{IMAGE: image, STATE: state, "task": "lift it"}])
    for key in (IMAGE, STATE):
        assert torch.equal(found[key], expected[key]), key
    # lerobot-eval loses it between its two pipelines; the policy then takes 0, which it is.
    assert found["domain_id"].tolist() == [0]
    actions = processing.actions(chunk)
    assert actions.shape == (1, 5, 7)
    np.testing.assert_array_equal(actions[0], torch.cat(steps).numpy())
    assert set(np.unique(actions[..., -1])) <= {-1.0, 1.0}


def test_steps_that_a_checkpoint_holds_are_not_taken_twice() -> None:
    before, after = checkpoint_pipelines()
    add_benchmark_steps(before, after)
    n_before, n_after = len(before.steps), len(after.steps)
    add_benchmark_steps(before, after)
    assert (len(before.steps), len(after.steps)) == (n_before, n_after)
