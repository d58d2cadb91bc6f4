"""Sessions and made-up observations for tests of LeRobot policies, without a simulator."""

from __future__ import annotations

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, Feature, TaskSpec
from robotrials.policies.base import Policy, Session

TASK = TaskSpec(
    suite="pusht",
    name="PushT-v0",
    id=0,
    instruction="Push the block onto its outline",
    max_steps=300,
    control_hz=10.0,
    observations={"observation.image": Feature((96, 96, 3), "uint8"), "observation.state": Feature((2,))},
    action=ActionSpec(2, (0.0, 0.0), (512.0, 512.0)),
)


def episode(index: int) -> EpisodeSpec:
    return EpisodeSpec(index, "pusht", "PushT-v0", index, 1000 + index, None, 300)


def session(policy: Policy, index: int = 0) -> Session:
    return policy.new_session(episode(index), TASK)


def frame(index: int, step: int) -> Observation:
    """What episode ``index`` shows at ``step``."""
    rng = np.random.default_rng([index, step])
    return {
        "observation.image": rng.integers(0, 256, (96, 96, 3), dtype=np.uint8),
        "observation.state": rng.random(2, dtype=np.float32) * 512,
        "task": TASK.instruction,
    }


def row(policy: Policy, index: int, step: int = 0) -> Observation:
    """What ``policy`` is given of episode ``index`` at ``step``: with history, the first frame is repeated."""
    past = policy.spec().n_obs_steps
    if past == 1:
        return frame(index, step)
    window = [frame(index, max(0, s)) for s in range(step - past + 1, step + 1)]
    stacked: Observation = {key: np.stack([f[key] for f in window]) for key in window[0] if key != "task"}
    return {**stacked, "task": TASK.instruction}
