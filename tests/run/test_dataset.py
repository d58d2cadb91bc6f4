"""Runs that keep their episodes for a dataset: real workers, some of which die."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robotrials.errors import ConfigError, DatasetError
from robotrials.plan.config import EvalSettings
from robotrials.results.ledger import Ledger
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare, prepare_resume
from tests.datasets.kept import decode
from tests.engine.test_engine import coordinator_process, wait_for_records
from tests.engine.toy_runs import Listener, digest, run, toy_config, without

pq = pytest.importorskip("pyarrow.parquet")


def rows(dataset: Path) -> list[dict]:
    return [row for path in sorted(dataset.glob("data/*/*.parquet")) for row in pq.read_table(path).to_pylist()]


def episodes(dataset: Path) -> list[dict]:
    return [row for path in sorted(dataset.glob("meta/episodes/*/*")) for row in pq.read_table(path).to_pylist()]


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("plain") / "run"
    assert run(toy_config(directory, record="all")).complete
    return directory


@pytest.fixture(scope="module")
def kept_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With an error and a death on the way; its dataset lies beside it."""
    directory = tmp_path_factory.mktemp("kept") / "run"
    trouble = "once@a/1+die_once@b/2"
    result = run(toy_config(directory, record="all", trouble=trouble, dataset=directory.parent / "ds"))
    assert result.complete
    assert result.dataset is not None
    assert (result.dataset.episodes, result.dataset.erred) == (12, 0)
    return directory


def test_keeping_episodes_does_not_change_their_outcomes(plain_run: Path, kept_run: Path) -> None:
    assert digest(kept_run) == digest(plain_run)


@pytest.mark.parametrize("history", [3, 12])
def test_policies_with_a_history_see_the_same_steps(tmp_path: Path, history: int) -> None:
    config = toy_config(tmp_path / "plain", tasks="a", policy_options={"history": history})
    run(config)
    kept = replace(config.eval, dataset=tmp_path / "ds")
    run(replace(config, output_dir=tmp_path / "kept", eval=kept))
    assert digest(tmp_path / "kept") == digest(tmp_path / "plain")


def test_the_dataset_holds_every_step_of_every_episode_in_the_order_of_the_plan(kept_run: Path) -> None:
    dataset = kept_run.parent / "ds"
    with Ledger.open(kept_run / "ledger.sqlite", read_only=True) as ledger:
        records = list(ledger.accepted())
    assert [row["length"] for row in episodes(dataset)] == [record.steps for record in records]
    assert [(row["task_name"], row["seed"]) for row in episodes(dataset)] == [
        (name, 1000 + index) for name in "ab" for index in range(6)
    ]
    for record, episode in zip(records, episodes(dataset), strict=True):
        own = [row for row in rows(dataset) if row["episode_index"] == record.episode]
        assert sum(row["next.reward"] for row in own) == pytest.approx(record.reward_sum, rel=1e-6)
        assert own[-1]["next.success"] == record.success == episode["success"]
        assert [row["next.done"] for row in own] == [False] * (record.steps - 1) + [True]


def test_a_row_shows_the_scene_before_its_action(kept_run: Path) -> None:
    dataset = kept_run.parent / "ds"
    (video,) = dataset.glob("videos/observation.image/*/*.mp4")
    frames = decode(video)
    data = rows(dataset)
    assert len(frames) == len(data)
    for (_, picture), row, following in zip(frames, data, [*data[1:], None], strict=True):
        position, goal = row["observation.state"]
        if row["frame_index"] == 0:
            assert position == 0.0
        if following is not None and not row["next.done"]:
            moved = following["observation.state"][0]
            assert moved - position == pytest.approx(0.5 * row["action"], abs=0.1)
            assert row["next.reward"] == pytest.approx(-abs(moved - goal), abs=1e-5)
        # The toy draws a white column where the point is.
        assert abs(int(picture[..., 0].mean(axis=0).argmax()) - int(np.clip(position * 3, 0, 31))) <= 1


def test_no_camera_is_drawn_twice_for_policy_video_and_dataset(kept_run: Path) -> None:
    """One picture a step, and one of the end for the video."""
    with Ledger.open(kept_run / "ledger.sqlite", read_only=True) as ledger:
        for record in ledger.accepted():
            assert record.renders == record.steps + 1


def test_nan_stays_in_the_rows_and_out_of_the_statistics(tmp_path: Path) -> None:
    config = toy_config(
        tmp_path / "run", "tests.toy:Steady", tasks="a", trouble="nan@a/1", dataset=tmp_path / "ds", n_episodes=2
    )
    made = run(config).dataset
    assert made is not None
    states = np.array([row["observation.state"] for row in rows(tmp_path / "ds")])
    odd = int(np.isnan(states).sum())
    assert odd > 1
    assert made.nonfinite == {"observation.state": odd}
    assert json.loads((tmp_path / "ds/meta/robotrials.json").read_text())["nonfinite"] == {"observation.state": odd}
    stats = json.loads((tmp_path / "ds/meta/stats.json").read_text())["observation.state"]
    np.testing.assert_allclose(stats["mean"], np.nanmean(states, axis=0))
    np.testing.assert_allclose(stats["q50"], np.nanquantile(states, 0.5, axis=0))


def test_episodes_that_time_out_are_in_it(tmp_path: Path) -> None:
    result = run(toy_config(tmp_path / "run", "zero", tasks="a", n_episodes=2, dataset=tmp_path / "ds"))
    assert result.dataset is not None
    assert (result.dataset.episodes, result.dataset.frames) == (2, 120)
    assert [row["end"] for row in episodes(tmp_path / "ds")] == ["time_limit"] * 2
    assert [row["next.done"] for row in rows(tmp_path / "ds")] == ([False] * 59 + [True]) * 2


def test_what_the_workers_kept_is_removed_once_it_is_joined(kept_run: Path) -> None:
    assert not (kept_run / "spool").exists()


def test_a_finished_run_started_again_leaves_its_dataset_alone(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run", tasks="a", n_episodes=2, dataset=tmp_path / "ds")
    first = run(config).dataset
    info = tmp_path / "ds/meta/info.json"
    written = info.stat().st_mtime_ns
    assert run(config).dataset == first
    assert execute(prepare_resume(tmp_path / "run"), Listener()).dataset == first
    assert info.stat().st_mtime_ns == written


def test_episodes_that_erred_are_added_when_they_succeed_later(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run", trouble="raise@a/1", dataset=tmp_path / "ds", max_attempts=1)
    made = run(config).dataset
    assert made is not None
    assert (made.episodes, made.erred) == (11, 1)
    again = replace(without(config, trouble=""), allow_mixed=True)
    made = run(again).dataset
    assert made is not None
    assert (made.episodes, made.erred) == (12, 0)
    assert [row["seed"] for row in episodes(tmp_path / "ds")] == [*range(1000, 1006)] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ds", "run"]


def test_a_dataset_that_could_not_be_written_is_written_on_resume(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run", tasks="a", n_episodes=2, dataset=tmp_path / "sub/ds")
    prepared = prepare(config)
    (tmp_path / "sub").write_text("in the way")
    with pytest.raises(DatasetError, match="sub/ds"):
        execute(prepared, Listener())
    assert (tmp_path / "run/eval_info.json").exists()
    (tmp_path / "sub").unlink()
    made = execute(prepare_resume(tmp_path / "run"), Listener()).dataset
    assert made is not None
    assert len(episodes(tmp_path / "sub/ds")) == made.episodes == 2


def test_killed_run_is_resumed_to_the_same_dataset(tmp_path: Path, plain_run: Path, kept_run: Path) -> None:
    directory = tmp_path / "run"
    process = coordinator_process(directory, step_s=0.02, recording=True)
    wait_for_records(directory, 3)
    process.kill()
    process.wait()
    (directory / "spool/.99-1.1.tmp").mkdir()  # as a worker that was killed while it wrote leaves one
    made = execute(prepare_resume(directory), Listener()).dataset
    assert made is not None
    assert digest(directory) == digest(plain_run)
    assert rows(directory / "recordings") == rows(kept_run.parent / "ds")
    assert episodes(directory / "recordings") == episodes(kept_run.parent / "ds")
    assert not (directory / "spool").exists()


def test_lerobots_recording_is_a_folder_of_the_run_that_moves_with_it(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run", tasks="a", n_episodes=2, recording=True, recording_repo_id="me/x")
    assert run(config).dataset is not None
    assert len(episodes(tmp_path / "run/recordings")) == 2
    assert json.loads((tmp_path / "run/run.json").read_text())["dataset"]["repo_id"] == "me/x"
    (tmp_path / "run").rename(tmp_path / "moved")
    made = execute(prepare_resume(tmp_path / "moved"), Listener()).dataset
    assert made is not None
    assert made.plan.path == tmp_path / "moved/recordings"


def refusal(tmp_path: Path, **changes: object) -> str:
    with pytest.raises(ConfigError) as caught:
        prepare(toy_config(tmp_path / "run", **changes))
    return str(caught.value)


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path, kept_run: Path) -> None:
    (tmp_path / "ds").mkdir()
    prepare(toy_config(tmp_path / "run", dataset=tmp_path / "ds"))  # an empty one is free
    (tmp_path / "ds/x").touch()
    assert "exists and is not of this run" in refusal(tmp_path, dataset=tmp_path / "ds")
    assert "exists and is not of this run" in refusal(tmp_path, dataset=kept_run.parent / "ds")
    assert "holds --output_dir" in refusal(tmp_path, dataset=tmp_path)
    assert "holds --output_dir" in refusal(tmp_path, dataset=tmp_path / "run")


def test_a_dataset_that_would_lack_finished_episodes_is_refused(tmp_path: Path) -> None:
    run(toy_config(tmp_path / "run", tasks="a", n_episodes=2))
    words = refusal(tmp_path, tasks="a", n_episodes=2, dataset=tmp_path / "ds")
    assert "2 episodes of" in words
    assert "have finished without being kept" in words


def test_settings_of_a_dataset_that_is_not_asked_for_are_refused(tmp_path: Path) -> None:
    assert "needs --eval.recording=true" in refusal(tmp_path, recording_repo_id="me/x")
    assert "needs --eval.dataset" in refusal(tmp_path, dataset_cameras="none")
    assert "no camera 'top'" in refusal(tmp_path, dataset=tmp_path / "ds", dataset_cameras="top")


def test_the_settings_are_no_part_of_the_runs_identity(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run")
    kept = EvalSettings(**{**vars(config.eval), "dataset": tmp_path / "ds", "dataset_cameras": "none"})
    assert prepare(replace(config, eval=kept)).identity == prepare(config).identity
