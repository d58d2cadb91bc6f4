"""Workers in containers of a real docker: outcomes as without, nothing reachable from inside, nothing left behind."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from robotrials.errors import ConfigError
from robotrials.plan.config import ContainerSettings, EnvChoice, PolicyChoice, RunConfig
from robotrials.run.execute import RunResult, execute
from robotrials.run.prepare import prepare, prepare_resume
from tests.engine.launchers import docker_service
from tests.engine.launchers.contained import MARK
from tests.engine.launchers.docker_service import BASE, HASTY, IMAGE, docker
from tests.engine.processes import Coordinator, errors_on_the_way, n_finished, wait_for
from tests.engine.toy_runs import Listener, digest, run, toy_config

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the image has Python 3.11")


@pytest.fixture(scope="module", autouse=True)
def images() -> Iterator[None]:
    with docker_service.docker_service():
        docker_service.build_images()
        yield


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    try:
        wait_for(lambda: not everything(), 20)  # docker removes a container a moment after it has ended
    finally:
        for container in everything():
            docker("rm", "--force", container, check=False)


def contained(directory: Path, image: str = IMAGE, memory: str = "600m", **more: Any) -> RunConfig:
    """The toy in containers; ``more`` as for ``toy_config``."""
    config = toy_config(directory, runtime="docker", **more)
    env = replace(config.env, type="tests.engine.launchers.contained:Contained")
    return replace(config, env=env, docker=ContainerSettings(image, "never", shm_size="64m", memory=memory))


def pusht(directory: Path, **settings: Any) -> RunConfig:
    config = toy_config(directory, n_episodes=4, record="first:1", **settings)
    docker_settings = ContainerSettings(IMAGE, "never", memory="1g")
    return replace(config, env=EnvChoice("pusht", {}), policy=PolicyChoice("random"), docker=docker_settings)


def running() -> list[str]:
    return docker("ps", "--quiet", "--filter=label=robotrials").split()


def everything() -> list[str]:
    return docker("ps", "--all", "--quiet", "--filter=label=robotrials").split()


# What comes out ---------------------------------------------------------------------------------------------------


def test_outcomes_and_videos_are_those_of_a_local_run(tmp_path: Path) -> None:
    pytest.importorskip("gym_pusht")
    run(pusht(tmp_path / "local"))
    result = run(pusht(tmp_path / "run", runtime="docker"))
    assert result.complete
    assert digest(tmp_path / "run") == digest(tmp_path / "local")
    video = "videos/pusht/PushT-v0/0.mp4"
    assert (tmp_path / "run" / video).read_bytes() == (tmp_path / "local" / video).read_bytes()
    packages = json.loads((tmp_path / "run/run.json").read_text())["identity"]["benchmark"]["packages"]
    assert "opencv-python-headless" in packages, "the versions are the image's, which has OpenCV without windows"


def test_observations_reach_a_policy_server_through_shared_memory(tmp_path: Path) -> None:
    run(toy_config(tmp_path / "local"))
    policy = "tests.engine.launchers.contained:SeesSharedMemory"
    assert run(contained(tmp_path / "run", policy=policy, policy_servers=1)).complete
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def test_this_machine_s_code_runs_in_an_image_that_has_none(tmp_path: Path) -> None:
    pytest.importorskip("gym_pusht")
    config = pusht(tmp_path / "run", runtime="docker")
    assert run(replace(config, docker=replace(config.docker, image=BASE, use_local_code=True))).complete


# What it may ------------------------------------------------------------------------------------------------------


def test_a_worker_has_no_network_no_root_and_nothing_to_write_to(tmp_path: Path) -> None:
    assert run(contained(tmp_path / "run", batch_size=1)).complete
    log = (tmp_path / "run/logs/w0.log").read_text()
    line = next(line for line in log.splitlines() if line.startswith(MARK))
    assert json.loads(line.removeprefix(MARK)) == {
        "user": 65534 if os.getuid() == 0 else os.getuid(),
        "capabilities": 0,
        "no_new_privileges": "1",
        "interfaces": ["lo"],
        "writes": ["/tmp"],
        "token": False,
    }


def test_the_secret_is_on_no_command_line(tmp_path: Path) -> None:
    with Coordinator(contained(tmp_path / "run", step_s=0.05)) as coordinator:
        wait_for(running)
        inspected = json.loads(docker("inspect", *running()))
        variables = dict(entry.split("=", 1) for entry in inspected[0]["Config"]["Env"])
        secret = variables["ROBOTRIALS_TOKEN"]
        assert len(secret) == 32
        shown = subprocess.run(["ps", "-e", "-ww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        assert "docker run" in shown
        assert secret not in shown
        coordinator.send_signal(signal.SIGTERM)
        assert coordinator.wait(30) == 2


# What goes wrong --------------------------------------------------------------------------------------------------


def test_a_container_that_needs_too_much_memory_is_killed_and_its_episode_runs_again(tmp_path: Path) -> None:
    run(toy_config(tmp_path / "local"))
    listener = Listener()
    result = run(contained(tmp_path / "run", memory="300m", trouble="hog@a/2"), listener)
    assert (result.complete, result.summary.overall.n_errors) == (True, 0)
    (error,) = errors_on_the_way(tmp_path / "run")
    assert "its container was killed; it may hold 300m of memory (--docker.memory)" in error
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def test_a_container_that_somebody_kills_costs_one_attempt(tmp_path: Path) -> None:
    run(toy_config(tmp_path / "local", n_episodes=12))
    with Coordinator(contained(tmp_path / "run", step_s=0.02, n_episodes=12)) as coordinator:
        wait_for(lambda: n_finished(tmp_path / "run") >= 2)
        docker("kill", running()[0])
        assert coordinator.wait(60) == 0
    assert len(errors_on_the_way(tmp_path / "run")) <= 1
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def test_containers_whose_coordinator_was_killed_end_by_themselves(tmp_path: Path) -> None:
    with Coordinator(contained(tmp_path / "run", HASTY, step_s=0.05, n_episodes=20)) as coordinator:
        wait_for(lambda: n_finished(tmp_path / "run") >= 1)
        coordinator.kill()
        coordinator.wait(10)
        assert len(running()) == 2
        wait_for(lambda: not running(), 20)


def test_a_resumed_run_removes_the_containers_of_a_coordinator_that_was_killed(tmp_path: Path) -> None:
    run(toy_config(tmp_path / "local", n_episodes=8))
    with Coordinator(contained(tmp_path / "run", step_s=0.02, n_episodes=8)) as coordinator:
        wait_for(lambda: n_finished(tmp_path / "run") >= 2)
        coordinator.kill()
        coordinator.wait(10)
    before = running()
    assert len(before) == 2
    result = resume(tmp_path / "run")
    assert result.complete
    assert set(before).isdisjoint(running())
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


def test_a_network_that_is_cut_between_container_and_run_loses_nothing(tmp_path: Path) -> None:
    """The worker is started by hand on docker's bridge and joins over TCP; for a while all packets are dropped."""
    seconds = 20.0 if os.environ.get("ROBOTRIALS_CHAOS") == "full" else 3.0
    run(toy_config(tmp_path / "local", n_episodes=10))
    subnet = docker("network", "inspect", "bridge", "--format={{(index .IPAM.Config 0).Subnet}}")
    gateway = next(ipaddress.ip_network(subnet).hosts())
    config = toy_config(
        tmp_path / "run", n_episodes=10, runtime="external", batch_size=0, step_s=0.02, listen=f"tcp://{gateway}:0"
    )
    with Coordinator(config) as coordinator:
        wait_for(lambda: (tmp_path / "run/connect.json").exists())
        door = json.loads((tmp_path / "run/connect.json").read_text())
        words = ["--detach", "--rm", "--label=robotrials=cut", "--env=ROBOTRIALS_TOKEN"]
        os.environ["ROBOTRIALS_TOKEN"] = door["token"]
        worker = docker("run", *words, IMAGE, "python3", "-m", "robotrials", "worker", f"--connect={door['address']}")
        del os.environ["ROBOTRIALS_TOKEN"]
        wait_for(lambda: n_finished(tmp_path / "run") >= 2)
        address = docker("inspect", worker, "--format={{.NetworkSettings.IPAddress}}")
        with cut_off(address):
            time.sleep(1.0)  # what was under way has arrived
            before = n_finished(tmp_path / "run")
            time.sleep(seconds)
            assert n_finished(tmp_path / "run") == before < 20
        assert coordinator.wait(120) == 0
        wait_for(lambda: not running(), 20)
    assert errors_on_the_way(tmp_path / "run") == []
    assert digest(tmp_path / "run") == digest(tmp_path / "local")


# What is said -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"image": "robotrials-nowhere"}, "the image robotrials-nowhere: .*No such image.*--docker.image=NAME"),
        ({"image": BASE}, f"the image {BASE} has no robotrials.*--docker.use_local_code=true"),
        ({"image": IMAGE, "python": "python9"}, "python9.*(not found|No such file).*--docker.python=PATH"),
        ({"image": IMAGE, "gpus": "all"}, "--docker.gpus=none"),
        ({"image": IMAGE, "gpus": "some"}, "invalid count .some.*--docker.gpus=none"),
        ({"image": IMAGE, "cpus": 1e6}, "Range of CPUs.*--docker.cpus"),
        ({"image": IMAGE, "cpus": 0.0}, "--docker.cpus must be above 0"),
        ({"image": IMAGE, "memory": "much"}, "--docker.memory must be a number and k, m or g, as 4g; got 'much'"),
        ({"image": IMAGE, "memory": "5m"}, "[Mm]emory limit.*--docker.memory"),
        ({"image": IMAGE, "memory": "20m"}, "was killed; it may hold 20m of memory"),
        ({"image": IMAGE, "shm_size": "8"}, "--docker.shm_size must be a number"),
    ],
)
def test_an_image_that_cannot_be_used_is_refused_before_anything_starts(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    config = replace(pusht(tmp_path / "run", runtime="docker"), docker=ContainerSettings(pull="never", **settings))
    with pytest.raises(ConfigError, match=said):
        prepare(config)
    assert not (tmp_path / "run").exists()


def test_an_engine_that_is_not_there_or_not_on_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = pusht(tmp_path / "run", runtime="docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody")
    with pytest.raises(ConfigError, match=r"annot connect.*Is its service on.*DOCKER_HOST"):
        prepare(config)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="there is no docker on this machine's path"):
        prepare(config)


def test_options_of_this_machine_mean_nothing_in_a_container(tmp_path: Path) -> None:
    config = pusht(tmp_path / "run", runtime="docker")
    with pytest.raises(ConfigError, match=r"--docker\.python names the image's"):
        prepare(replace(config, env=EnvChoice("pusht", {"python": sys.executable})))


def resume(directory: Path) -> RunResult:
    return execute(prepare_resume(directory), Listener())


@contextlib.contextmanager
def cut_off(address: str) -> Iterator[None]:
    """Between ``address`` and this machine nothing passes, as when a cable is pulled."""
    rules = [("INPUT", "-s", address, "-j", "DROP"), ("OUTPUT", "-d", address, "-j", "DROP")]
    for rule in rules:
        subprocess.run(["iptables", "-w", "-I", *rule], check=True)
    try:
        yield
    finally:
        for rule in rules:
            subprocess.run(["iptables", "-w", "-D", *rule], check=True)
