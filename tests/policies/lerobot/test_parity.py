"""The installed lerobot-eval and robotrials on the same checkpoints and seeds: the same episodes come out.

lerobot-eval runs whole, in this process, at batch size 1; robotrials plays the same episodes through its own
environments, looking only when the policy looks. Actions and rewards must agree to 1e-5, and success exactly.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("lerobot")

os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import gymnasium
import torch
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.processor import PolicyProcessorPipeline
from lerobot.scripts import lerobot_eval

from robotrials.benchmarks.base import Benchmark, Env, Observation, StepOutcome
from robotrials.benchmarks.registry import make_benchmark
from robotrials.control.heartbeat import Heartbeat
from robotrials.plan.config import EnvChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import Plan, build_plan
from robotrials.plan.task import ActionSpec, TaskSpec
from robotrials.policies.lerobot.policy import LeRobotPolicy
from robotrials.worker.rollout import Rollout
from tests.policies import tiny_lerobot

SEED = 1000


@dataclass
class Outcomes:
    """Per episode; ``actions`` are (steps, A)."""

    sum_rewards: list[float]
    max_rewards: list[float]
    successes: list[bool]
    actions: list[np.ndarray]


def lerobot_outcomes(checkpoint: Path, out: Path, monkeypatch: pytest.MonkeyPatch, *flags: str) -> Outcomes:
    """Run ``lerobot-eval`` as its command line does, and read the file it leaves."""
    arguments = [f"--policy.path={checkpoint}", f"--output_dir={out}", "--eval.batch_size=1", "--policy.device=cpu"]
    monkeypatch.setattr(sys, "argv", ["lerobot-eval", *arguments, *flags])
    torch.set_num_threads(1)
    actions: list[np.ndarray] = []
    rollout = lerobot_eval.rollout

    def watched(*args: Any, **kwargs: Any) -> dict[str, Any]:
        data: dict[str, Any] = rollout(*args, **kwargs)
        actions.extend(data["action"].numpy())
        return data

    with monkeypatch.context() as patch:
        patch.setattr(lerobot_eval, "rollout", watched)
        lerobot_eval.eval_main()
    (task,) = json.loads((out / "eval_info.json").read_text())["per_task"]
    metrics = task["metrics"]
    return Outcomes(metrics["sum_rewards"], metrics["max_rewards"], metrics["successes"], actions)


def robotrials_outcomes(policy: LeRobotPolicy, benchmark: Benchmark, plan: Plan) -> Outcomes:
    task = plan.tasks[0]
    env = benchmark.make(task)
    kind: Any = type(env)
    taken: list[np.ndarray] = []

    class Watched(kind):
        def step(self, action: np.ndarray) -> StepOutcome:
            taken.append(action)
            outcome: StepOutcome = super().step(action)
            return outcome

    env.__class__ = Watched
    rollout = Rollout(env, policy, task, {}, Heartbeat())
    outcomes = Outcomes([], [], [], [])
    for episode in plan:
        record = rollout.run(episode, 1, "w0", None)
        assert record.reward_sum is not None
        assert record.reward_max is not None
        outcomes.sum_rewards.append(record.reward_sum)
        outcomes.max_rewards.append(record.reward_max)
        outcomes.successes.append(bool(record.success))
        outcomes.actions.append(np.stack(taken))
        taken.clear()
    env.close()
    return outcomes


def assert_equal(ours: Outcomes, theirs: Outcomes) -> None:
    assert ours.successes == theirs.successes
    for mine, their in zip(ours.actions, theirs.actions, strict=True):
        np.testing.assert_allclose(mine, their, rtol=1e-5)
    np.testing.assert_allclose(ours.sum_rewards, theirs.sum_rewards, rtol=1e-5)
    np.testing.assert_allclose(ours.max_rewards, theirs.max_rewards, rtol=1e-5)


def hand_over_noise(
    monkeypatch: pytest.MonkeyPatch, policy: LeRobotPolicy, plan: Iterable[EpisodeSpec], task: TaskSpec
) -> None:
    """Let LeRobot's policy draw at each look the noise that robotrials draws there: a sampling policy's only input
    that lerobot-eval takes from a generator which runs on from episode to episode."""
    make_policy = lerobot_eval.make_policy

    def make(*args: Any, **kwargs: Any) -> Any:
        theirs = make_policy(*args, **kwargs)
        select_action, reset = theirs.select_action, theirs.reset
        episodes = iter(plan)
        session: list[Any] = []

        def next_episode() -> None:
            reset()
            session[:] = [policy.new_session(next(episodes), task)]

        def select(batch: dict[str, Any]) -> torch.Tensor:
            if not theirs._queues["action"]:
                torch.manual_seed(session[0].next_seed())
            action: torch.Tensor = select_action(batch)
            return action

        theirs.reset, theirs.select_action = next_episode, select
        return theirs

    monkeypatch.setattr(lerobot_eval, "make_policy", make)


def pusht(length: int, n_episodes: int) -> tuple[Benchmark, Plan]:
    benchmark = make_benchmark(EnvChoice("pusht", {"episode_length": length}))
    return benchmark, build_plan(benchmark.tasks(), n_episodes, SEED)


PUSHT_FLAGS = ("--env.type=pusht", f"--seed={SEED}", "--eval.n_episodes=3", "--env.episode_length=20")


@pytest.mark.parametrize(
    "build",
    [tiny_lerobot.act, tiny_lerobot.act_ensembling, tiny_lerobot.diffusion, tiny_lerobot.vqbet],
    ids=lambda build: build.__name__,
)
def test_pusht_episodes_are_lerobot_evals(
    build: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tiny_lerobot.shared(build.__name__)
    policy = LeRobotPolicy(str(checkpoint), max_batch=1)
    benchmark, plan = pusht(20, 3)
    if policy.describe()["batching"]["samples"] and policy.session_mode == "history":
        hand_over_noise(monkeypatch, policy, plan, plan.tasks[0])
    theirs = lerobot_outcomes(checkpoint, tmp_path / "eval", monkeypatch, *PUSHT_FLAGS)
    ours = robotrials_outcomes(policy, benchmark, plan)
    assert_equal(ours, theirs)
    assert len(set(ours.sum_rewards)) == 3, "three episodes that pay the same would prove little"


TRAINED = Path(__file__).parents[1] / "data/act_pusht_trained"
"""Trained by lerobot-train on 20 episodes of a random policy (400 steps): it pushes the block about, no more."""


def test_whole_episodes_of_a_trained_policy_are_lerobot_evals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 steps, over which a last bit would grow: the block's contacts amplify it."""
    state = "environment_state_agent_pos"
    policy = LeRobotPolicy(str(TRAINED), max_batch=1)
    benchmark = make_benchmark(EnvChoice("pusht", {"obs_type": state}))
    plan = build_plan(benchmark.tasks(), 4, SEED)
    flags = ("--env.type=pusht", f"--seed={SEED}", "--eval.n_episodes=4", f"--env.obs_type={state}")
    theirs = lerobot_outcomes(TRAINED, tmp_path / "eval", monkeypatch, *flags)
    ours = robotrials_outcomes(policy, benchmark, plan)
    assert_equal(ours, theirs)
    assert [len(actions) for actions in ours.actions] == [300] * 4
    assert max(ours.max_rewards) > 0.0


@pytest.mark.parametrize("build", [tiny_lerobot.act, tiny_lerobot.diffusion], ids=lambda build: build.__name__)
def test_metaworld_episodes_are_lerobot_evals(
    build: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run of lerobot-eval for every episode: there, only the first of an environment depends on its seed alone."""
    steps, flags = 6, ("--env.type=metaworld", "--env.task=push-v3", "--eval.n_episodes=1")
    checkpoint = build(tmp_path / "checkpoint", features=tiny_lerobot.METAWORLD, n_action_steps=4)
    policy = LeRobotPolicy(str(checkpoint), max_batch=1)
    benchmark = make_benchmark(EnvChoice("metaworld", {"task": "push-v3", "episode_length": steps}))
    plan = build_plan(benchmark.tasks(), 2, SEED)
    shorten_metaworld(monkeypatch, steps)
    theirs = Outcomes([], [], [], [])
    for episode in plan:
        with monkeypatch.context() as patch:
            if policy.session_mode == "history":
                hand_over_noise(patch, policy, [episode], plan.tasks[0])
            one = lerobot_outcomes(checkpoint, tmp_path / str(episode.id), patch, *flags, f"--seed={episode.seed}")
        theirs.sum_rewards += one.sum_rewards
        theirs.max_rewards += one.max_rewards
        theirs.successes += one.successes
        theirs.actions += one.actions
    ours = robotrials_outcomes(policy, benchmark, plan)
    assert_equal(ours, theirs)
    assert len(set(ours.sum_rewards)) == 2


def shorten_metaworld(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """LeRobot's Meta-World has no flag for its 500 steps, each of which renders twice."""
    from lerobot.envs.metaworld import MetaworldEnv

    build = MetaworldEnv.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        self._max_episode_steps = steps

    monkeypatch.setattr(MetaworldEnv, "__init__", init)


LENGTHS = {0: 2, 1: 5}
"""Steps of an episode by its seed; every step pays 1."""


class Paying(gymnasium.Env):
    """Pays 1 a step until its episode, whose length is known, ends in success."""

    observation_space = gymnasium.spaces.Dict(
        {"environment_state": gymnasium.spaces.Box(-1, 1, (16,)), "agent_pos": gymnasium.spaces.Box(-1, 1, (2,))}
    )
    action_space = gymnasium.spaces.Box(-1, 1, (2,))
    metadata: ClassVar[dict[str, Any]] = {"render_fps": 10}
    _max_episode_steps = 8
    left = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.left = LENGTHS[seed] if seed is not None else 8
        return self._seen(), {"is_success": False}

    def step(self, action: np.ndarray) -> Any:
        self.left -= 1
        return self._seen(), 1.0, self.left == 0, False, {"is_success": self.left == 0}

    def _seen(self) -> dict[str, np.ndarray]:
        return {"environment_state": np.zeros(16, np.float32), "agent_pos": np.zeros(2, np.float32)}


class PayingEnv(Env):
    """The same behind robotrials' interface."""

    def __init__(self) -> None:
        self._env = Paying()

    def reset(self, episode: EpisodeSpec) -> None:
        self._env.reset(seed=episode.seed)

    def observe(self, cameras: Sequence[str]) -> Observation:
        return {f"observation.{key}": np.zeros(n, np.float32) for key, n in (("environment_state", 16), ("state", 2))}

    def step(self, action: np.ndarray) -> StepOutcome:
        _, reward, terminated, truncated, info = self._env.step(action)
        return StepOutcome(reward, terminated, truncated, info["is_success"])

    def render(self) -> np.ndarray:
        raise NotImplementedError

    def close(self) -> None:
        pass


def test_rewards_after_the_end_are_not_counted_as_lerobot_eval_does(tmp_path: Path) -> None:
    """At batch 2 lerobot-eval adds to the episode that ends first one reward of the episode after it."""
    features = {
        "observation.environment_state": PolicyFeature(FeatureType.ENV, (16,)),
        "observation.state": PolicyFeature(FeatureType.STATE, (2,)),
    }
    checkpoint = tiny_lerobot.act(tmp_path, features=features)
    policy = LeRobotPolicy(str(checkpoint), max_batch=1)
    task = TaskSpec("paying", "paying", 0, "", 8, 10.0, {}, ActionSpec(2, (-1.0,) * 2, (1.0,) * 2))
    rollout = Rollout(PayingEnv(), policy, task, {}, Heartbeat())
    right = [rollout.run(episode, 1, "w0", None).reward_sum for episode in build_plan([task], 2, 0)]
    assert right == [2.0, 5.0]

    vector = gymnasium.vector.SyncVectorEnv([Paying, Paying], autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    loaded = policy._engine._loaded
    nothing = PolicyProcessorPipeline(steps=[])
    info = lerobot_eval.eval_policy(
        vector, loaded.policy, nothing, nothing, loaded.preprocessor, loaded.postprocessor, n_episodes=2, start_seed=0
    )
    assert [episode["sum_reward"] for episode in info["per_episode"]] == [3.0, 5.0]
