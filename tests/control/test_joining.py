"""Workers that the run has not started: they join, work and leave at any time, and change no outcome."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from robotrials.control.joining import CONNECT_FILE, joining_rule, read_join_file
from robotrials.control.messages import SESSION_FILE, Ready
from robotrials.engine import worker_table
from robotrials.errors import ConfigError
from robotrials.plan.config import RunConfig
from robotrials.policies.base import PolicySpec
from robotrials.results.ledger import Ledger
from robotrials.run.execute import RunResult, execute
from robotrials.run.prepare import prepare
from tests.engine.toy_runs import Listener, digest, run, scenes_config, toy_config

ROOT = Path(__file__).parents[2]


class Background:
    """A run in a thread of this process."""

    def __init__(self, directory: Path, config: Callable[..., RunConfig] = toy_config, **more: object) -> None:
        self.listener = Listener()
        self.directory = directory
        settings = {"listen": "tcp://127.0.0.1:0", "runtime": "external", "batch_size": 0, **more}
        self._prepared = prepare(config(directory, **settings))
        self._result: RunResult | None = None
        self._thread = threading.Thread(target=self._execute, daemon=True)  # a test that fails must end
        self._thread.start()
        wait_for(lambda: (directory / CONNECT_FILE).exists(), 30)

    def _execute(self) -> None:
        self._result = execute(self._prepared, self.listener)

    def result(self, seconds: float = 60.0) -> RunResult:
        self._thread.join(seconds)
        assert self._result is not None, self.listener.messages
        return self._result


def wait_for(condition: object, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[object]:
    """Starts ``robotrials worker`` as a person would; ends what is left."""
    started: list[subprocess.Popen[str]] = []

    def start(*flags: str, cwd: Path = ROOT, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "robotrials", "worker", *flags],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def at_start(folder: Path, code: str) -> dict[str, str]:
    """The variables of a Python that begins with ``code``."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": os.pathsep.join(map(str, (site, ROOT / "src", ROOT)))}


def n_finished(directory: Path) -> int:
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return len(ledger.accepted_ids())


def test_outcomes_of_joined_workers_are_those_of_local_ones(tmp_path: Path, worker: object) -> None:
    run(toy_config(tmp_path / "local"))
    background = Background(tmp_path / "run")
    first = worker(f"--run={tmp_path / 'run'}", "--n=2")
    result = background.result()
    assert result.complete
    assert digest(tmp_path / "run") == digest(tmp_path / "local")
    assert first.wait(20) == 0
    assert not (tmp_path / "run" / CONNECT_FILE).exists()
    assert not (tmp_path / "run" / SESSION_FILE).exists()


def test_the_secret_is_the_owners_alone_and_a_wrong_one_gets_no_episode(tmp_path: Path, worker: object) -> None:
    background = Background(tmp_path / "run")
    assert (tmp_path / "run" / CONNECT_FILE).stat().st_mode & 0o777 == 0o600
    address, token = read_join_file(tmp_path / "run")
    hasty = "import robotrials.control.heartbeat as p\np.COORDINATOR_SILENT_S = 5.0\n"
    stranger = worker(f"--connect={address}", ROBOTRIALS_TOKEN="wrong" * 4, **at_start(tmp_path, hasty))
    wait_for(lambda: any("without this run's token" in text for text in background.listener.messages), 30)
    assert n_finished(tmp_path / "run") == 0
    worker(f"--connect={address}", ROBOTRIALS_TOKEN=token)
    assert background.result().complete
    assert stranger.wait(20) == 1
    assert "knows this token, or no run listens there" in stranger.stdout.read()


def test_a_worker_that_the_run_cannot_use_says_why(tmp_path: Path, worker: object) -> None:
    background = Background(tmp_path / "run")
    older = "from robotrials import version\nversion.__version__ = '0.0.1'\n"
    other = worker(f"--run={tmp_path / 'run'}", **at_start(tmp_path, older))
    assert other.wait(60) == 1
    assert "cannot play this run: other versions could give other outcomes: robotrials 0.0.1" in other.stdout.read()
    worker(f"--run={tmp_path / 'run'}")
    assert background.result().complete


@pytest.mark.parametrize("address", ["foo", "tcp://somewhere", "tcp://somewhere:99999"])
def test_what_is_no_address_is_refused_before_a_worker_starts(address: str, worker: object) -> None:
    process = worker(f"--connect={address}", ROBOTRIALS_TOKEN="0123456789abcdef")
    assert process.wait(20) == 1
    said = process.stdout.read()
    assert said == f"error: --connect={address} is no address; right is tcp://HOST:PORT, as the run has printed it\n"


def test_a_worker_without_the_run_s_disk_sends_its_videos_and_spools(tmp_path: Path, worker: object) -> None:
    pytest.importorskip("pyarrow")
    local = tmp_path / "local"
    run(toy_config(local, record="all", dataset=tmp_path / "local-data"))
    background = Background(tmp_path / "run", record="all", dataset=tmp_path / "data")
    address, token = read_join_file(tmp_path / "run")
    (tmp_path / "run" / SESSION_FILE).write_text("another folder of that name")
    worker(f"--connect={address}", ROBOTRIALS_TOKEN=token)
    assert background.result().complete
    videos = sorted(path.relative_to(local / "videos") for path in (local / "videos").rglob("*.mp4"))
    assert len(videos) == 12
    for name in videos:
        assert (tmp_path / "run" / "videos" / name).read_bytes() == (local / "videos" / name).read_bytes()
    tables = sorted(path.relative_to(tmp_path / "data") for path in (tmp_path / "data" / "data").rglob("*.parquet"))
    assert tables
    for name in tables:
        assert (tmp_path / "data" / name).read_bytes() == (tmp_path / "local-data" / name).read_bytes()
    assert not list((tmp_path / "run").rglob("*.part"))


def test_a_worker_that_is_asked_to_leave_finishes_its_episode_first(tmp_path: Path, worker: object) -> None:
    background = Background(tmp_path / "run", n_episodes=20, step_s=0.01)
    leaver = worker(f"--run={tmp_path / 'run'}")
    wait_for(lambda: n_finished(tmp_path / "run") >= 2, 30)
    leaver.send_signal(signal.SIGTERM)
    assert leaver.wait(20) == 0
    wait_for(lambda: any("left" in text for text in background.listener.messages), 10)
    assert 2 <= n_finished(tmp_path / "run") < 40
    worker(f"--run={tmp_path / 'run'}", "--n=2")
    result = background.result()
    assert (result.complete, result.summary.overall.n_errors) == (True, 0)
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        assert all(len(ledger.attempts_of(episode)) == 1 for episode in range(40))


def test_scenes_of_one_process_join_and_leave_together(tmp_path: Path, worker: object) -> None:
    background = Background(tmp_path / "run", scenes_config, n_episodes=20, step_s=0.01)
    leaver = worker(f"--run={tmp_path / 'run'}", "--scenes=3")
    wait_for(lambda: n_finished(tmp_path / "run") >= 4, 30)
    leaver.send_signal(signal.SIGTERM)
    assert leaver.wait(20) == 0
    wait_for(lambda: sum(text.endswith("left") for text in background.listener.messages) == 3, 10)
    assert n_finished(tmp_path / "run") < 40
    worker(f"--run={tmp_path / 'run'}", "--n=2", "--scenes=2")
    result = background.result()
    assert (result.complete, result.summary.overall.n_errors) == (True, 0)
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        assert len({record.worker for record in ledger.accepted()}) == 7
        assert all(len(ledger.attempts_of(episode)) == 1 for episode in range(40))
    run(toy_config(tmp_path / "local", n_episodes=20))
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def test_scenes_where_a_process_can_have_one_are_refused_with_the_reason(tmp_path: Path, worker: object) -> None:
    background = Background(tmp_path / "run")
    refused = worker(f"--run={tmp_path / 'run'}", "--scenes=2")
    assert refused.wait(60) == 1
    assert "toy plays one scene in each process: leave --scenes out" in refused.stdout.read()
    worker(f"--run={tmp_path / 'run'}")
    assert background.result().complete


def test_a_worker_that_dies_is_missed_and_its_episode_runs_again(
    tmp_path: Path, worker: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_table.WorkerTable, "LOST_AFTER_S", 2.5)
    background = Background(tmp_path / "run", n_episodes=10, step_s=0.01)
    victim = worker(f"--run={tmp_path / 'run'}")
    wait_for(lambda: n_finished(tmp_path / "run") >= 2, 30)
    victim.kill()  # and with it, by the kernel, its worker
    wait_for(lambda: any("not heard of" in text for text in background.listener.messages), 20)
    worker(f"--run={tmp_path / 'run'}")
    assert background.result().complete
    run(toy_config(tmp_path / "local", n_episodes=10, step_s=0.01))
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def faulty_config(directory: Path, **more: object) -> RunConfig:
    config = toy_config(directory, **more)
    return replace(config, env=replace(config.env, type="tests.chaos.faulty:Faulty"))


def test_a_worker_that_hangs_with_python_s_lock_held_ends_itself_and_another_plays(
    tmp_path: Path, worker: object
) -> None:
    background = Background(
        tmp_path / "run", faulty_config, trouble="gil_once@a/2", step_timeout=2.0, tasks="a", n_episodes=4
    )
    joined = worker(f"--run={tmp_path / 'run'}", f"--logs={tmp_path / 'logs'}")
    assert background.result().complete
    assert joined.wait(20) == 0
    said = joined.stdout.read()
    assert said.count("ended (exit status 1)") == 1, said
    logs = [log.read_text() for log in sorted((tmp_path / "logs").iterdir())]
    assert "tests/chaos/faulty.py" in logs[0]  # where it hung
    assert len(logs) == 2
    run(toy_config(tmp_path / "local", tasks="a", n_episodes=4))
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def test_a_worker_joins_beside_local_ones_and_a_served_policy_is_reached_over_tcp(
    tmp_path: Path, worker: object
) -> None:
    background = Background(
        tmp_path / "run", runtime="local", batch_size=1, n_episodes=20, step_s=0.005, policy_servers=1
    )
    worker(f"--run={tmp_path / 'run'}")
    assert background.result().complete
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        workers = {record.worker for record in ledger.accepted()}
    assert len(workers) == 2
    run(toy_config(tmp_path / "local", n_episodes=20, step_s=0.005))
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def test_other_versions_may_not_join() -> None:
    rule = joining_rule({"robotrials": "1", "python": "3.11", "benchmark": {"packages": {"mujoco": "3.3.0"}}})
    spec = PolicySpec("p")
    assert rule(Ready("w", spec, {}, "3.11", {"mujoco": "3.3.0", "robotrials": "1"})) is None
    said = rule(Ready("w", spec, {}, "3.12", {"mujoco": "3.8.1", "robotrials": "1"}))
    assert said is not None
    assert "python 3.12 instead of 3.11" in said
    assert "mujoco 3.8.1 instead of 3.3.0" in said


def test_a_directory_without_a_run_that_listens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="takes no workers"):
        read_join_file(tmp_path)
    with pytest.raises(ConfigError, match=r"needs --eval\.listen"):
        prepare(toy_config(tmp_path / "run", runtime="external"))
    with pytest.raises(ConfigError, match="is no address"):
        run(toy_config(tmp_path / "run", listen="localhost"))
