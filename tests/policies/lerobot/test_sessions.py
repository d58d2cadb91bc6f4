"""State belongs to the episode: many at once give bit by bit what each gives alone, and what LeRobot itself gives."""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lerobot")

import torch

from robotrials.errors import ConfigError
from robotrials.policies.base import Session
from robotrials.policies.lerobot.policy import LeRobotPolicy
from robotrials.policies.lerobot.sessions import light_copy
from tests.policies import lerobot_rows, tiny_lerobot

EPISODES, LOOKS = 5, 4


@pytest.fixture(scope="module")
def drifter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkpoint of a third-party policy, its package installed for as long as these tests run."""
    site = tmp_path_factory.mktemp("site")
    metadata = site / "lerobot_policy_drifter-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lerobot_policy_drifter\nVersion: 0.1\n")
    added = [str(Path(__file__).parents[1] / "plugins"), str(site)]
    sys.path[:0] = added
    from lerobot.utils.import_utils import register_third_party_plugins

    register_third_party_plugins()
    yield tiny_lerobot.build("drifter", tmp_path_factory.mktemp("drifter"), 0, tiny_lerobot.PUSHT, {})
    for path in added:
        sys.path.remove(path)


@functools.cache
def policy_of(path: Path, **options: Any) -> LeRobotPolicy:
    return LeRobotPolicy(str(path), **options)


@pytest.fixture(params=["act", "act_ensembling", "diffusion", "vqbet", "drifter"])
def policy(request: pytest.FixtureRequest) -> LeRobotPolicy:
    if request.param == "drifter":
        return policy_of(request.getfixturevalue("drifter"))
    return policy_of(tiny_lerobot.shared(request.param))


def alone(policy: LeRobotPolicy, index: int) -> list[np.ndarray]:
    session = lerobot_rows.session(policy, index)
    return [policy.act([session], [lerobot_rows.row(policy, index, step)])[0] for step in range(LOOKS)]


def interleaved(policy: LeRobotPolicy, order: int) -> list[list[np.ndarray]]:
    """All episodes at once in a random order, a random number of them at each call, one beginning late."""
    rng = np.random.default_rng(order)
    sessions: list[Session | None] = [None] * EPISODES
    done: list[list[np.ndarray]] = [[] for _ in range(EPISODES)]
    while any(len(looks) < LOOKS for looks in done):
        waiting = [i for i in range(EPISODES) if len(done[i]) < LOOKS]
        chosen = rng.permutation(waiting)[: rng.integers(1, len(waiting) + 1)]
        sessions = [s or (lerobot_rows.session(policy, i) if i in chosen else None) for i, s in enumerate(sessions)]
        rows = [lerobot_rows.row(policy, i, len(done[i])) for i in chosen]
        actions = policy.act([s for i in chosen if (s := sessions[i])], rows)
        for i, chunk in zip(chosen, actions, strict=True):
            done[i].append(chunk)
    return done


@pytest.mark.parametrize("order", [0, 1])
def test_interleaved_episodes_give_bitwise_what_each_gives_alone(policy: LeRobotPolicy, order: int) -> None:
    for index, chunks in enumerate(interleaved(policy, order)):
        for together, by_itself in zip(chunks, alone(policy, index), strict=True):
            assert np.array_equal(together, by_itself)


def test_episodes_differ_so_that_a_mix_up_would_show(policy: LeRobotPolicy) -> None:
    first, second = alone(policy, 0), alone(policy, 1)
    assert not any(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1])


def test_shared_policy_remembers_nothing_of_an_episode(policy: LeRobotPolicy) -> None:
    shared = policy._engine._policy
    alone(policy, 0)
    queues = [*getattr(shared, "_queues", {}).values(), getattr(shared, "_action_queue", deque())]
    assert not any(queues)
    if hasattr(shared, "memory"):
        assert (shared.memory.seen, float(shared.steps)) == ([], 0.0)
    if hasattr(shared, "temporal_ensembler"):
        assert shared.temporal_ensembler.ensembled_actions is None


def test_actions_are_those_of_lerobots_own_loop(policy: LeRobotPolicy) -> None:
    """``select_action`` at every step, as lerobot-eval drives a policy, with the same noise at the looks."""
    steps = policy.n_action_steps * 2 if policy.session_mode != "copy" else LOOKS
    spec = policy.spec()
    session = lerobot_rows.session(policy, 3)
    ours = np.concatenate(
        [policy.act([session], [lerobot_rows.row(policy, 3, step)])[0] for step in range(0, steps, spec.n_action_steps)]
    )

    seeds = lerobot_rows.session(policy, 3)
    engine = policy._engine
    lerobot, processing = light_copy(engine._policy), engine._loaded
    theirs = []
    for step in range(steps):
        if step % spec.n_action_steps == 0:
            torch.manual_seed(seeds.next_seed())  # type: ignore[attr-defined]
        frame = lerobot_rows.frame(3, step)
        image = torch.from_numpy(np.asarray(frame["observation.image"])[None]).permute(0, 3, 1, 2).contiguous()
        batch = {
            "observation.image": image.type(torch.float32) / 255,
            "observation.state": torch.from_numpy(np.asarray(frame["observation.state"])[None]),
            "task": [frame["task"]],
        }
        with torch.inference_mode():
            action = processing.postprocessor(lerobot.select_action(processing.preprocessor(batch)))
        theirs.append(action.numpy()[0])
    if engine.batching.size == 1:
        assert np.array_equal(ours, np.stack(theirs))
    else:  # a padded batch rounds otherwise than a single row
        np.testing.assert_allclose(ours, np.stack(theirs), rtol=1e-5, atol=1e-4)


def test_each_policy_is_driven_in_its_lightest_right_way(drifter: Path) -> None:
    modes = {kind: policy_of(tiny_lerobot.shared(kind)).session_mode for kind in ("act", "diffusion", "vqbet")}
    assert modes == {"act": "chunk", "diffusion": "history", "vqbet": "history"}
    assert policy_of(tiny_lerobot.shared("act_ensembling")).session_mode == "copy"
    assert policy_of(drifter).session_mode == "copy"


def test_history_reaches_the_policy(policy: LeRobotPolicy) -> None:
    past = policy.spec().n_obs_steps
    if past == 1:
        pytest.skip("reads no history")
    row = lerobot_rows.row(policy, 0, 5)
    other = {**row, "observation.state": row["observation.state"].copy()}
    other["observation.state"][0] += 50
    a, b = (policy.act([lerobot_rows.session(policy)], [r]) for r in (row, other))
    assert not np.array_equal(a, b)


def test_copies_share_weights_and_nothing_else(drifter: Path) -> None:
    policy = policy_of(drifter)._engine._policy
    twin = light_copy(policy)
    assert all(a is b for a, b in zip(policy.parameters(), twin.parameters(), strict=True))
    assert twin.memory is not policy.memory
    assert twin.steps.data_ptr() != policy.steps.data_ptr()


def test_policy_that_cannot_be_copied_is_refused_with_a_way_out(drifter: Path) -> None:
    policy = LeRobotPolicy(str(drifter))
    policy._engine._policy.lock = (i for i in range(3))
    with pytest.raises(ConfigError, match="cannot be copied for each episode"):
        lerobot_rows.session(policy)


def test_any_policy_may_be_driven_by_copies() -> None:
    by_copies = policy_of(tiny_lerobot.shared("act"), session_mode="copy")
    assert by_copies.spec().n_action_steps == 1
    assert by_copies.n_action_steps == 8
    single = policy_of(tiny_lerobot.shared("act"), max_batch=1)
    session = lerobot_rows.session(by_copies)
    played = [by_copies.act([session], [lerobot_rows.row(by_copies, 0, 0)])[0, 0] for _ in range(8)]
    assert np.array_equal(
        np.stack(played), single.act([lerobot_rows.session(single)], [lerobot_rows.row(single, 0)])[0]
    )
