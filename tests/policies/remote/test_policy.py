"""A policy behind ``robotrials serve``: the same outcomes as beside the worker, through restarts; misfits by name."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import PolicyChoice
from robotrials.policies import registry
from robotrials.policies.remote.policy import RemotePolicy
from robotrials.results.ledger import Ledger
from robotrials.results.rundir import load_run_json
from robotrials.run.prepare import prepare
from robotrials.serving.standalone import Standalone
from tests.engine.test_engine import wait_for_records
from tests.engine.toy_runs import digest, run
from tests.policies.toy_by_file import SEER, toy_config

TOKEN = "0123456789abcdef0123"


class Served:
    """``robotrials serve`` as a process; ``address`` is where it listens."""

    def __init__(self, *flags: str, address: str = "tcp://127.0.0.1:0", token: str = "") -> None:
        environment = {**os.environ, "ROBOTRIALS_POLICY_TOKEN": token}
        command = [sys.executable, "-m", "robotrials", "serve", f"--address={address}", *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        first = self.process.stderr.readline()
        found = re.search(r"at (\S+)$", first)
        assert found, first + self.process.stderr.read()
        self.address = found[1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def served(*flags: str, token: str = "") -> Iterator[str]:
    server = Served(*flags, token=token)
    try:
        yield server.address
    finally:
        server.kill()


def remote(url: str, **options: str) -> dict[str, object]:
    return {"policy": "remote", "policy_options": {"url": url, **options}}


def test_outcomes_are_those_of_the_policy_in_the_worker_and_a_moved_server_is_the_same_run(tmp_path: Path) -> None:
    alone = toy_config(tmp_path / "alone")
    assert run(alone).complete
    with served(f"--policy.type={SEER}") as url:
        config = toy_config(tmp_path / "remote", **remote(url))
        assert run(config).complete
        described = load_run_json(tmp_path / "remote")
        assert described["identity"]["policy"]["options"] == {}
        assert described["identity"]["policy"]["revision"].startswith(f"{SEER} source:")
        assert described["policy"]["served"]["exact"] is True
    with served(f"--policy.type={SEER}") as elsewhere:
        assert elsewhere != url
        assert prepare(toy_config(tmp_path / "remote", **remote(elsewhere))).is_finished
    assert digest(tmp_path / "remote") == digest(tmp_path / "alone")


def test_server_killed_and_restarted_in_the_middle_changes_no_outcome(tmp_path: Path) -> None:
    assert run(toy_config(tmp_path / "alone", step_s=0.1, n_episodes=3)).complete
    server = Served(f"--policy.type={SEER}")

    def restart() -> None:
        nonlocal server
        wait_for_records(tmp_path / "remote", 2)
        server.kill()
        server = Served(f"--policy.type={SEER}", address=server.address)

    restarter = threading.Thread(target=restart)
    restarter.start()
    try:
        assert run(toy_config(tmp_path / "remote", step_s=0.1, n_episodes=3, **remote(server.address))).complete
    finally:
        restarter.join()
        server.kill()
    assert digest(tmp_path / "remote") == digest(tmp_path / "alone")
    with Ledger.open(tmp_path / "remote" / "ledger.sqlite", read_only=True) as ledger:
        assert max(ledger.attempt_counts().values()) >= 2


def test_server_that_comes_back_with_another_policy_is_refused() -> None:
    server = Served(f"--policy.type={SEER}")
    policy = RemotePolicy(server.address)
    try:
        assert policy.spec().n_action_steps == 5
        policy.close()
        server.kill()
        server = Served(f"--policy.type={SEER}", "--policy.n=3", address=server.address)
        with pytest.raises(ContractError, match="restarted with another policy"):
            policy._connected()
    finally:
        policy.close()
        server.kill()


@pytest.mark.parametrize("flag", ["policy_servers", "python"])
def test_server_of_the_runs_own_is_refused_for_a_policy_elsewhere(tmp_path: Path, flag: str) -> None:
    with served(f"--policy.type={SEER}") as url:
        config = toy_config(tmp_path / "run", **remote(url))
        if flag == "python":
            config = replace(config, policy=replace(config.policy, python=sys.executable))
        else:
            config = replace(config, eval=replace(config.eval, policy_servers=1))
        with pytest.raises(ConfigError, match=f"{flag}=.*has its server elsewhere"):
            prepare(config)


def test_openpi_server_killed_and_restarted_in_the_middle_changes_no_outcome(tmp_path: Path) -> None:
    pytest.importorskip("websockets")
    settings = {"step_s": 0.1, "n_episodes": 3}
    assert run(toy_config(tmp_path / "alone", policy_options={"noise": "0"}, **settings)).complete
    flags = (f"--policy.type={SEER}", "--policy.noise=0", "--protocol=openpi")
    server = Served(*flags, address="ws://127.0.0.1:0")

    def restart() -> None:
        nonlocal server
        wait_for_records(tmp_path / "remote", 2)
        server.kill()
        server = Served(*flags, address=server.address)

    restarter = threading.Thread(target=restart)
    restarter.start()
    try:
        config = toy_config(tmp_path / "remote", "openpi", policy_options={"url": server.address}, **settings)
        assert run(config).complete
    finally:
        restarter.join()
        server.kill()
    assert digest(tmp_path / "remote") == digest(tmp_path / "alone")
    with Ledger.open(tmp_path / "remote" / "ledger.sqlite", read_only=True) as ledger:
        assert max(ledger.attempt_counts().values()) >= 2


def test_wrong_and_missing_tokens_are_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text(TOKEN + "\n")
    wrong.write_text("0123456789abcdef0124")
    with served(f"--policy.type={SEER}", token=TOKEN) as url:
        for options in ({"url": url}, {"url": url, "token_file": str(wrong)}):
            with pytest.raises(ConfigError, match="the token is not the one"):
                registry.revision(PolicyChoice("remote", None, options))
        assert registry.revision(PolicyChoice("remote", None, {"url": url, "token_file": str(right)}))
        monkeypatch.setenv("ROBOTRIALS_POLICY_TOKEN", TOKEN)
        assert registry.revision(PolicyChoice("remote", None, {"url": url}))


def test_nobody_at_the_address_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robotrials.policies.remote.policy._LOOK_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(ConfigError, match=r"--policy\.url=tcp://.*nobody answers"):
        registry.revision(PolicyChoice("remote", None, {"url": url}))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs --policy.url"),
        ({"url": "http://host:1"}, "an address is"),
        ({"url": "tcp://127.0.0.1:1", "token_file": "/nowhere"}, "cannot be read"),
        ({"url": "tcp://127.0.0.1:1", "uri": "x"}, "no option --policy.uri"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        registry.validate(PolicyChoice("remote", None, options))


@pytest.mark.parametrize("address", ["tcp://0.0.0.0:0", "tcp://[::]:0", "ws://0.0.0.0:0"])
def test_address_that_others_can_reach_needs_a_token_that_cannot_be_guessed(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROBOTRIALS_POLICY_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="so it needs a token"):
        Standalone(PolicyChoice(SEER), address)
    monkeypatch.setenv("ROBOTRIALS_POLICY_TOKEN", "12345")
    with pytest.raises(ConfigError, match="5 characters"):
        Standalone(PolicyChoice(SEER), address)


def test_token_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    server = Standalone(PolicyChoice(SEER), "tcp://127.0.0.1:0", token_file=str(file))
    server.close()
    assert len(file.read_text().strip()) == 32
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (PolicyChoice("expert"), "looks into the simulator"),
        (PolicyChoice("nonsense"), "unknown --policy.type"),
        (PolicyChoice(SEER, None, {"n": "many"}), r"--policy\.n"),
    ],
)
def test_policy_that_cannot_be_served_is_refused(choice: PolicyChoice, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Standalone(choice, "tcp://127.0.0.1:0")


def test_address_in_use_is_told_before_the_policy_is_loaded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="in use"):
        Standalone(PolicyChoice("tests.toy:Unbuildable"), f"tcp://127.0.0.1:{taken.getsockname()[1]}")


def test_unix_socket_left_by_a_killed_server_is_taken_over_a_living_ones_is_not(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/policy"
    server = Served(f"--policy.type={SEER}", address=address)
    with pytest.raises(ConfigError, match="in use"):
        Standalone(PolicyChoice(SEER), address)
    server.kill()
    assert (tmp_path / "policy").is_socket()
    Standalone(PolicyChoice(SEER), address).close()
    assert not (tmp_path / "policy").exists()


def test_serve_ends_by_signal_with_status_zero() -> None:
    server = Served(f"--policy.type={SEER}")
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(10) == 0


def test_stranger_cannot_hold_the_server_up_or_send_it_much() -> None:
    with served(f"--policy.type={SEER}") as url:
        host, port = url.removeprefix("tcp://").split(":")
        for data in (
            b"\x10\x00\x00\x00" + b"\0" * 8 + b"abc",
            b"\xff\xff\x0f\x00" + b"\0" * 8,
            b"\x04\0\0\0\1" + b"\0" * 7,
        ):
            bad = socket.create_connection((host, int(port)))
            bad.sendall(data)
            policy = RemotePolicy(url, connect_s=10)
            assert policy.spec().name == "seer"
            policy.close()
            bad.settimeout(10)
            assert bad.recv(1) == b""
            bad.close()
