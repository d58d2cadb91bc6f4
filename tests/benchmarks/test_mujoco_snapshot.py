from __future__ import annotations

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from robotrials.benchmarks.mujoco_snapshot import Snapshot

BALL = """<mujoco><worldbody>
  <geom type="plane" size="1 1 .1"/>
  <body name="ball" pos="0 0 .2"><freejoint/><geom size=".1"/><site name="mark"/></body>
</worldbody></mujoco>"""


@pytest.fixture
def env() -> SimpleNamespace:
    """A ball that has fallen onto a plane, so that there are contacts."""
    model = mujoco.MjModel.from_xml_string(BALL)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=150)
    start = np.zeros(3)
    return SimpleNamespace(
        model=model,
        data=data,
        start=start,
        same_start=start,
        mark=data.site("mark").xpos,
        past=[1, [2]],
        generator=np.random.default_rng(0),
    )


def _fall(env: SimpleNamespace, steps: int = 40) -> bytes:
    mujoco.mj_step(env.model, env.data, nstep=steps)
    return env.data.qpos.tobytes() + env.data.qvel.tobytes() + env.data.site_xpos.tobytes()


def test_physics_goes_on_from_there_bit_for_bit(env: SimpleNamespace) -> None:
    snapshot = Snapshot(env)
    first = _fall(env)
    env.model.body("ball").pos = (1.0, 2.0, 3.0)
    env.model.geom_friction[:] = 0.1
    env.data.qvel[:] = 5.0
    env.data.xfrc_applied[:] = 1.0
    assert _fall(env) != first
    snapshot.restore()
    assert env.data.time == pytest.approx(0.3)
    assert _fall(env) == first


def test_computed_positions_are_those_of_then_and_not_of_a_forward_pass(env: SimpleNamespace) -> None:
    before = env.data.site_xpos.copy()  # one step behind qpos, as a step leaves it
    snapshot = Snapshot(env)
    _fall(env)
    snapshot.restore()
    assert np.array_equal(env.data.site_xpos, before)


def test_attributes_come_back_and_new_ones_go(env: SimpleNamespace) -> None:
    snapshot = Snapshot(env)
    env.past[1].append(3)
    env.start = np.ones(3)
    env.later = 1
    for _ in range(2):
        snapshot.restore()
        assert env.past == [1, [2]]
        assert not hasattr(env, "later")
        env.past.append("what the second restore must undo")


def test_arrays_that_were_one_are_one_again(env: SimpleNamespace) -> None:
    snapshot = Snapshot(env)
    snapshot.restore()
    assert env.start is env.same_start
    env.start[0] = 7.0
    snapshot.restore()
    assert env.start[0] == 0.0


def test_an_attribute_that_looks_into_the_simulator_goes_on_looking(env: SimpleNamespace) -> None:
    snapshot = Snapshot(env)
    snapshot.restore()
    env.data.site("mark").xpos = (4.0, 5.0, 6.0)
    assert env.mark.tolist() == [4.0, 5.0, 6.0]


def test_what_is_no_plain_value_stays_as_it_is(env: SimpleNamespace) -> None:
    generator = env.generator
    snapshot = Snapshot(env)
    drawn = generator.random()
    snapshot.restore()
    assert env.generator is generator
    assert generator.random() != drawn
