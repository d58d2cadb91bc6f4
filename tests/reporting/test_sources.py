"""Results of every age and shape become counts by task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robotrials.errors import ConfigError
from robotrials.reporting.sources import Counts, TrainingFacts, read_list, read_local, read_source
from tests.reporting.runs import make_run, mostly


def write(folder: Path, info: Any, config: Any = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "eval_info.json").write_text(info if isinstance(info, str) else json.dumps(info))
    if config is not None:
        (folder / "eval_config.json").write_text(json.dumps(config))
    return folder


def entry(group: str, task: int, successes: list[bool]) -> dict[str, Any]:
    """One task as lerobot-eval 0.4 to 0.6 lists it."""
    rewards = [float("nan")] * len(successes)
    metrics = {"sum_rewards": rewards, "max_rewards": rewards, "successes": successes, "video_paths": ["a.mp4"]}
    return {"task_group": group, "task_id": task, "metrics": metrics}


def test_a_run_directory_is_read_by_its_ledger(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", lambda e: "boom" if e.id == 1 else mostly(e) if e.id < 11 else None)
    source = read_source(run)
    assert (source.model, source.env, source.training) == ("act", "metaworld", TrainingFacts("act"))
    assert source.suites == {
        "easy": {0: Counts(3, 3, 1), 1: Counts(0, 4)},
        "hard": {2: Counts(2, 3, 0, missing=1)},
    }


def test_our_eval_info_says_the_same_as_the_run_it_is_of(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", lambda e: "boom" if e.id == 1 else mostly(e))
    expected = read_source(run)
    (run / "ledger.sqlite").unlink()
    (run / "run.json").unlink()
    for path in (run, run / "eval_info.json"):
        source = read_source(path)
        assert (source.suites, source.model, source.env) == (expected.suites, "act", "metaworld")


def test_lerobots_file_with_nan_and_the_configuration_beside_it(tmp_path: Path) -> None:
    info = {
        "per_task": [entry("libero_goal", 0, [True, False]), entry("libero_goal", 1, [True, True])],
        "per_group": {"libero_goal": {"pc_success": 75.0}},
        "overall": {"pc_success": 75.0},
    }
    config = {"env": {"type": "libero"}, "policy": {"type": "smolvla", "pretrained_path": "lab/smolvla-libero"}}
    source = read_source(write(tmp_path / "eval", info, config))
    assert (source.model, source.env, source.training.policy_type) == ("lab/smolvla-libero", "libero", "smolvla")
    assert source.suites == {"libero_goal": {0: Counts(1, 2), 1: Counts(2, 2)}}


def test_lerobots_older_file_lists_episodes_without_tasks(tmp_path: Path) -> None:
    info = {
        "per_episode": [
            {"episode_ix": i, "sum_reward": 1.0, "max_reward": 1.0, "success": i > 0, "seed": i} for i in range(3)
        ],
        "aggregated": {"pc_success": 66.7},
    }
    source = read_source(write(tmp_path / "pusht-run", info))
    assert (source.model, source.env) == ("pusht-run", "")
    assert source.suites == {"all": {0: Counts(2, 3)}}


def test_of_a_file_with_sums_alone_the_counts_are_worked_out(tmp_path: Path) -> None:
    groups = {"easy": {"pc_success": 87.5, "n_episodes": 40}, "hard": {"pc_success": float("nan"), "n_episodes": 0}}
    source = read_source(write(tmp_path / "sums", {"per_group": groups, "overall": {"pc_success": 87.5}}))
    assert source.suites == {"easy": {None: Counts(35, 40)}}
    total = read_source(write(tmp_path / "total", {"aggregated": {"pc_success": 50.0, "n_episodes": 10}}))
    assert total.suites == {"all": {None: Counts(5, 10)}}


@pytest.mark.parametrize(
    "content",
    ["", "[1, 2]", "{}", '{"per_task": 3}', '{"per_task": [{}]}', '{"per_group": {"a": 1}}', "[" * 100_000],
    ids=["empty", "list", "nothing", "number", "no-group", "no-figures", "deep"],
)
def test_what_is_no_result_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigError, match="eval_info"):
        read_source(write(tmp_path / "bad", content))


def test_training_is_read_beside_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "act_run" / "pretrained_model"
    checkpoint.mkdir(parents=True)
    train = {"policy": {"type": "act"}, "dataset": {"repo_id": "lab/data"}, "steps": 100_000, "batch_size": 8}
    (checkpoint / "train_config.json").write_text(json.dumps(train))
    config = {"policy": {"path": str(checkpoint)}}
    source = read_source(write(tmp_path / "eval", {"per_task": [entry("a", 0, [True])]}, config))
    assert source.training == TrainingFacts("act", "lab/data", 100_000, 8)
    assert source.model == "act_run"


def test_a_folder_of_runs_gives_all_of_them(tmp_path: Path) -> None:
    make_run(tmp_path / "eval" / "day" / "one")
    write(tmp_path / "eval" / "two", {"per_task": [entry("a", 0, [True])]})
    sources, not_read = read_local([tmp_path / "eval"])
    assert ([source.model for source in sources], not_read) == (["act", "two"], [])
    with pytest.raises(ConfigError, match="holds no results"):
        read_local([tmp_path / "eval" / "day" / "one" / "logs"])


def test_what_is_damaged_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    make_run(tmp_path / "eval" / "one")
    make_run(tmp_path / "eval" / "broken")
    (tmp_path / "eval" / "broken" / "ledger.sqlite").write_bytes(b"no database at all" * 100)
    write(tmp_path / "eval" / "cut", {})
    (tmp_path / "eval" / "cut" / "eval_info.json").write_text('{"per_task": [')
    sums = {"per_group": {"s": {"pc_success": 50.0, "n_episodes": 2}}}
    write(tmp_path / "eval" / "twice", {"per_task": [entry("a", 0, [True])] * 2, **sums})
    sources, not_read = read_local([tmp_path / "eval"])
    assert [source.model for source in sources] == ["act"]
    assert [name for name in ("broken", "cut", "twice") if not any(f"/{name}" in line for line in not_read)] == []
    assert len(not_read) == 3


def test_results_that_are_given_twice_are_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "eval" / "one")
    for again in (run, run / "eval_info.json", tmp_path / "eval"):
        with pytest.raises(ConfigError, match="is given twice"):
            read_local([run, again])
    with pytest.raises(ConfigError, match="no such file or directory"):
        read_local([run, tmp_path / "nowhere"])


def test_a_list_of_repositories_has_comments(tmp_path: Path) -> None:
    file = tmp_path / "models.txt"
    file.write_text("# ours\nlab/act  # the first\n\n  lab/pi0\nlab/act\n")
    assert read_list(file) == ["lab/act", "lab/pi0"]
    file.write_text("# nothing\n")
    with pytest.raises(ConfigError, match="names no repository"):
        read_list(file)
    with pytest.raises(ConfigError, match=r"nowhere\.txt cannot be read: No such file or directory$"):
        read_list(tmp_path / "nowhere.txt")


def test_a_run_tells_the_conditions_it_was_made_under(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    described = json.loads((run / "run.json").read_text())
    described["identity"]["benchmark"] = {
        "options": {"episode_length": 300, "visualization_width": 384},
        "packages": {"gym-pusht": "0.1.8"},
    }
    (run / "run.json").write_text(json.dumps(described))
    assert read_source(run).conditions == {"--env.episode_length": "300", "version of gym-pusht": "0.1.8"}
