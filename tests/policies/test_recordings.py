"""A run, and the dataset that it has made, replayed episode by episode."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import PolicyChoice, RunConfig
from robotrials.plan.plan import build_plan
from robotrials.policies import registry
from robotrials.policies.recordings import open_recordings
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord
from tests import toy
from tests.engine.toy_runs import digest, run
from tests.policies.toy_by_file import toy_config

TASKS = toy.Toy(toy.ToyConfig(task="a,b")).tasks()
PLAN = build_plan(TASKS, 3, 1000)


def config(directory: Path, path: Path | None = None, **more: object) -> RunConfig:
    made = toy_config(directory, f"{toy.__file__}:Seer" if path is None else "replay", n_episodes=3, **more)
    return made if path is None else replace(made, policy=PolicyChoice("replay", str(path), {}))


def records(directory: Path) -> list[EpisodeRecord]:
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return list(ledger.accepted())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, its dataset beside it."""
    folder = tmp_path_factory.mktemp("recorded")
    assert run(config(folder / "run", dataset=folder / "rollouts")).complete
    return folder


def test_a_run_and_its_dataset_are_replayed_episode_by_episode(recorded: Path, tmp_path: Path) -> None:
    for path in (recorded / "run", recorded / "rollouts"):
        assert run(config(tmp_path / path.name, path, dataset=tmp_path / f"{path.name}-again")).complete
        pairs = zip(records(recorded / "run"), records(tmp_path / path.name), strict=True)
        for first, second in pairs:
            assert (first.end, first.steps) == (second.end, second.steps)
            assert first.reward_sum == pytest.approx(second.reward_sum, abs=1e-4)  # a dataset keeps float32
    # What was float32 already is the same again, bit for bit.
    assert run(config(tmp_path / "third", tmp_path / "run-again")).complete
    assert digest(tmp_path / "third") == digest(tmp_path / "run") == digest(tmp_path / "rollouts")
    revisions = {registry.revision(PolicyChoice("replay", str(recorded / name))) for name in ("run", "rollouts")}
    assert len(revisions) == 1


def test_a_dataset_within_the_run_moves_with_it(tmp_path: Path) -> None:
    assert run(config(tmp_path / "run", recording=True)).complete
    moved = Path(shutil.move(tmp_path / "run", tmp_path / "moved"))
    assert all(open_recordings(moved).has(episode) for episode in PLAN)
    shutil.rmtree(moved / "recordings")
    with pytest.raises(ConfigError, match=r"keeps no actions: its dataset .*recordings is gone"):
        open_recordings(moved)


def test_an_unfinished_run_is_replayed_from_what_its_workers_kept(recorded: Path, tmp_path: Path) -> None:
    run(config(tmp_path / "run", dataset=tmp_path / "rollouts", trouble="raise@a/1"))
    found, whole = open_recordings(tmp_path / "run"), open_recordings(recorded / "rollouts")
    assert [episode.name for episode in PLAN if not found.has(episode)] == ["toys/a/1"]
    for episode in PLAN:
        if found.has(episode):
            np.testing.assert_array_equal(found.of(episode), whole.of(episode))
    with pytest.raises(ContractError, match=r"no recording for episode toys/a seed 1001; it has 5: toys/a seed 1000, "):
        found.of(PLAN.episodes[1])
    assert registry.revision(PolicyChoice("replay", str(tmp_path / "run"))).startswith("builtin-")


def test_episodes_are_known_by_task_and_seed_and_not_by_their_place(recorded: Path) -> None:
    later = build_plan(TASKS, 2, 1001)
    found = open_recordings(recorded / "rollouts")
    np.testing.assert_array_equal(found.of(later.episodes[0]), found.of(PLAN.episodes[1]))
    assert not found.has(build_plan(TASKS, 1, 5000).episodes[0])


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as error:
        registry.validate(PolicyChoice("replay", str(path)))
    return str(error.value)


def test_what_cannot_be_replayed_is_refused_at_once_with_what_can(recorded: Path, tmp_path: Path) -> None:
    assert "no such file or folder" in refusal(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "holds nothing that replay reads: actions.npy, actions.npz, a folder of" in refusal(tmp_path / "empty")
    (tmp_path / "video.mp4").touch()
    assert "replay reads .npy, .npz, or a folder" in refusal(tmp_path / "video.mp4")
    assert run(config(tmp_path / "bare")).complete
    assert "keeps no actions: it was run without --eval.dataset=DIR" in refusal(tmp_path / "bare")


def test_a_dataset_of_another_kind_is_refused(recorded: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    other = tmp_path / "demonstrations"
    shutil.copytree(recorded / "rollouts", other)
    (file,) = (other / "meta" / "episodes").rglob("*.parquet")
    pq.write_table(pq.read_table(file).drop_columns(["seed"]), file)
    assert "does not say of its episodes which suite, task_name, seed, init_state they had" in refusal(other)
    info = other / "meta" / "info.json"
    info.write_text(json.dumps({**json.loads(info.read_text()), "codebase_version": "v2.1"}))
    assert "is a LeRobot dataset v2.1; this reads v3.0" in refusal(other)
