from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from robotrials.errors import ConfigError, NotInstalledError
from robotrials.plan.config import WandbSettings
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare, prepare_resume
from robotrials.run.tracking import open_tracker
from tests.engine.toy_runs import Listener, run, toy_config


def records(file: Path) -> Iterator[bytes]:
    """The records of a .wandb file: 7 bytes, then LevelDB's log format (blocks of 32 KiB: checksum, length, kind)."""
    data, at, parts = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        rest = 32768 - at % 32768
        if rest < 7:  # no room for a header: the block was filled with zeros
            at += rest
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last of several
            yield parts
            parts = b""


def logged(directory: Path) -> list[tuple[str, dict[str, Any]]]:
    """(run id, last value of each key) of every offline run of Weights & Biases, read back from its own files."""
    from wandb.proto import wandb_internal_pb2

    found = []
    for file in sorted((directory / "wandb").glob("offline-run-*/run-*.wandb"), key=lambda f: f.stat().st_mtime):
        values: dict[str, Any] = {}
        for data in records(file):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            for item in record.history.item:
                values[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
        found.append((file.stem.removeprefix("run-"), values))
    return found


def test_wandb_offline_has_the_figures_and_one_id_over_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    path = tmp_path / "run"
    settings = WandbSettings(enable=True, mode="offline", notes="a note")
    config = replace(toy_config(path, n_episodes=2, trouble="once@a/0", max_attempts=1), wandb=settings)
    first = run(config)
    assert first.summary.overall.n_errors == 1
    second = execute(prepare_resume(path), Listener())
    assert second.complete
    deadline = time.monotonic() + 30  # its service writes the last lines after finish() has returned
    while not all("eval/complete" in values for _, values in logged(path)) and time.monotonic() < deadline:
        time.sleep(0.2)
    (one_id, one), (other_id, other) = logged(path)
    assert one_id == other_id == json.loads((path / "run.json").read_text())["tracking"]["id"]
    assert (one["eval/n_errors"], other["eval/n_errors"], other["eval/n_episodes"]) == (1, 0, 4)
    overall = second.summary.overall
    assert overall.rate is not None
    assert other["eval/pc_success"] == pytest.approx(100 * overall.rate)
    assert other["task/toys/a/n_episodes"] == 2
    assert (one["eval/complete"], other["eval/complete"]) == (0, 1)


def test_trackio_has_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    settings = WandbSettings(enable=True, backend="trackio", project="toys")
    result = run(replace(toy_config(tmp_path / "run", n_episodes=1), wandb=settings))
    assert result.complete
    assert json.loads((tmp_path / "run/run.json").read_text())["tracking"]["backend"] == "trackio"
    assert list((tmp_path / "trackio").rglob("toys*.db"))


class Failing(ModuleType):
    """A backend whose service goes away after it has begun."""

    def init(self, **about: Any) -> None:
        self.about = about

    def log(self, values: dict[str, Any]) -> None:
        raise ConnectionError("the service is gone")

    def finish(self) -> None:
        raise AssertionError("must be left alone")


def test_a_service_that_goes_away_costs_its_log_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "trackio", Failing("trackio"))
    listener = Listener()
    settings = WandbSettings(enable=True, backend="trackio")
    result = run(replace(toy_config(tmp_path / "run", n_episodes=1), wandb=settings), listener)
    assert result.complete
    assert [m for m in listener.messages if "trackio failed" in m] == [
        "trackio failed and is left alone from here on: the service is gone"
    ]


def test_what_keeps_it_from_beginning_is_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(toy_config(tmp_path / "run"), wandb=WandbSettings(enable=True))
    monkeypatch.setitem(__import__("sys").modules, "wandb", None)
    with pytest.raises(NotInstalledError, match=r"pip install .*\[wandb\]"):
        open_tracker(config, {}, Listener())
    with pytest.raises(NotInstalledError, match=r"pip install .*\[wandb\]"):
        prepare(config)
    assert not (tmp_path / "run").exists()
    broken = Failing("trackio")
    broken.init = lambda **about: 1 / 0  # type: ignore[method-assign]
    monkeypatch.setitem(__import__("sys").modules, "trackio", broken)
    settings = WandbSettings(enable=True, backend="trackio")
    with pytest.raises(ConfigError, match="trackio cannot begin a run: division by zero"):
        open_tracker(replace(config, wandb=settings), {}, Listener())
    assert open_tracker(replace(config, wandb=WandbSettings()), {}, Listener()) is None
