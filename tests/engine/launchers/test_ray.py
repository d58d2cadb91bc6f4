"""Workers and policy servers on a real Ray cluster of two nodes: placed by Ray, and whatever dies is made good."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from robotrials.errors import ConfigError
from robotrials.plan.config import RaySettings, RunConfig
from robotrials.results.ledger import Ledger
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare, prepare_resume
from tests.engine.processes import Coordinator, errors_on_the_way, n_finished, wait_for
from tests.engine.toy_runs import Listener, digest, run, toy_config

# Not imported here: Ray reads its variables when it is, and the fixture below sets some.
pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason='pip install "robotrials[ray]"')


class Node:
    """``ray start`` in the foreground; ``head`` None starts a head. It is at ``address``."""

    def __init__(self, folder: str, n_cpus: int, head: Node | None = None) -> None:
        self.address = head.address if head else f"127.0.0.1:{_free_port()}"
        where = [f"--address={self.address}"] if head else ["--head", f"--port={self.address.rpartition(':')[2]}"]
        where += [] if head else ["--include-dashboard=false", f"--temp-dir={folder}"]
        more = ["--node-ip-address=127.0.0.1", "--min-worker-port=0", "--max-worker-port=0", "--disable-usage-stats"]
        ray = Path(sys.executable).parent / "ray"
        words = [str(ray), "start", *where, *more, f"--num-cpus={n_cpus}", "--object-store-memory=80000000", "--block"]
        log_path = Path(f"{folder}/node-{n_cpus}.log")
        with open(log_path, "wb") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, cwd="/", start_new_session=True)
        try:
            wait_for(lambda: "runtime started" in log_path.read_text() or self._process.poll() is not None, 60)
            assert self.raylets(), log_path.read_text()[-2000:]
        except AssertionError:
            self.end()
            raise

    def raylets(self) -> list[psutil.Process]:
        try:
            return [each for each in psutil.Process(self._process.pid).children() if each.name() == "raylet"]
        except psutil.NoSuchProcess:
            return []

    def kill_raylet(self) -> None:
        for raylet in self.raylets():
            raylet.kill()

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)


MODULES = {"worker": "robotrials.worker.process", "server": "robotrials.serving.process"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    # Ray's sockets are in there, and their paths must be short.
    folder = tempfile.mkdtemp(prefix="rt-ray-", dir="/tmp")
    Path(folder, "secret").write_text("0123456789abcdef" * 4)
    with pytest.MonkeyPatch.context() as patch:
        # A head asks for a secret unless told otherwise; whoever joins it must be told that it does.
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN_PATH", f"{folder}/secret")
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def head(folder: str) -> Iterator[Node]:
    """A node with room for one worker or server."""
    node = Node(folder, 1)
    yield node
    node.end()


@pytest.fixture(scope="module")
def second(folder: str, head: Node) -> Iterator[Node]:
    """Another one, with room for two."""
    node = Node(folder, 2, head)
    yield node
    node.end()


def on_ray(directory: Path, head: Node, **more: Any) -> RunConfig:
    return replace(toy_config(directory, runtime="ray", **more), ray=RaySettings(address=head.address))


def processes_of(module: str) -> list[psutil.Process]:
    """Those of runs on a cluster."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if MODULES[module] in words and any(word.startswith("--connect=tcp://") for word in words):
            found.append(process)
    return found


def workers_in(directory: Path) -> set[str]:
    """Those that have finished an episode."""
    if not (directory / "ledger.sqlite").exists():
        return set()
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return {record.worker for record in ledger.accepted()}


def test_outcomes_and_videos_are_those_of_a_local_run(tmp_path: Path, head: Node, second: Node) -> None:
    run(toy_config(tmp_path / "local", record="all"))
    config = on_ray(tmp_path / "run", head, record="all", policy_servers=1, batch_size=0, step_s=0.01)
    with Coordinator(config) as coordinator:
        assert coordinator.wait(90) == 0
    assert digest(tmp_path / "run") == digest(tmp_path / "local")
    videos = [path.relative_to(tmp_path / "local") for path in (tmp_path / "local/videos").rglob("*.mp4")]
    assert len(videos) == 12
    for name in videos:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()
    logs = "".join((tmp_path / "run/logs" / name).read_text() for name in ("w0.log", "w1.log"))
    assert logs.count("success") == 12, "two workers beside one server, and their logs are brought here"
    assert not processes_of("worker")
    assert not processes_of("server")


def test_actors_that_are_killed_are_replaced_and_workers_find_a_server_that_has_moved(
    tmp_path: Path, head: Node, second: Node
) -> None:
    run(toy_config(tmp_path / "local", n_episodes=10))
    config = on_ray(tmp_path / "run", head, n_episodes=10, batch_size=2, policy_servers=1, step_s=0.03)
    with Coordinator(config) as coordinator:
        for module in ("server", "worker"):
            before = n_finished(tmp_path / "run")
            wait_for(lambda done=before: n_finished(tmp_path / "run") >= done + 2, 60)  # type: ignore[misc]
            victim = processes_of(module)[0]
            victim.parent().kill()
            victim.wait(10)
        assert coordinator.wait(120) == 0
    assert 1 <= len(errors_on_the_way(tmp_path / "run")) <= 4
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def test_a_coordinator_that_is_killed_takes_its_processes_along_and_the_run_can_go_on(
    tmp_path: Path, head: Node, second: Node
) -> None:
    run(toy_config(tmp_path / "local", n_episodes=8))
    config = on_ray(tmp_path / "run", head, n_episodes=8, batch_size=2, policy_servers=1, step_s=0.02)
    with Coordinator(config) as coordinator:
        wait_for(lambda: n_finished(tmp_path / "run") >= 2, 60)
        coordinator.kill()
        coordinator.wait(10)
        wait_for(lambda: not processes_of("worker") and not processes_of("server"), 20)
    assert execute(prepare_resume(tmp_path / "run"), Listener()).complete
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def test_a_node_that_is_lost_costs_an_attempt_and_the_rest_goes_on_elsewhere(
    tmp_path: Path, head: Node, second: Node
) -> None:
    """The last test with two nodes: afterwards there is one."""
    run(toy_config(tmp_path / "local", n_episodes=30))
    config = on_ray(tmp_path / "run", head, n_episodes=30, batch_size=3, step_s=0.02)
    with Coordinator(config) as coordinator:
        wait_for(lambda: len(workers_in(tmp_path / "run")) == 3, 60)
        second.kill_raylet()
        assert coordinator.wait(120) == 0
    errors = errors_on_the_way(tmp_path / "run")
    assert 1 <= len(errors) <= 2
    assert all("its actor was lost" in error for error in errors)
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def test_nodes_with_other_versions_are_refused(tmp_path: Path, head: Node) -> None:
    prepared = prepare(on_ray(tmp_path / "run", head, batch_size=1))
    prepared.identity["benchmark"]["packages"]["numpy"] = "0.1"
    with pytest.raises(ConfigError, match=r"worker w0 runs where other versions.*numpy .* instead of 0\.1"):
        execute(prepared, Listener())
    assert not processes_of("worker")


def test_without_an_address_a_cluster_is_made_that_ends_with_the_run(tmp_path: Path) -> None:
    before = {each.pid for each in psutil.process_iter(["name"]) if each.info["name"] in ("raylet", "gcs_server")}
    config = toy_config(tmp_path / "run", runtime="ray", batch_size=0, n_episodes=2)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    listener = Listener()
    assert execute(prepare(config), listener).complete
    assert listener.messages[0].startswith("Ray: 1 node(s) with ")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    time.sleep(0.5)
    after = {each.pid for each in psutil.process_iter(["name"]) if each.info["name"] in ("raylet", "gcs_server")}
    assert after <= before
    assert json.loads((tmp_path / "run/run.json").read_text())["config"]["ray"]["address"] is None


def test_a_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run", runtime="ray")
    nobody = f"127.0.0.1:{_free_port()}"
    with pytest.raises(ConfigError, match=rf"--ray\.address={nobody}: .*refused.*Give HOST:PORT"):
        execute(prepare(replace(config, ray=RaySettings(address=nobody))), Listener())
