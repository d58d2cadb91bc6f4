from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from robotrials.benchmarks.adapters.foreign.single_env import SingleEnv, first_row
from robotrials.errors import ContractError


class Point(gymnasium.Env):
    """Moves by its action and succeeds beyond 1."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012
    observation_space = gymnasium.spaces.Dict({"agent_pos": gymnasium.spaces.Box(-9, 9, (2,), np.float32)})
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    task_description = "Go far away."

    def __init__(self) -> None:
        self.render_mode = "rgb_array"
        self._max_episode_steps = 7

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(0, 0.1, 2).astype(np.float32)
        return {"agent_pos": self.at.copy()}, {}

    def step(self, action):
        self.at = self.at + action
        done = bool(self.at.max() > 1)
        return {"agent_pos": self.at.copy()}, float(self.at.sum()), done, False, {"is_success": done}

    def render(self):
        return np.full((4, 6, 3), 9, np.uint8)


class Batched:
    """A vector environment of one that does not show what it holds, as simulators on a GPU are."""

    num_envs = 1
    single_observation_space = Point.observation_space
    single_action_space = Point.action_space
    task_description = ("Go far away.",)

    def __init__(self) -> None:
        self._env = Point()

    def reset(self, seed):
        seen, _ = self._env.reset(seed=seed)
        return {"agent_pos": seen["agent_pos"][None]}, {}

    def step(self, action):
        seen, reward, terminated, truncated, info = self._env.step(action[0])
        infos = {"is_success": np.array([info["is_success"]]), "_is_success": np.array([True])}
        return (
            {"agent_pos": seen["agent_pos"][None]},
            np.array([reward]),
            np.array([terminated]),
            np.array([truncated]),
            infos,
        )

    def render(self):
        return self._env.render()[None]

    def close(self):
        pass


@pytest.mark.parametrize(
    "made", [Point, Batched, lambda: gymnasium.vector.SyncVectorEnv([Point])], ids=["one", "batched", "sync"]
)
def test_one_environment_is_the_same_however_it_came(made) -> None:
    sim = SingleEnv(made())
    first = sim.reset(seed=3)["agent_pos"]
    plain, _ = Point().reset(seed=3)
    assert np.array_equal(first, plain["agent_pos"])
    seen, reward, terminated, truncated, info = sim.step(np.array([0.5, 0.25]))
    assert seen["agent_pos"].shape == (2,)
    assert reward == pytest.approx(float(first.sum()) + 0.75, rel=1e-6)
    assert (terminated, truncated, bool(info["is_success"])) == (False, False, False)
    *_, terminated, _, info = sim.step(np.array([1.0, 0.0]))
    assert terminated
    assert info["is_success"]
    picture = sim.render()
    assert picture is not None
    assert picture.shape == (4, 6, 3)
    assert sim.attribute("task_description") == "Go far away."
    assert sim.attribute("nothing", 5) == 5
    sim.close()


@pytest.mark.parametrize("vector", [False, True], ids=["one", "sync"])
def test_actions_of_integers_are_rounded_and_clipped(vector) -> None:
    class Gripper(Point):
        action_space = gymnasium.spaces.Box(0, 255, (2,), np.uint8)

        def step(self, action):
            self.got = action
            return super().step(action)

    inner = Gripper()
    inner.action_space = Gripper.action_space
    sim = SingleEnv(gymnasium.vector.SyncVectorEnv([lambda: inner]) if vector else inner)
    sim.reset(seed=3)
    sim.step(np.array([300.0, 43.9]))
    assert (inner.got.dtype, inner.got.tolist()) == (np.uint8, [255, 44])


def test_attributes_of_what_wrappers_hold_are_found() -> None:
    sim = SingleEnv(gymnasium.wrappers.TimeLimit(Point(), 3))
    assert sim.attribute("_max_episode_steps") == 3
    assert sim.attribute("task_description") == "Go far away."


def test_more_than_one_environment_is_refused() -> None:
    with pytest.raises(ContractError, match="holds 2 environments; asked for was one"):
        SingleEnv(gymnasium.vector.SyncVectorEnv([Point, Point]))


def test_the_first_row_of_nested_batches() -> None:
    batch = {"a": np.arange(4).reshape(2, 2), "b": {"c": ["x", "y"]}, "d": 5, "e": ()}
    row = first_row(batch)
    assert row["a"].tolist() == [0, 1]
    assert (row["b"], row["d"], row["e"]) == ({"c": "x"}, 5, None)


class AsyncVector(Batched):
    """Resets itself in the step that ends an episode, as Gymnasium's AsyncVectorEnv may: what it returns then is of
    the next episode, and its own last words are in ``final_obs`` and ``final_info``."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}  # noqa: RUF012
    tells = True

    def step(self, action):
        *answer, infos = super().step(action)
        if not answer[2][0]:
            return (*answer, infos)
        last = np.full(1, None, object)
        last[0] = {"agent_pos": answer[0]["agent_pos"][0]}
        final = {"final_obs": last, "final_info": infos}
        answer[0], _ = self.reset(seed=99)
        return (*answer, {"is_success": np.array([False]), **(final if self.tells else {})})


def test_one_that_resets_itself_is_judged_by_the_episode_that_ended() -> None:
    sim = SingleEnv(AsyncVector())
    first = sim.reset(seed=3)["agent_pos"]
    assert sim.render() is not None
    seen, _, terminated, _, info = sim.step(np.array([1.0, 0.5]))
    assert terminated
    assert bool(info["is_success"]) is True
    assert np.allclose(seen["agent_pos"], first + np.array([1.0, 0.5]))
    assert sim.shows_the_next
    assert sim.render() is None  # it would be the next episode's
    sim.reset(seed=4)
    assert sim.render() is not None


def test_one_that_resets_itself_and_keeps_nothing_says_nothing_of_success() -> None:
    made = AsyncVector()
    made.tells = False
    sim = SingleEnv(made)
    sim.reset(seed=3)
    step = sim.step(np.array([1.0, 0.5]))
    assert (step.terminated, step.info) == (True, {})
