"""LIBERO in its simulator: equal to what LeRobot runs, episode for episode, whatever ran before."""

from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.libero.benchmark import LiberoEnv
from robotrials.benchmarks.adapters.libero.scene import NO_OP, quaternion_to_axis_angle
from robotrials.benchmarks.adapters.libero.tasks import SUITES, members
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.results.ledger import Ledger
from tests.benchmarks.scenes import in_a_fresh_process, make

pytest.importorskip("libero", reason="needs robotrials[libero]")

IMAGES = ("observation.images.image", "observation.images.image2")
SIZE = 96
SMALL = {"observation_width": SIZE, "observation_height": SIZE}
STOVE = {"task": "libero_goal", "task_ids": "7", **SMALL}

Scene = tuple[TaskSpec, LiberoEnv]


def built(**options: Any) -> Scene:
    task, env = make("libero", **options)
    assert isinstance(env, LiberoEnv)
    return task, env


@pytest.fixture(scope="module")
def stove() -> Iterator[Scene]:
    """The task "turn on the stove": building it costs 3 CPU seconds, the first picture as much again."""
    task, env = built(**STOVE)
    yield task, env
    env.close()


def episode(task: TaskSpec, index: int) -> EpisodeSpec:
    return EpisodeSpec(0, task.suite, task.name, index, 1000 + index, index, task.max_steps)


def actions(seed: int, steps: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (steps, 7)).astype(np.float32)


def digest(task: TaskSpec, env: LiberoEnv, index: int, steps: int = 6, looks: tuple[int, ...] = (0, 6)) -> str:
    """A hash of all that an episode shows, down to the last bit of the simulator's state."""
    env.reset(episode(task, index))
    sha = hashlib.sha256()
    for step, action in enumerate(actions(index, steps + 1)):
        seen = env.observe(task.images if step in looks else [])
        for key in sorted(seen):
            value = seen[key]
            sha.update(value.tobytes() if isinstance(value, np.ndarray) else value.encode())
        sha.update(env._scene.state.tobytes())
        if step < steps:
            sha.update(repr(env.step(action)).encode())
    return sha.hexdigest()


def with_stove_on(env: LiberoEnv, index: int) -> np.ndarray:
    """The stored states, of which number ``index`` has the stove's knob turned."""
    assert env._states is not None
    states = env._states.copy()
    knob = env._scene._env.sim.model.get_joint_qpos_addr("flat_stove_1_button")
    states[index, 1 + knob] = 0.8
    return states


# --- equal to what LeRobot runs


def lerobots_episode(task: TaskSpec, env: LiberoEnv, index: int, played: np.ndarray) -> list[tuple[Any, ...]]:
    """What LeRobot 0.6.1's LiberoEnv does in its first episode, with LIBERO's own wrapper, always rendering."""
    from libero.libero.envs import OffScreenRenderEnv

    assert env._states is not None
    original = OffScreenRenderEnv(
        bddl_file_name=env._scene._env.bddl_file_name, camera_heights=SIZE, camera_widths=SIZE, control_freq=20
    )
    try:
        original.reset()
        original.seed(1000 + index)
        original.reset()
        seen = original.set_init_state(env._states[index])
        for _ in range(10):
            seen, *_ = original.step(list(NO_OP))
        for robot in original.robots:
            robot.controller.use_delta = env._config.control_mode == "relative"
        told = []
        for action in (*played, None):
            pictures = [seen[name][::-1, ::-1] for name in ("agentview_image", "robot0_eye_in_hand_image")]
            proprioception = [seen[f"robot0_{name}"] for name in ("eef_pos", "eef_quat", "gripper_qpos")]
            rotation = np.array(original.robots[0].controller.ee_ori_mat)
            told.append((original.get_sim_state(), *proprioception, rotation, *pictures))
            if action is not None:
                seen, reward, done, _ = original.step(action)
                told.append((reward, bool(done or original.check_success())))
        return told
    finally:
        original.close()


def our_episode(task: TaskSpec, env: LiberoEnv, index: int, played: np.ndarray) -> list[tuple[Any, ...]]:
    """The same from our environment, which looks at every third step only."""
    env.reset(episode(task, index))
    scene = env._scene
    told: list[tuple[Any, ...]] = []
    for step, action in enumerate((*played, None)):
        seen = env.observe(task.images if step % 3 == 0 else [])
        pictures = [seen[key] for key in IMAGES] if step % 3 == 0 else []
        proprioception = (scene.eef_pos, scene.eef_quat, scene.gripper_qpos, scene.controller_rotation)
        told.append((scene.state, *proprioception, *pictures))
        if action is not None:
            outcome = env.step(action)
            told.append((outcome.reward, outcome.success))
    return told


def assert_equal_bit_for_bit(task: TaskSpec, env: LiberoEnv, index: int, steps: int) -> None:
    played = actions(index, steps)
    theirs, ours = lerobots_episode(task, env, index, played), our_episode(task, env, index, played)
    assert len(theirs) == len(ours) == 2 * steps + 1
    for theirs_then, ours_then in zip(theirs, ours, strict=True):
        for one, other in zip(theirs_then, ours_then, strict=False):  # ours has fewer pictures
            np.testing.assert_array_equal(one, other)


def test_an_episode_equals_lerobots_bit_for_bit_though_others_ran_before(stove: Scene) -> None:
    task, env = stove
    env.reset(episode(task, 3))
    env.step(actions(0, 1)[0])
    assert_equal_bit_for_bit(task, env, index=1, steps=7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "number", "options"),
    [
        ("libero_spatial", 4, {}),
        ("libero_object", 3, {"control_mode": "absolute"}),
        ("libero_goal", 3, {}),
        ("libero_10", 2, {}),
        ("libero_10", 9, {"control_mode": "absolute"}),
        ("libero_90", 40, {}),
        ("libero_goal_swap", 1, {}),
    ],
)
def test_other_scenes_equal_lerobots_bit_for_bit(suite: str, number: int, options: dict[str, str]) -> None:
    task, env = built(task=suite, task_ids=str(number), **SMALL, **options)
    env.reset(episode(task, 3))
    env.step(actions(0, 1)[0])
    assert_equal_bit_for_bit(task, env, index=2, steps=30)
    env.close()


# --- an episode is a pure function of its spec


def test_an_episode_is_the_same_after_others_and_in_a_fresh_process(stove: Scene) -> None:
    task, env = stove
    stored = env._states
    env._states = with_stove_on(env, 4)
    assert digest(task, env, 4) != digest(task, env, 0)
    env._states = stored
    here = digest(task, env, 2)
    code = (
        "import tests.benchmarks.conftest\n"
        "from tests.benchmarks.adapters.test_libero import STOVE, built, digest\n"
        "task, env = built(**STOVE)\n"
        "print(digest(task, env, 2))\n"
    )
    there, complaints = in_a_fresh_process(code)
    assert there.strip() == here
    assert complaints == ""  # no traceback of EGL either, though the environment was not closed


def test_looking_does_not_change_physics(stove: Scene) -> None:
    task, env = stove
    states = []
    for looks in (range(6), ()):
        env.reset(episode(task, 5))
        for step, action in enumerate(actions(5, 6)):
            if step in looks:
                env.observe(task.images)
                env.render()
            env.step(action)
        states.append(env._scene.state)
    np.testing.assert_array_equal(states[0], states[1])


def test_computing_contacts_once_a_substep_changes_no_bit(stove: Scene) -> None:
    task, env = stove
    substep = env._scene._substep
    states = []
    for applies in (True, False):
        substep._applies = applies
        env.reset(episode(task, 6))
        for _ in range(25):
            env.step(np.array([1.0, 0.3, -1.0, 0.0, 0.5, 0.0, 1.0]))  # down into the table
        states.append(env._scene.state)
    assert env._scene._data.ncon > 30
    np.testing.assert_array_equal(states[0], states[1])


def test_the_seed_places_fixtures_and_the_stored_state_all_else(stove: Scene) -> None:
    task, env = stove
    model = env._scene._env.sim.model
    body = model.body_name2id("flat_stove_1_main")
    placed, moved = [], []
    for seed, state in ((1000, 0), (1001, 0), (1000, 1)):
        env.reset(EpisodeSpec(0, task.suite, task.name, 0, seed, state, 300))
        placed.append(model.body_pos[body].copy())
        moved.append(env._scene.state)
    assert not np.array_equal(placed[0], placed[1])
    np.testing.assert_array_equal(placed[0], placed[2])
    np.testing.assert_allclose(moved[0][1:8], moved[1][1:8], atol=1e-3)  # the arm
    assert np.abs(moved[0] - moved[2])[1:].max() > 1e-3


# --- success, observations


def test_success_ends_the_episode_and_the_next_one_begins_without_it(stove: Scene) -> None:
    task, env = stove
    stored = env._states
    env.reset(episode(task, 7))
    before = env.observe(task.images)
    assert env.step(np.zeros(7)) == (0.0, False, False, False)
    env._states = with_stove_on(env, 7)
    env.reset(episode(task, 7))
    lit = env.observe(task.images)
    assert env.step(np.zeros(7)) == (1.0, True, False, True)
    env._states = stored
    env.reset(episode(task, 7))
    after = env.observe(task.images)
    for key in IMAGES:
        np.testing.assert_array_equal(after[key], before[key])
    assert not np.array_equal(lit[IMAGES[0]], before[IMAGES[0]])  # the burner glows


def test_observations_are_what_the_policy_sees(stove: Scene) -> None:
    task, env = stove
    env.reset(episode(task, 0))
    seen = env.observe(task.images)
    assert seen["task"] == "turn on the stove"
    assert {key: (seen[key].shape, seen[key].dtype) for key in task.observations} == {  # type: ignore[union-attr]
        IMAGES[0]: ((SIZE, SIZE, 3), np.uint8),
        IMAGES[1]: ((SIZE, SIZE, 3), np.uint8),
        "observation.state": ((8,), np.float32),
    }
    state = seen["observation.state"]
    assert isinstance(state, np.ndarray)
    np.testing.assert_allclose(state[:3], [-0.21, 0.0, 1.19], atol=0.05)  # above the table, in metres
    np.testing.assert_allclose(state[3:6], [np.pi, 0.0, -0.09], atol=0.05)  # pointing down
    np.testing.assert_allclose(state[6:], [0.0387, -0.0387], atol=1e-3)  # open
    np.testing.assert_array_equal(env.render(), seen[IMAGES[0]])
    # Upright: the picture's upper edge shows the wall, which is darker than the table below it.
    picture = seen[IMAGES[0]]
    assert isinstance(picture, np.ndarray)
    assert picture[: SIZE // 8].mean() != pytest.approx(picture[-SIZE // 8 :].mean(), abs=5)


def test_xvla_gets_a_state_of_its_own_and_the_wrists_picture_as_drawn(
    stove: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, env = stove
    env.reset(episode(task, 0))
    usual = env.observe(task.images)
    monkeypatch.setattr(env, "_config", dataclasses.replace(env._config, layout="xvla"))
    seen = env.observe(task.images)
    rotation = env._scene.controller_rotation.astype(np.float32)
    state = np.concatenate([usual["observation.state"][:3], rotation[:, 0], rotation[:, 1], np.zeros(11, np.float32)])
    np.testing.assert_array_equal(seen["observation.state"], state)
    np.testing.assert_array_equal(seen[IMAGES[0]], usual[IMAGES[0]])
    np.testing.assert_array_equal(seen[IMAGES[1]], usual[IMAGES[1]][::-1, ::-1])


def test_absolute_control_goes_to_a_pose_and_relative_control_by_an_offset(stove: Scene) -> None:
    task, env = stove
    env.reset(episode(task, 0))
    start = env._scene.eef_pos
    for _ in range(15):
        env.step(np.array([0, 0, 1, 0, 0, 0, -1.0]))
    assert env._scene.eef_pos[2] - start[2] > 0.1
    env._scene.reset(1000, None if env._states is None else env._states[0], 10, absolute=True)
    target = start + np.array([0.0, 0.1, 0.05])
    for _ in range(30):
        env.step(np.array([*target, np.pi, 0, 0, -1.0]))
    np.testing.assert_allclose(env._scene.eef_pos, target, atol=0.02)


@pytest.mark.parametrize(
    ("quaternion", "expected"),
    [
        ([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0]),
        ([1.0, 0.0, 0.0, 0.0], [np.pi, 0.0, 0.0]),
        ([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)], [0.0, 0.0, np.pi / 2]),
        ([0.0, np.sqrt(0.5), 0.0, -np.sqrt(0.5)], [0.0, 3 * np.pi / 2, 0.0]),  # beyond pi, as LeRobot has it
    ],
)
def test_rotations_are_axis_times_angle(quaternion: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(quaternion_to_axis_angle(np.array(quaternion)), expected, atol=1e-6)


def test_a_camera_that_does_not_exist_is_refused(stove: Scene) -> None:
    _, env = stove
    with pytest.raises(ContractError, match=r"has no camera observation\.images\.front; it has: observation\.images"):
        env.observe(["observation.images.front"])
    benchmark = make_benchmark(EnvChoice("libero", {**STOVE, "camera_name": "agentview_image,canonical_agentview"}))
    with pytest.raises(
        ConfigError, match="LIBERO has no camera canonical_agentview; it has frontview, birdview, agentview"
    ):
        LiberoEnv(benchmark.tasks()[0], benchmark.config, env._scene, env._states)


def test_states_of_another_scene_are_refused(stove: Scene) -> None:
    task, env = stove
    with pytest.raises(
        ContractError, match=r"initial states have 10 numbers, its scene 79; run with --env\.init_states"
    ):
        LiberoEnv(task, env._config, env._scene, np.zeros((5, 10)))


def test_neither_torch_nor_the_benchmarks_catalogue_is_imported(stove: Scene) -> None:
    assert "libero.libero.envs" in sys.modules
    assert not {"torch", "robomimic", "transformers"} & set(sys.modules)


# --- all of it


@pytest.mark.slow
@pytest.mark.parametrize("suite", [*SUITES[:4], "libero_10_task", "libero_object_with_mug", "libero_spatial_with_milk"])
def test_every_task_of_a_suite_can_be_built_reset_and_stepped(suite: str) -> None:
    benchmark = make_benchmark(EnvChoice("libero", {"task": suite}))
    for task in benchmark.tasks():
        env = benchmark.make(task)
        env.reset(episode(task, 0))
        outcome = env.step(np.zeros(7))
        assert (outcome.reward, outcome.success) == (0.0, False), task.name
        state = env.observe([])["observation.state"]
        assert isinstance(state, np.ndarray)
        assert np.isfinite(state).all()
        env.close()
    assert len(members(suite)) == 10


def test_outcomes_do_not_depend_on_workers_or_order(tmp_path: Path) -> None:
    digests = []
    for workers, order in ((1, "longest"), (2, "shuffled")):
        directory = tmp_path / str(workers)
        command = [
            *(sys.executable, "-m", "robotrials", "eval", "--policy.type=random", "--env.type=libero"),
            *("--env.task=libero_spatial", "--env.task_ids=0,3", "--env.episode_length=5", "--eval.n_episodes=2"),
            *(
                f"--eval.batch_size={workers}",
                f"--eval.order={order}",
                "--eval.record=none",
                f"--output_dir={directory}",
            ),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stderr
        with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
            digests.append(ledger.outcome_digest())
    assert digests[0] == digests[1]
