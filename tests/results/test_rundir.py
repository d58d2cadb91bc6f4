from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from robotrials.errors import ConfigError, RunLockedError
from robotrials.plan.episode import EpisodeSpec
from robotrials.results.rundir import (
    RunDirectory,
    differences,
    identity_hash,
    load_run_json,
    safe_name,
    video_name,
)


def episode(suite: str = "easy", task: str = "push-v3", index: int = 7) -> EpisodeSpec:
    return EpisodeSpec(0, suite, task, index, 1000, None, 500)


def test_opening_lays_out_the_directory(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "a" / "run") as run:
        assert run.videos.is_dir()
        assert run.logs.is_dir()
        assert run.ledger_path == tmp_path / "a" / "run" / "ledger.sqlite"
        assert run.load_run_json() is None


def test_run_json_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    content: dict[str, Any] = {"identity": {"plan": "9f2c"}, "mixed": [], "eta": None, "name": "größer"}
    with RunDirectory(tmp_path) as run:
        run.write_run_json({"old": 1})
        run.write_run_json(content)
        assert run.load_run_json() == content
    assert load_run_json(tmp_path) == content
    assert sorted(os.listdir(tmp_path)) == ["logs", "run.json", "run.lock", "videos"]


def test_a_second_coordinator_is_told_who_holds_the_directory(tmp_path: Path) -> None:
    with RunDirectory(tmp_path), pytest.raises(RunLockedError, match=f"in use by process {os.getpid()} on"):
        RunDirectory(tmp_path)
    RunDirectory(tmp_path).close()


HOLDER = """
import subprocess, sys, time
from pathlib import Path
from robotrials.results.rundir import RunDirectory
run = RunDirectory(Path(sys.argv[1]))
code = "import time; print('up', flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", code], close_fds=False)
print(child.pid, flush=True)
time.sleep(60)
"""


def test_the_lock_of_a_killed_holder_is_free_at_once_though_its_child_lives_on(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = sorted(process.stdout.readline().strip() for _ in range(2))
    child = int(said[0])
    assert said[1] == "up"
    try:
        with pytest.raises(RunLockedError, match=f"process {process.pid} on"):
            RunDirectory(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        os.kill(child, 0)  # it lives
        RunDirectory(tmp_path).close()
    finally:
        os.kill(child, signal.SIGKILL)


def test_half_written_files_of_a_killed_run_are_cleared_away(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run:
        video = run.video_path(episode())
    video.parent.mkdir(parents=True)
    leftovers = [tmp_path / ".run.json.123.tmp", video.with_name(".7.mp4.123.tmp")]
    for file in [*leftovers, video]:
        file.touch()
    RunDirectory(tmp_path).close()
    assert not any(file.exists() for file in leftovers)
    assert video.exists()


def test_a_directory_that_cannot_be_made_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"--output_dir .*file/run cannot be used"):
        RunDirectory(tmp_path / "file" / "run")


def test_not_a_run_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not a run directory: it has no run\.json"):
        load_run_json(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_a_damaged_run_json_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"run\.json (cannot be read|must hold a JSON object)"):
        load_run_json(tmp_path)


def test_the_video_of_an_episode_lies_under_its_suite_and_task(tmp_path: Path) -> None:
    assert video_name(episode()) == "videos/easy/push-v3/7.mp4"
    with RunDirectory(tmp_path) as run:
        assert run.video_path(episode()) == tmp_path / "videos" / "easy" / "push-v3" / "7.mp4"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../../etc", "a/b", "a\\b", "nul\x00", "ünï", "x" * 300, ".hidden", "a b", "-rf"]
)
def test_any_name_becomes_one_visible_component_of_a_path(name: str) -> None:
    safe = safe_name(name)
    assert safe
    assert "/" not in safe
    assert not safe.startswith(".")
    assert safe.isascii()
    assert safe.isprintable()
    assert len(safe) <= 120


def test_names_that_would_meet_stay_apart() -> None:
    names = ["a b", "a_b", "a/b", "x" * 200, "x" * 201, "", "_", ".a", "_a"]
    assert len({safe_name(name) for name in names}) == len(names)


def test_the_hash_of_an_identity_ignores_the_order_of_keys_and_the_kind_of_sequence() -> None:
    one = identity_hash({"a": 1, "b": {"c": (1, 2), "d": 0.5}})
    assert one == identity_hash({"b": {"d": 0.5, "c": [1, 2]}, "a": 1})
    assert len(one) == 16
    assert one != identity_hash({"a": 1, "b": {"c": (1, 2), "d": 0.25}})


def test_the_hash_of_an_identity_is_the_same_in_every_version() -> None:
    # sha256(b'{"plan":"9f2c"}')
    assert identity_hash({"plan": "9f2c"}) == "4ac75dfe5135f157"


def test_differences_name_the_nested_key_and_both_values() -> None:
    old = {
        "policy": {"revision": "a1b2", "options": {}},
        "benchmark": {"packages": {"mujoco": "3.3.0", "metaworld": "3.1.1"}},
        "exact": True,
        "cameras": ["a", "b"],
        "steps": 1,
    }
    new = {
        "policy": {"revision": "c3d4", "options": {"dtype": "float16"}},
        "benchmark": {"packages": {"mujoco": "3.8.1"}},
        "exact": False,
        "cameras": ["a", "c"],
        "steps": True,
    }
    assert differences(old, new) == [
        "policy.revision: a1b2 -> c3d4",
        "policy.options.dtype: (not set) -> float16",
        "benchmark.packages.mujoco: 3.3.0 -> 3.8.1",
        "benchmark.packages.metaworld: 3.1.1 -> (not set)",
        "exact: true -> false",
        "cameras[1]: b -> c",
        "steps: 1 -> true",
    ]


def test_an_identity_that_went_through_json_does_not_differ() -> None:
    identity = {"a": (1, 2), "b": {"c": None, "d": 0.1}}
    assert differences(json.loads(json.dumps(identity)), identity) == []


def test_long_values_that_differ_late_are_shown_whole() -> None:
    old, new = "x" * 80 + "1", "x" * 80 + "2"
    assert differences({"k": old}, {"k": new}) == [f"k: {old} -> {new}"]
    assert differences({"k": old}, {"k": "y"}) == [f"k: {'x' * 57}... -> y"]
