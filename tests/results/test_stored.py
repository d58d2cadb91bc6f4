from __future__ import annotations

import json
from pathlib import Path

import pytest

from robotrials.errors import ConfigError
from robotrials.results.stored import read_run
from tests.results.stored_runs import first, write_run


def test_a_run_directory_is_read_with_seeds_groups_and_errors_apart(tmp_path: Path) -> None:
    outcomes: dict[tuple[str, int], bool | str] = {("push", 0): True, ("push", 1): "error", ("push", 2): False}
    path = write_run(
        tmp_path / "run",
        lambda s: outcomes.get((s.task, s.index), True),
        n=3,
        groups=["camera", "light"],
        init_states=2,
    )
    run = read_run(path)
    assert [e.name for e in run.episodes[:3]] == ["easy/push/0", "easy/push/1", "easy/push/2"]
    assert [(e.seed, e.init_state, e.success, e.group) for e in run.episodes[:3]] == [
        (1000, 0, True, "camera"),
        (1001, 1, None, "camera"),
        (1002, 0, False, "camera"),
    ]
    assert run.episodes[1].error == "RuntimeError: boom"
    assert (run.planned, run.n_errors, run.n_missing) == (6, 1, 0)
    assert (run.policy, run.env) == ("run", "toy")
    assert run.video_of(run.episodes[0]) == str(path / "videos/easy/push/0.mp4")
    assert run.video_of(run.episodes[2]) is None


def test_a_run_that_stopped_early_counts_its_rounds_and_keeps_the_rest_apart(tmp_path: Path) -> None:
    stopping = {"rule": "width<=0.3", "counted": 5}
    run = read_run(write_run(tmp_path / "run", first(2), n=4, stopping=stopping))
    assert [e.name for e in run.episodes] == [
        "easy/push/0",
        "easy/push/1",
        "easy/push/2",
        "easy/reach/0",
        "easy/reach/1",
    ]
    assert [e.name for e in run.surplus] == ["easy/push/3", "easy/reach/2", "easy/reach/3"]
    assert (run.planned, run.n_missing) == (5, 0)


def test_a_shard_is_read_with_its_own_episodes(tmp_path: Path) -> None:
    from robotrials.plan.shards import Shard, slice_plan
    from robotrials.results.stored import stored_plan

    path = write_run(tmp_path / "run", first(9), n=4)
    described = json.loads((path / "run.json").read_text())
    described["config"]["eval"] |= {"num_shards": 3, "shard_id": 1}
    whole = stored_plan({**described, "config": {**described["config"], "eval": {"n_episodes": 4}}}, path)
    assert stored_plan(described, path) == slice_plan(whole, Shard(1, 3))


def test_lerobots_eval_info_is_read_task_by_task(tmp_path: Path) -> None:
    metrics = {
        "sum_rewards": [1.0, 2.0],
        "max_rewards": [0.5, 1.0],
        "successes": [False, True],
        "video_paths": ["videos/a.mp4"],
    }
    info = {"per_task": [{"task_group": "libero_spatial", "task_id": 3, "metrics": metrics}], "overall": {}}
    (tmp_path / "eval_info.json").write_text(json.dumps(info))
    run = read_run(tmp_path)
    assert run.source == "eval_info"
    one, two = run.episodes
    assert (one.suite, one.task, one.index, one.seed, one.success, one.video) == (
        *("libero_spatial", "3", 0, None, False, "videos/a.mp4"),
    )
    assert (two.success, two.reward_sum, two.video) == (True, 2.0, None)


def test_an_eval_info_of_ours_keeps_seeds_and_errors(tmp_path: Path) -> None:
    metrics = {
        "successes": [True, False],
        "episodes": [0, 2],
        "seeds": [7, 9],
        "steps": [10, 20],
        "video_paths": ["only-the-failure.mp4"],
        "errors": [{"episode": 1, "seed": 8, "error": "boom"}],
        "n_planned": 5,
    }
    info = {"per_task": [{"task_group": "s", "task_id": 0, "task": "t", "metrics": metrics}]}
    (tmp_path / "eval_info.json").write_text(json.dumps(info))
    run = read_run(tmp_path / "eval_info.json")
    assert [(e.index, e.seed, e.success, e.video) for e in run.episodes] == [
        (0, 7, True, None),
        (1, 8, None, None),
        (2, 9, False, None),
    ]
    assert (run.planned, run.n_missing) == (5, 2)


def test_the_eval_info_of_older_lerobots_is_one_task(tmp_path: Path) -> None:
    episodes = [{"episode_ix": i, "success": i == 1, "seed": 1000 + i, "sum_reward": 1.0} for i in range(2)]
    (tmp_path / "eval_info.json").write_text(json.dumps({"per_episode": episodes, "aggregated": {}}))
    assert [(e.name, e.seed, e.success) for e in read_run(tmp_path).episodes] == [
        ("all/all/0", 1000, False),
        ("all/all/1", 1001, True),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "must hold a JSON object, found list"),
        ('{"overall": {}}', "lists no episodes"),
        ('{"per_task": [{"task_group": "a"}]}', "has not the shape of an eval_info.json: it lacks [a-z]"),
    ],
)
def test_what_is_no_run_is_refused_by_name(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "eval_info.json").write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_run(tmp_path)


def test_a_run_json_that_lacks_something_says_what(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", lambda s: True)
    described = json.loads((run / "run.json").read_text())
    del described["config"]["seed"]
    (run / "run.json").write_text(json.dumps(described))
    with pytest.raises(ConfigError, match=r"does not describe the plan of a run: it lacks seed$"):
        read_run(run)


def info_of(path: Path, *entries: dict[str, object], **more: object) -> Path:
    path.mkdir(exist_ok=True)
    (path / "eval_info.json").write_text(json.dumps({"per_task": list(entries)} if entries else more))
    return path


def listed(successes: list[object], name: str = "t", **metrics: object) -> dict[str, object]:
    return {"task_group": "s", "task_id": 0, "task": name, "metrics": {"successes": successes, **metrics}}


@pytest.mark.parametrize("value", ["false", "true", float("nan"), 2, -1, 0.5, [], {}])
def test_an_outcome_that_is_no_truth_value_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(ConfigError, match=r"eval_info\.json: the success of an episode of s/t is true, false, 0, 1 or"):
        read_run(info_of(tmp_path / "new", listed([True, value])))
    old = {"episode_ix": 0, "success": value}
    with pytest.raises(ConfigError, match=r"eval_info\.json: the success of an episode of all/all is"):
        read_run(info_of(tmp_path / "old", per_episode=[old]))


def test_numbers_and_null_are_outcomes(tmp_path: Path) -> None:
    run = read_run(info_of(tmp_path / "new", listed([1, 0, None, True])))
    assert [(e.success, e.end) for e in run.episodes] == [
        (True, "success"),
        (False, "failure"),
        (None, "error"),
        (True, "success"),
    ]
    episodes = [{"episode_ix": 0, "success": None}, {"episode_ix": 1, "success": 1}]
    assert [e.success for e in read_run(info_of(tmp_path / "old", per_episode=episodes)).episodes] == [None, True]


def test_what_is_listed_twice_is_not_counted_twice(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lists the task s/t twice"):
        read_run(info_of(tmp_path / "a", listed([True]), listed([True])))
    with pytest.raises(ConfigError, match="lists the episode s/t/3 twice"):
        read_run(info_of(tmp_path / "b", listed([True, False], episodes=[3, 3])))
    with pytest.raises(ConfigError, match="lists the episode s/t/0 twice"):
        read_run(info_of(tmp_path / "c", listed([True], errors=[{"episode": 0}])))
    episodes = [{"episode_ix": 5, "success": True}] * 2
    with pytest.raises(ConfigError, match="lists the episode all/all/5 twice"):
        read_run(info_of(tmp_path / "d", per_episode=episodes))


def test_an_empty_folder_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no run"):
        read_run(tmp_path)
