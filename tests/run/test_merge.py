"""Shards merge to the run they are slices of, bit for bit; what does not make one run is refused by name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from robotrials.engine.observer import SilentObserver
from robotrials.errors import ConfigError, IdentityError
from robotrials.plan.config import EnvChoice, EvalSettings, PolicyChoice, RunConfig
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import load_run_json
from robotrials.run.execute import execute
from robotrials.run.merge import merge_runs
from robotrials.run.prepare import prepare, prepare_resume
from tests.engine.test_engine import wait_for_records
from tests.engine.toy_runs import digest, run, toy_config, without

N_SHARDS = 3


def shard(directory: Path, number: int, **more: object) -> RunConfig:
    return toy_config(directory, num_shards=N_SHARDS, shard_id=number, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``whole``, and its shards ``0`` to ``2``, each with videos of the first two episodes of a task."""
    folder = tmp_path_factory.mktemp("shards")
    assert run(toy_config(folder / "whole", record="first:2")).complete
    for number in range(N_SHARDS):
        assert run(shard(folder / str(number), number, record="first:2")).complete
    return folder


def parts(folder: Path, *numbers: int) -> list[Path]:
    return [folder / str(number) for number in numbers or range(N_SHARDS)]


def test_merged_run_is_the_unsharded_one_bit_for_bit(folder: Path, tmp_path: Path) -> None:
    merged = merge_runs(parts(folder), tmp_path / "run", SilentObserver())
    assert merged.summary.complete
    assert digest(tmp_path / "run") == digest(folder / "whole")
    here, there = (json.loads((d / "eval_info.json").read_text()) for d in (tmp_path / "run", folder / "whole"))
    assert here["per_task"] == there["per_task"]
    for name in ("identity", "identity_hash", "plan"):
        assert load_run_json(tmp_path / "run")[name] == load_run_json(folder / "whole")[name]
    videos = [
        sorted(p.relative_to(d) for p in (d / "videos").rglob("*.mp4")) for d in (tmp_path / "run", folder / "whole")
    ]
    assert videos[0] == videos[1]
    assert len(videos[0]) == 4
    assert sorted(p.name for p in (tmp_path / "run" / "logs").iterdir()) == ["shard-0", "shard-1", "shard-2"]


def test_merged_run_can_be_resumed_and_has_nothing_left_to_do(folder: Path, tmp_path: Path) -> None:
    merge_runs(parts(folder), tmp_path / "run", SilentObserver())
    assert prepare_resume(tmp_path / "run").is_finished


def test_shard_says_that_it_is_one(folder: Path) -> None:
    metrics = json.loads((folder / "1" / "metrics.json").read_text())
    assert metrics["shard"] == {"id": 1, "of": 3}
    assert metrics["n_planned"] == 4
    assert "shard" not in json.loads((folder / "whole" / "metrics.json").read_text())


def test_shard_killed_and_resumed_changes_nothing(folder: Path, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from tests.run.test_merge import shard; from tests.engine.toy_runs import run\n"
        f"run(shard(Path({str(tmp_path / '1')!r}), 1, step_s=0.02))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    wait_for_records(tmp_path / "1", 1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    prepared = prepare_resume(tmp_path / "1")
    assert 0 < prepared.done < 4
    assert execute(prepared, SilentObserver()).complete
    slow = [tmp_path / str(number) for number in (0, 2)]
    for path in slow:
        assert run(shard(path, int(path.name), step_s=0.02)).complete
    merge_runs([*slow, tmp_path / "1"], tmp_path / "run", SilentObserver())
    assert digest(tmp_path / "run") == digest(folder / "whole")


def test_attempts_that_failed_are_kept_beside_the_results(tmp_path: Path) -> None:
    for number in range(N_SHARDS):
        run(shard(tmp_path / str(number), number, trouble="once@a/1+raise@b/2", max_attempts=2))
    merged = merge_runs(parts(tmp_path), tmp_path / "run", SilentObserver())
    assert (merged.summary.overall.n_finished, merged.summary.overall.n_errors) == (11, 1)
    with Ledger.open(tmp_path / "run" / "ledger.sqlite", read_only=True) as ledger:
        assert [r.is_error for r in ledger.attempts_of(1)] == [True, False]
        assert [r.is_error for r in ledger.attempts_of(8)] == [True, True]


def test_gap_is_refused_and_named_unless_asked_for(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"4 of 12 episodes have no result: toys/a/\d.*Not given: shard 1 of 3"):
        merge_runs(parts(folder, 0, 2), tmp_path / "run", SilentObserver())
    assert not (tmp_path / "run").exists()
    merged = merge_runs(parts(folder, 0, 2), tmp_path / "run", SilentObserver(), partial=True)
    assert merged.missing == 4
    assert execute(prepare_resume(tmp_path / "run"), SilentObserver()).complete
    assert digest(tmp_path / "run") == digest(folder / "whole")


def test_overlap_is_refused_even_when_partial(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="both hold"):
        merge_runs(parts(folder, 0, 0), tmp_path / "run", SilentObserver(), partial=True)


def test_shards_of_different_runs_are_refused_naming_what_differs(folder: Path, tmp_path: Path) -> None:
    run(without(shard(tmp_path / "1", 1, policy_options={"noise": "0.2"}), scratch=str(folder)))
    directories = [folder / "0", tmp_path / "1", folder / "2"]
    with pytest.raises(IdentityError, match=r"policy\.options\.noise: \(not set\) -> 0\.2"):
        merge_runs(directories, tmp_path / "run", SilentObserver())
    merged = merge_runs(directories, tmp_path / "run", SilentObserver(), allow_mixed=True)
    assert merged.mixed
    assert load_run_json(tmp_path / "run")["mixed"][0]["shard"] == {"id": 1, "of": 3}


def test_shards_of_other_episodes_are_refused_even_when_mixed_is_allowed(folder: Path, tmp_path: Path) -> None:
    run(replace(shard(tmp_path / "1", 1), seed=7))
    with pytest.raises(IdentityError, match="other episodes"):
        merge_runs([folder / "0", tmp_path / "1"], tmp_path / "run", SilentObserver(), allow_mixed=True)


def test_whole_run_is_no_shard(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="whole run, not a shard"):
        merge_runs([folder / "whole"], tmp_path / "run", SilentObserver())


def test_another_shard_does_not_go_on_in_a_shards_directory(folder: Path) -> None:
    with pytest.raises(IdentityError, match=r"--eval\.shard_id: 1 -> 2"):
        prepare(without(shard(folder / "1", 2, record="first:2"), scratch=str(folder)))


def test_nothing_is_written_over(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").touch()
    with pytest.raises(ConfigError, match="a merge needs a new folder"):
        merge_runs(parts(folder), tmp_path / "run", SilentObserver())


def test_seed_that_is_drawn_does_not_make_shards(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--seed=null"):
        prepare(replace(shard(tmp_path / "0", 0), seed=None))


def killed_at_first_record(config: RunConfig) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            execute(prepare(config), SilentObserver())
        finally:
            os._exit(0)
    assert config.output_dir is not None
    wait_for_records(config.output_dir, 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_metaworld_in_two_shards_one_of_them_killed_and_resumed(tmp_path: Path) -> None:
    pytest.importorskip("metaworld")
    whole = RunConfig(
        PolicyChoice("expert"),
        EnvChoice("metaworld", {"task": "reach-v3,drawer-open-v3"}),
        EvalSettings(n_episodes=4, batch_size=1, record="none"),
        1000,
        tmp_path / "whole",
    )
    assert execute(prepare(whole), SilentObserver()).complete
    for number in range(2):
        settings = replace(whole.eval, num_shards=2, shard_id=number)
        part = replace(whole, eval=settings, output_dir=tmp_path / str(number))
        if number == 1:
            killed_at_first_record(part)
        assert execute(prepare(part), SilentObserver()).complete
    merge_runs(parts(tmp_path, 0, 1), tmp_path / "run", SilentObserver())
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


def test_dataset_of_shards_is_made_when_they_are_merged(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for number in range(N_SHARDS):
        result = run(shard(tmp_path / str(number), number, n_episodes=2, dataset=tmp_path / f"set-{number}"))
        assert result.complete
        assert result.dataset is None
    merged = merge_runs(parts(tmp_path), tmp_path / "run", SilentObserver())
    assert merged.dataset is not None
    assert merged.dataset.episodes == 4
    table = parquet.read_table(tmp_path / "run" / "dataset" / "data" / "chunk-000" / "file-000.parquet")
    assert sorted(set(table["episode_index"].to_pylist())) == [0, 1, 2, 3]
    assert not (tmp_path / "run" / "spool").exists()
