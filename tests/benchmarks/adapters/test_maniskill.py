"""Needs the simulator: ``robotrials bench install maniskill``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mani_skill", reason="needs maniskill")

from robotrials.benchmarks.adapters.maniskill.benchmark import ManiSkill, ManiSkillEnv
from robotrials.benchmarks.adapters.maniskill.tasks import TASKS
from robotrials.benchmarks.base import Env, StepOutcome
from robotrials.benchmarks.registry import make_benchmark
from robotrials.engine.observer import SilentObserver
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice, EvalSettings, PolicyChoice, RunConfig
from robotrials.plan.task import TaskSpec
from robotrials.results.ledger import Ledger
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare
from robotrials.worker.many_scenes import SceneHost, SceneSlot
from tests.benchmarks.scenes import digest, episode, in_a_fresh_process, make

CAMERA = "observation.images.base_camera"
SMOKE = ("PickCube", "StackCube", "PushT")


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[TaskSpec, ManiSkillEnv]]:
    task, env = make("maniskill", task="PickCube", control_mode="pd_joint_pos")
    assert isinstance(env, ManiSkillEnv)
    yield task, env
    env.close()


def into_the_table(env: Env, rng: np.random.Generator) -> np.ndarray:
    """Blows at what stands on the table: contacts are what can depend on the past."""
    assert isinstance(env, ManiSkillEnv)
    lean = 0.02 * float(env._sim.elapsed_steps[0])
    arm = np.array([0.0, 0.4 + lean, 0.0, -2.0, 0.0, 2.4, 0.8]) + rng.normal(0.0, 0.08, 7)
    return np.append(arm, rng.choice([-1.0, 1.0]))[: env._task.action.dim]


def expertly(task: TaskSpec, env: Env, seed: int, steps: int) -> list[tuple[bytes, StepOutcome]]:
    env.reset(episode(task, seed))
    expert = env.expert()
    played = []
    for _ in range(steps):
        action = expert.act()
        played.append((action.tobytes(), env.step(action)))
        if played[-1][1].terminated:
            break
    return played


@pytest.mark.parametrize(
    "name", [*SMOKE, *(pytest.param(n[:-3], marks=pytest.mark.slow) for n in TASKS if n[:-3] not in SMOKE)]
)
def test_the_table_of_tasks_is_the_simulators(name: str) -> None:
    from mani_skill.utils.registration import REGISTERED_ENVS

    task, env = make("maniskill", task=name)
    assert isinstance(env, ManiSkillEnv)
    env.reset(episode(task, 3))
    sim = env._sim
    assert task.max_steps == REGISTERED_ENVS[task.name].max_episode_steps
    assert task.control_hz == sim.control_freq
    assert task.images == tuple("observation.images." + camera for camera in sim.scene.sensors)
    assert (task.action.low, task.action.high) == (
        tuple(sim.single_action_space.low.tolist()),
        tuple(sim.single_action_space.high.tolist()),
    )
    seen = env.observe([])
    for key in ("observation.state", "observation.environment_state"):
        value = seen[key]
        assert isinstance(value, np.ndarray)
        assert (value.shape, str(value.dtype)) == (task.observations[key].shape, "float32")
    outcome = env.step(np.zeros(task.action.dim))
    assert outcome.success is False
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pd_ee_pose", "pd_ee_delta_pose", "pd_joint_pos_vel", "pd_joint_vel"])
def test_bounds_of_actions_are_the_simulators(mode: str) -> None:
    task, env = make("maniskill", task="PickCube", control_mode=mode)
    assert isinstance(env, ManiSkillEnv)
    space = env._sim.single_action_space
    assert (task.action.low, task.action.high) == (tuple(space.low.tolist()), tuple(space.high.tolist()))
    env.close()


def test_it_is_the_environment_that_gymnasium_makes(scene: tuple[TaskSpec, ManiSkillEnv]) -> None:
    import gymnasium

    task, env = scene
    options: dict[str, Any] = {"sim_backend": "physx_cpu", "render_backend": "cpu", "control_mode": "pd_joint_pos"}
    state = gymnasium.make("PickCube-v1", obs_mode="state", **options)
    image = gymnasium.make("PickCube-v1", obs_mode="rgb", render_mode="rgb_array", **options)
    full, _ = state.reset(seed=5)
    seen, _ = image.reset(seed=5)
    env.reset(episode(task, 5))
    rng = np.random.default_rng(5)
    rewards = []
    for step in range(30):
        mine = env.observe([CAMERA] if step in (0, 29) else [])
        assert np.array_equal(mine["observation.environment_state"], full[0].numpy())
        if step in (0, 29):
            assert np.array_equal(mine[CAMERA], seen["sensor_data"]["base_camera"]["rgb"][0].numpy())
            assert np.array_equal(env.render(), image.render()[0].numpy())
        action = into_the_table(env, rng).astype(np.float32)
        full, reward, terminated, _, info = state.step(action)
        seen, *_ = image.step(action)
        assert env.step(action) == (float(reward), bool(terminated), False, bool(info["success"]))
        rewards.append(float(reward))
    assert len(set(rewards)) > 20
    state.close()
    image.close()


def test_an_episode_is_a_function_of_its_seed(scene: tuple[TaskSpec, ManiSkillEnv]) -> None:
    task, env = scene
    first = digest(task, env, 7, into_the_table, 50, (0, 49), CAMERA)
    expertly(task, env, 3, 40)  # ends with the cube in the gripper
    assert digest(task, env, 7, into_the_table, 50, (0, 49), CAMERA) == first
    assert digest(task, env, 8, into_the_table, 50, (), CAMERA) != first


def test_an_episode_is_the_same_in_another_process(scene: tuple[TaskSpec, ManiSkillEnv]) -> None:
    task, env = scene
    digest(task, env, 9, into_the_table, 20)
    code = (
        "from tests.benchmarks.scenes import digest, make\n"
        "from tests.benchmarks.adapters.test_maniskill import CAMERA, into_the_table\n"
        "task, env = make('maniskill', task='PickCube', control_mode='pd_joint_pos')\n"
        "print(digest(task, env, 5, into_the_table, 60, (0, 59), CAMERA))\n"
        "env.close()\n"
    )
    out, err = in_a_fresh_process(code)
    assert out.strip() == digest(task, env, 5, into_the_table, 60, (0, 59), CAMERA)
    assert err == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_forgets_the_episode_before(name: str) -> None:
    benchmark = make_benchmark(EnvChoice("maniskill", {"task": name, "control_mode": "pd_joint_pos"}))
    task = benchmark.tasks()[0]
    used, fresh = benchmark.make(task), benchmark.make(task)
    for seed in (11, 12):
        digest(task, used, seed, into_the_table, 30 + seed)
    assert digest(task, used, 7, into_the_table, 70) == digest(task, fresh, 7, into_the_table, 70)
    used.close()
    fresh.close()


def test_looking_changes_nothing(scene: tuple[TaskSpec, ManiSkillEnv]) -> None:
    task, env = scene

    def outcomes(look: bool) -> list[StepOutcome]:
        env.reset(episode(task, 3))
        rng = np.random.default_rng(3)
        played = []
        for step in range(30):
            if look and step % 10 == 0:
                first = env.observe([CAMERA])[CAMERA]
                env.render()  # shows the goal, which cameras do not see
                assert np.array_equal(env.observe([CAMERA])[CAMERA], first)
            played.append(env.step(into_the_table(env, rng)))
        return played

    assert outcomes(look=True) == outcomes(look=False)


def test_stepping_draws_nothing(scene: tuple[TaskSpec, ManiSkillEnv], monkeypatch: pytest.MonkeyPatch) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    drawn: list[str] = []
    for name, camera in {**env._sim.scene.sensors, **env._sim.scene.human_render_cameras}.items():
        monkeypatch.setattr(camera, "capture", _counted(camera.capture, drawn, name))
    env.step(np.zeros(task.action.dim))
    env.observe([])
    assert drawn == []
    env.observe([CAMERA])
    env.render()
    assert drawn == ["base_camera", "render_camera"]


def _counted(capture: Callable[[], None], drawn: list[str], name: str) -> Callable[[], None]:
    def counted() -> None:
        drawn.append(name)
        capture()

    return counted


def test_the_planner_solves_the_task_with_the_same_actions_every_time(scene: tuple[TaskSpec, ManiSkillEnv]) -> None:
    task, env = scene
    played = expertly(task, env, 1, 150)
    assert played[-1][1].terminated
    assert played[-1][1].success
    assert 30 < len(played) < 150
    expertly(task, env, 2, 20)  # left in the middle
    assert expertly(task, env, 1, 150) == played


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["PushCube", "StackCube", "PlugCharger", "LiftPegUpright", "PullCube", "PlaceSphere", "PullCubeTool"]
)
def test_planners_solve_their_tasks(name: str) -> None:
    task, env = make("maniskill", task=name, control_mode="pd_joint_pos")
    solved = [expertly(task, env, seed, 300)[-1][1].success for seed in (2, 3)]
    assert all(solved)
    env.close()


def test_an_expert_needs_joint_positions_and_a_planner() -> None:
    for options, says in (
        ({"task": "PickCube"}, "--env.control_mode=pd_joint_pos"),
        ({"task": "PushT", "control_mode": "pd_joint_pos"}, "PushT-v1 has no scripted expert; tasks that have one"),
    ):
        task, env = make("maniskill", **options)
        env.reset(episode(task, 0))
        with pytest.raises(ConfigError, match=says):
            env.expert()
        env.close()
        env.close()


def test_a_simulator_that_says_nothing_of_success_is_reported_so(
    scene: tuple[TaskSpec, ManiSkillEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    monkeypatch.setattr(env._sim, "get_info", dict)
    monkeypatch.setattr(env._sim, "get_reward", lambda obs, action, info: np.zeros(1))
    assert env.step(np.zeros(task.action.dim)).success is None


def test_a_camera_it_has_not_is_refused(scene: tuple[TaskSpec, ManiSkillEnv]) -> None:
    task, env = scene
    env.reset(episode(task, 0))
    with pytest.raises(ContractError, match=r"no camera observation\.images\.wrist; it has: " + CAMERA):
        env.observe(["observation.images.wrist"])


@pytest.mark.slow
def test_outcomes_do_not_depend_on_workers_or_order(tmp_path: Path) -> None:
    digests = []
    for name, settings in (
        ("one", {"batch_size": 1}),
        ("two", {"batch_size": 2}),
        ("shuffled", {"batch_size": 2, "order": "shuffled"}),
    ):
        config = RunConfig(
            PolicyChoice("random"),
            EnvChoice("maniskill", {"task": "PickCube,PushCube", "episode_length": 30}),
            EvalSettings(n_episodes=2, record="none", **settings),  # type: ignore[arg-type]
            1000,
            tmp_path / name,
        )
        result = execute(prepare(config), SilentObserver())
        assert result.complete, result.failures
        with Ledger.open(tmp_path / name / "ledger.sqlite", read_only=True) as ledger:
            digests.append(ledger.outcome_digest())
    assert digests == [digests[0]] * 3


@pytest.mark.slow
def test_several_scenes_in_one_process_play_as_one_alone() -> None:
    options = {"task": "StackCube", "control_mode": "pd_joint_pos", "num_envs": 3}
    benchmark = make_benchmark(EnvChoice("maniskill", options))
    assert isinstance(benchmark, ManiSkill)
    (task,) = benchmark.tasks()
    scene = benchmark.make(task)
    alone = [digest(task, scene, seed, _blindly, 30) for seed in (1, 2, 3)]
    scene.close()
    together: dict[int, str] = {}

    def player(place: SceneSlot) -> None:
        together[place.slot] = digest(task, place.take(benchmark, task), place.slot + 1, _blindly, 30)
        place.leave()

    SceneHost(benchmark.scenes).run([player] * 3)
    assert [together[slot] for slot in range(3)] == alone


def _blindly(env: Env, rng: np.random.Generator) -> np.ndarray:
    """As ``into_the_table``, for players that see one slot of a group only."""
    return np.append(np.array([0.0, 0.9, 0.0, -2.0, 0.0, 2.4, 0.8]) + rng.normal(0.0, 0.1, 7), rng.choice([-1.0, 1.0]))
