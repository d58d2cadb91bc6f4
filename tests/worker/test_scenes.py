"""The engine with several scenes in each worker's process: the outcomes of one alone, whatever becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from robotrials.errors import ConfigError
from robotrials.results.ledger import Ledger
from robotrials.run.execute import RunResult, execute
from robotrials.run.prepare import prepare
from tests.engine.toy_runs import Listener, digest, run, scenes_config, toy_config


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The outcomes of the benchmark with one scene, in one worker."""
    directory = tmp_path_factory.mktemp("reference") / "run"
    assert run(toy_config(directory, batch_size=1)).complete
    return digest(directory)


def workers_of(directory: Path) -> set[str]:
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return {record.worker for record in ledger.accepted()}


def finished_and_errors(result: RunResult) -> dict[str, tuple[int, int]]:
    tasks = (task for suite in result.summary.suites for task in suite.tasks)
    return {task.name: (task.n_finished, task.n_errors) for task in tasks}


def test_outcomes_are_those_of_one_scene_alone(tmp_path: Path, undisturbed: str) -> None:
    assert run(scenes_config(tmp_path / "run", step_s=0.005)).complete
    assert digest(tmp_path / "run") == undisturbed
    assert workers_of(tmp_path / "run") == {"w0-0", "w0-1", "w0-2", "w1-0", "w1-1"}
    assert {path.name for path in (tmp_path / "run/logs").iterdir()} == {"w0.log", "w1.log"}


def test_videos_and_policy_servers_know_nothing_of_it(tmp_path: Path, undisturbed: str) -> None:
    assert run(scenes_config(tmp_path / "run", num_envs=4, batch_size=4, record="all", policy_servers=2)).complete
    assert digest(tmp_path / "run") == undisturbed
    assert len(list((tmp_path / "run/videos").rglob("*.mp4"))) == 12


def test_an_error_is_tried_again_and_its_neighbours_too(tmp_path: Path, undisturbed: str) -> None:
    assert run(scenes_config(tmp_path / "run", trouble="once@a/1+once@b/4")).complete
    assert digest(tmp_path / "run") == undisturbed


def test_a_process_that_dies_costs_each_of_its_scenes_one_attempt(tmp_path: Path, undisturbed: str) -> None:
    listener = Listener()
    assert run(scenes_config(tmp_path / "run", trouble="die_once@a/2", batch_size=3), listener).complete
    assert digest(tmp_path / "run") == undisturbed
    lost = [message for message in listener.messages if "killed by SIGKILL" in message]
    assert 1 <= len(lost) <= 3
    assert all("logs/w0.log" in message or "w0-" in message for message in lost)
    assert "w0.2-0" in workers_of(tmp_path / "run")


def test_a_step_that_hangs_ends_its_process_and_no_other(tmp_path: Path, undisturbed: str) -> None:
    assert run(scenes_config(tmp_path / "run", trouble="hang_once@b/0", step_timeout=2.0)).complete
    assert digest(tmp_path / "run") == undisturbed
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        hung = ledger.attempts_of(6)[0]
    assert "hung: no progress" in (hung.error or "")


@pytest.mark.parametrize("trouble", ["raise@a/1", "die@a/1"])
def test_an_episode_that_always_fails_takes_no_other_with_it(tmp_path: Path, trouble: str) -> None:
    result = run(scenes_config(tmp_path / "run", trouble=trouble, batch_size=3))
    assert finished_and_errors(result) == {"a": (5, 1), "b": (6, 0)}
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        assert [record.episode for record in ledger.accepted() if record.is_error] == [1]


def test_scenes_that_cannot_be_built_are_errors_of_their_task_alone(tmp_path: Path) -> None:
    result = run(scenes_config(tmp_path / "run", trouble="build@b", max_attempts=1))
    assert not result.complete
    assert "the scene file is missing" in result.failures[0]
    assert finished_and_errors(result) == {"a": (6, 0), "b": (0, 6)}


def test_scenes_that_are_not_the_same_beside_others_need_the_users_word(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"3 scenes of toy in one process .* add --eval\.exact=false"):
        prepare(scenes_config(tmp_path / "run", cls="OnAGpu"))
    assert prepare(scenes_config(tmp_path / "run", num_envs=1, cls="OnAGpu")).n_workers == 5
    assert run(scenes_config(tmp_path / "run", cls="OnAGpu", exact=False)).complete


def test_a_policy_that_looks_into_the_simulator_needs_one_scene(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expert looks into the simulator, which needs --env\.num_envs=1"):
        execute(prepare(scenes_config(tmp_path / "run", policy="expert")), Listener())


def test_one_full_process_when_nobody_says_how_many(tmp_path: Path) -> None:
    assert prepare(scenes_config(tmp_path / "run", num_envs=7, n_episodes=20, batch_size=0)).n_workers >= 7


def test_how_many_share_a_process_is_no_part_of_what_a_run_is_where_it_changes_nothing(tmp_path: Path) -> None:
    one, three = (prepare(scenes_config(tmp_path / "run", num_envs=n)).identity for n in (1, 3))
    assert one == three
    one, three = (prepare(scenes_config(tmp_path / "run", n, "OnAGpu", exact=False)).identity for n in (1, 3))
    assert one["benchmark"]["options"]["num_envs"] == 1
    assert three["benchmark"]["options"]["num_envs"] == 3
    with pytest.raises(ConfigError, match=r"num_envs.*at least 1.*got 0"):
        prepare(scenes_config(tmp_path / "run", num_envs=0))
