"""The inner loop: what is played, seen, filmed and counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robotrials.control.heartbeat import Heartbeat
from robotrials.errors import ContractError, NonFiniteError, NoPictureError, VideoError
from robotrials.plan.plan import build_plan
from robotrials.policies.base import Policy
from robotrials.results.record import EndReason
from robotrials.results.video import EpisodeVideo
from robotrials.worker.rollout import Rollout
from tests import toy

BENCHMARK = toy.Toy(toy.ToyConfig(task="a"))
TASK = BENCHMARK.tasks()[0]
PLAN = build_plan([TASK], 8, 1000)


def play(policy: Policy, index: int = 0, env: toy.ToyEnv | None = None, video: EpisodeVideo | None = None):
    env = env or toy.ToyEnv(toy.ToyConfig())
    return Rollout(env, policy, TASK, {}, Heartbeat()).run(PLAN.episodes[index], 1, "w0", video)


def outcome(record):
    return (record.end, record.success, record.steps, record.reward_sum, record.reward_max)


def test_cameras_are_rendered_once_per_look_and_never_between() -> None:
    env = toy.ToyEnv(toy.ToyConfig())
    record = play(toy.Seer(n=5), env=env)
    assert record.looks == -(-record.steps // 5)
    assert env.renders == record.renders == record.looks


def test_outcome_does_not_depend_on_what_the_policy_looked_at() -> None:
    class Blind(toy.Seer):
        def spec(self):
            spec = super().spec()
            return type(spec)(**{**spec.__dict__, "observations": {"observation.state": None}})

    env = toy.ToyEnv(toy.ToyConfig())
    assert outcome(play(Blind(), env=env)) == outcome(play(toy.Seer()))
    assert env.renders == 0


def test_outcome_does_not_depend_on_recording_nor_on_what_ran_before(tmp_path: Path) -> None:
    env = toy.ToyEnv(toy.ToyConfig())
    plain = [outcome(play(toy.Seer(), index)) for index in range(4)]
    video = EpisodeVideo(tmp_path / "v.mp4", TASK.control_hz, 20.0)
    mixed = [outcome(play(toy.Seer(), index, env, video if index == 2 else None)) for index in (3, 2, 1, 0)]
    video.finish()
    assert mixed[::-1] == plain


def test_reward_is_summed_over_the_steps_taken_and_an_all_negative_maximum_is_negative() -> None:
    class Still(toy.Seer):
        def act(self, sessions, observations):
            return np.zeros((1, self.n, 1))

    env = toy.ToyEnv(toy.ToyConfig())
    record = play(Still(), env=env)
    assert (record.end, record.steps, record.success) == (EndReason.TIME_LIMIT, toy.MAX_STEPS, False)
    slip, position, rewards = np.random.default_rng(1000), 0.0, []
    for _ in range(toy.MAX_STEPS):
        position += float(slip.normal(0.0, 0.02))
        rewards.append(-abs(position - env.goal))
    assert record.reward_sum == pytest.approx(sum(rewards), rel=1e-12)
    assert record.reward_max == pytest.approx(max(rewards), rel=1e-12)
    assert record.reward_max < 0


def test_history_holds_the_last_steps_before_each_look_and_repeats_the_first() -> None:
    policy = toy.Seer(n=4, history=3, noise=0.0)
    env = toy.ToyEnv(toy.ToyConfig())
    states: list[float] = []

    class Tracking(type(env)):  # type: ignore[misc]
        def step(self, action):
            states.append(self.position)
            return super().step(action)

    env.__class__ = Tracking
    record = play(policy, env=env)
    first, second = policy.seen[0], policy.seen[1]
    assert first["observation.image"].shape == (3, 32, 32, 3)
    assert np.ptp(first["observation.state"][:, 0]) == 0
    np.testing.assert_allclose(second["observation.state"][:, 0], states[2:5], rtol=1e-6)
    assert (
        env.renders
        == record.renders
        == 1
        + 3 * (record.looks - 1)
        + sum(1 for step in range((record.looks - 1) * 4 + 1, record.steps) if (step % 4) in (2, 3))
    )


def test_video_reuses_the_frames_that_the_policy_saw(tmp_path: Path) -> None:
    env = toy.ToyEnv(toy.ToyConfig())
    video = EpisodeVideo(tmp_path / "v.mp4", TASK.control_hz, 20.0)
    record = play(toy.Seer(n=5), env=env, video=video)
    video.finish()
    assert env.renders == record.steps + 1  # one a step and the last; none twice


def test_action_of_another_size_names_both_sides() -> None:
    with pytest.raises(ContractError, match=r"shape \(1, 1, 7\).*right is \(1, T, 1\)"):
        play(toy.WrongShape())


def test_nan_action_is_refused_at_the_call_that_made_it() -> None:
    assert play(toy.NotANumber(), 0).steps > 3
    with pytest.raises(ContractError, match="not finite numbers at its call 3"):
        play(toy.NotANumber(), 1)


def test_missing_success_signal_is_an_error_and_no_failure() -> None:
    env = toy.ToyEnv(toy.ToyConfig(trouble="no_success@a/0"))
    with pytest.raises(ContractError, match="no success signal at step 1"):
        play(toy.Seer(), env=env)


class Shaky(toy.ToyEnv):
    """Its position is not finite from step 7 to step 11."""

    def observe(self, cameras):
        seen = super().observe(cameras)
        if 7 <= self._step <= 11:
            seen["observation.state"][0] = self.odd
        return seen


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_observations_that_are_not_finite_are_counted_and_change_nothing(odd: float) -> None:
    env = Shaky(toy.ToyConfig())
    env.odd = odd
    rollout = Rollout(env, toy.Steady(n=5), TASK, {}, Heartbeat())
    record = rollout.run(PLAN.episodes[0], 1, "w0", None)
    assert record.nonfinite == 1  # it looks at steps 0, 5, 10, ...
    assert rollout.finite.words() == (
        f"observation.state held NaN or infinity in 1 of {record.looks} observations, first at step 10"
    )
    plain = play(toy.Steady(n=5))
    assert (outcome(record), plain.nonfinite) == (outcome(plain), 0)


@pytest.mark.filterwarnings("error")
def test_numbers_that_are_finite_and_whose_sum_is_not_are_finite() -> None:
    class Huge(toy.ToyEnv):
        def observe(self, cameras):
            return {**super().observe(cameras), "observation.state": np.full(2, 3e38, np.float32)}

    assert play(toy.Steady(n=5), env=Huge(toy.ToyConfig())).nonfinite == 0


def test_where_they_are_refused_the_episode_is_an_error_that_names_key_and_step() -> None:
    env = Shaky(toy.ToyConfig())
    env.odd = np.nan
    rollout = Rollout(env, toy.Steady(n=5), TASK, {}, Heartbeat(), refuses_nonfinite=True)
    with pytest.raises(NonFiniteError, match=r"1 of 2 numbers of observation\.state are NaN or infinite at step 10"):
        rollout.run(PLAN.episodes[0], 1, "w0", None)


def test_a_nan_action_after_a_nan_observation_says_so() -> None:
    env = Shaky(toy.ToyConfig())
    env.odd = np.nan
    with pytest.raises(ContractError, match=r"not finite numbers at its call 3 .*held NaN .* first at step 10"):
        play(toy.Seer(n=5), env=env)


@pytest.mark.parametrize("told", [0.3, float("nan"), -1, "yes", np.float32(0.5)])
def test_progress_or_nonsense_is_no_success(told: object) -> None:
    class Vague(toy.ToyEnv):
        def step(self, action):
            return super().step(action)._replace(success=told)

    with pytest.raises(ContractError, match=r"as success at step 1; right is True or False"):
        play(toy.Seer(), env=Vague(toy.ToyConfig()))


@pytest.mark.parametrize("told", [1, 1.0, np.bool_(True), np.float32(1)])
def test_a_one_of_another_type_is_a_success(told: object) -> None:
    class Typed(toy.ToyEnv):
        def step(self, action):
            return super().step(action)._replace(success=told, terminated=True)

    record = play(toy.Seer(), env=Typed(toy.ToyConfig()))
    assert (record.end, record.success) == (EndReason.SUCCESS, True)


def test_an_observation_that_changes_its_shape_is_an_error() -> None:
    class Shrinking(toy.ToyEnv):
        looks = 0

        def observe(self, cameras):
            seen = super().observe(cameras)
            self.looks += 1
            if self.looks == 3:
                seen["observation.state"] = seen["observation.state"][:1]
            return seen

    with pytest.raises(ContractError, match=r"declares observation\.state"):
        play(toy.Seer(n=1), env=Shrinking(toy.ToyConfig()))


class Undrawn(toy.ToyEnv):
    """Cannot be drawn from step 3 on."""

    def render(self) -> np.ndarray:
        if self._step >= 3:
            raise self.error
        return super().render()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError("EGL is gone"), "OSError: EGL is gone"),
        (NoPictureError("nothing to draw"), "nothing to draw"),
        (NoPictureError("the next episode's", by_design=True), None),
    ],
)
def test_no_film_ends_an_episode(tmp_path: Path, error: Exception, why: str | None) -> None:
    class Still(toy.Seer):
        def spec(self):
            spec = super().spec()
            return type(spec)(**{**spec.__dict__, "observations": {"observation.state": None}})

    env = Undrawn(toy.ToyConfig())
    env.error = error
    video = EpisodeVideo(tmp_path / "v.mp4", TASK.control_hz, 20.0)
    assert outcome(play(Still(), env=env, video=video)) == outcome(play(toy.Seer()))
    if why is None:
        assert video.finish().is_file()
    else:
        with pytest.raises(VideoError, match=why):
            video.finish()
