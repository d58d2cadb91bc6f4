"""An environment whose calls come out of order says so."""

from __future__ import annotations

import numpy as np
import pytest

from robotrials.benchmarks.base import Observation
from robotrials.errors import CallOrderError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.plan import build_plan
from tests import toy

EPISODE = build_plan(toy.Toy(toy.ToyConfig()).tasks(), 1, 1000).episodes[0]


def test_calls_before_reset_and_after_close_are_refused_by_name() -> None:
    env = toy.ToyEnv(toy.ToyConfig())
    with pytest.raises(CallOrderError, match=r"ToyEnv\.step was called before reset"):
        env.step(np.zeros(1))
    with pytest.raises(CallOrderError, match=r"ToyEnv\.observe was called before reset"):
        env.observe([])
    env.reset(EPISODE)
    env.step(np.zeros(1))
    assert env.expert().act().shape == (1,)
    env.close()
    with pytest.raises(CallOrderError, match=r"ToyEnv\.render was called after close"):
        env.render()
    env.close()


def test_reset_that_closes_the_scene_before_and_looks_at_the_new_one_is_in_order() -> None:
    class Rebuilt(toy.ToyEnv):
        def reset(self, episode: EpisodeSpec) -> None:
            self.close()
            super().reset(episode)
            self.first: Observation = self.observe([])

    env = Rebuilt(toy.ToyConfig())
    for _ in range(2):
        env.reset(EPISODE)
        env.step(np.zeros(1))
    assert "step" not in env.__dict__, "nothing stands between a step and its simulator"


def test_after_a_reset_that_failed_another_is_needed() -> None:
    class Fragile(toy.ToyEnv):
        fails = True

        def reset(self, episode: EpisodeSpec) -> None:
            if self.fails:
                raise RuntimeError("the scene does not settle")
            super().reset(episode)

    env = Fragile(toy.ToyConfig())
    with pytest.raises(RuntimeError, match="settle"):
        env.reset(EPISODE)
    with pytest.raises(CallOrderError, match="after a reset that failed"):
        env.step(np.zeros(1))
    env.fails = False
    env.reset(EPISODE)
    env.step(np.zeros(1))
