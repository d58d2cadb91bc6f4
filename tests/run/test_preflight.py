"""What a worker or a policy server would refuse is refused while the run is planned, and nothing is left behind."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robotrials.errors import ConfigError, ContractError, NotInstalledError
from robotrials.plan.config import PolicyChoice, RaySettings, RunConfig
from robotrials.policies import devices
from robotrials.run import preflight
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare
from tests.engine.toy_runs import Listener, toy_config


def refused(config: RunConfig, kind: type[Exception], says: str) -> None:
    assert config.output_dir is not None
    with pytest.raises(kind, match=says):
        prepare(config)
    assert not config.output_dir.exists()


def lerobot_config(where: Path, **options: str) -> RunConfig:
    """An ACT checkpoint that fits the toy benchmark, as far as a folder shows."""
    checkpoint = where / "checkpoint"
    checkpoint.mkdir()
    for name in ("model.safetensors", "policy_preprocessor.json", "policy_postprocessor.json"):
        (checkpoint / name).write_text("{}")
    config = {
        "type": "act",
        "input_features": {"observation.state": {"type": "STATE", "shape": [2]}},
        "output_features": {"action": {"type": "ACTION", "shape": [1]}},
    }
    (checkpoint / "config.json").write_text(json.dumps(config))
    return replace(toy_config(where / "run"), policy=PolicyChoice(None, str(checkpoint), options))


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7"])
def test_a_gpu_that_does_not_exist_is_refused(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "count_cuda_devices", lambda: 0)
    monkeypatch.setattr(devices, "_torch_version", lambda: {"__version__": "2.7", "cuda": "12.6"})
    with pytest.raises(ConfigError, match=rf"--policy.device={device}: this machine has no usable CUDA GPU"):
        devices.require_device(device)


def test_a_number_beyond_the_last_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "count_cuda_devices", lambda: 2)
    monkeypatch.setattr(devices, "_torch_version", lambda: {"cuda": "12.6"})
    devices.require_device("cuda")
    devices.require_device("cuda:1")
    with pytest.raises(ConfigError, match="this machine has 2 CUDA"):
        devices.require_device("cuda:2")


def test_a_torch_without_cuda_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_torch_version", lambda: {"__version__": "2.7.0+cpu", "cuda": None})
    with pytest.raises(ConfigError, match=r"torch 2\.7\.0\+cpu is built without CUDA"):
        devices.require_device("cuda")


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "CUDA", "cuda:-1", "", "cud", "cpu,cuda"])
def test_what_is_no_device_is_refused_before_anything_is_asked(tmp_path: Path, device: str) -> None:
    refused(lerobot_config(tmp_path, device=device), ConfigError, "unknown device")


def test_cpu_is_always_there() -> None:
    devices.require_device("cpu")


def test_a_policy_interpreter_without_lerobot_is_refused(tmp_path: Path) -> None:
    if devices._torch_version():
        pytest.skip("this interpreter has torch")
    refused(lerobot_config(tmp_path), NotInstalledError, r"LeRobot .*\[lerobot\]")


def test_a_policy_interpreter_without_robotrials_is_refused(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nPYTHONPATH= exec {sys.executable} -I -S "$@"\n')
    bare.chmod(bare.stat().st_mode | stat.S_IXUSR)
    config = toy_config(tmp_path / "run")
    config = replace(config, policy=replace(config.policy, options={"python": str(bare)}))
    refused(config, ConfigError, r"cannot run policies of this robotrials: .*Install it there: .*pip install")


def test_a_rename_of_a_key_that_no_task_has_is_refused_whatever_the_policy(tmp_path: Path) -> None:
    config = replace(
        toy_config(tmp_path / "run", policy="random"), rename_map={"observation.images.nope": "observation.image"}
    )
    refused(config, ContractError, r"--rename_map renames observation\.images\.nope, which a does not have")


@pytest.mark.parametrize(
    ("policy", "kind", "says"),
    [
        ("tests.toy:WantsSonar", ContractError, "observation.sonar"),
        (
            "tests.toy:Unbuildable",
            ConfigError,
            "could not make the policy: ValueError: weights are corrupt .*toy.py, line",
        ),
        ("tests.toy:Nobody", ConfigError, "has no Nobody"),
    ],
)
def test_own_policies_are_made_once_in_a_process_of_their_own(
    tmp_path: Path, policy: str, kind: type[Exception], says: str
) -> None:
    refused(toy_config(tmp_path / "run", policy=policy), kind, says)


def test_counts_of_built_in_policies_are_checked(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run", policy="random", policy_options={"n_action_steps": "0"})
    refused(config, ConfigError, "--policy.n_action_steps must be at least 1, got 0")


def test_an_expert_in_a_policy_server_is_refused(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run", policy="expert", policy_servers=1)
    refused(config, ConfigError, "looks into the simulator, so it cannot run in a policy server")


def test_a_replay_that_lacks_an_episode_or_has_another_size_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "actions.npz"
    np.savez(file, **{f"toys/a/{i}": np.zeros((3, 1)) for i in range(5)})
    config = replace(toy_config(tmp_path / "run", tasks="a"), policy=PolicyChoice("replay", str(file)))
    refused(config, ContractError, "no recording for episode toys/a/5")
    np.save(tmp_path / "wide.npy", np.zeros((3, 2)))
    config = replace(config, policy=PolicyChoice("replay", str(tmp_path / "wide.npy")))
    refused(config, ContractError, r"takes \[T, 1\] numbers")


def test_an_address_in_use_is_refused_and_a_free_one_stays_free(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        refused(toy_config(tmp_path / "run", listen=address), ConfigError, "--eval.listen=.*in use")
    for _ in range(3):
        preflight.check_listening(address)
    with pytest.raises(ConfigError, match="no address"):
        preflight.check_listening("tcp://127.0.0.1:22x")


def test_a_ray_cluster_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    config = replace(toy_config(tmp_path / "run", runtime="ray"), ray=RaySettings(address="127.0.0.1:1"))
    refused(config, ConfigError, "--ray.address=127.0.0.1:1: .*refused")


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"--output_dir=.*file is a file, not a folder"):
        prepare(toy_config(tmp_path / "file" / "run"))
    with pytest.raises(ConfigError, match=r"--output_dir=/proc/nothing cannot be written"):
        prepare(toy_config(Path("/proc/nothing")))


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match="Permission denied"):
        prepare(toy_config(tmp_path / "run"))


def test_a_dry_run_leaves_nothing_behind(tmp_path: Path) -> None:
    prepare(toy_config(tmp_path / "outputs" / "run", listen="tcp://127.0.0.1:0"))
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_refused_before_its_first_episode_leaves_no_folder(tmp_path: Path) -> None:
    """A served class is not imported to plan, so its server is the first to refuse it."""
    config = toy_config(tmp_path / "outputs" / "day" / "run", policy="tests.toy:WantsSonar", policy_servers=1)
    prepared = prepare(config)
    with pytest.raises(ContractError, match=r"observation\.sonar"):
        execute(prepared, Listener())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_before_stays(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    config = toy_config(tmp_path / "run", policy="tests.toy:WantsSonar", policy_servers=1)
    with pytest.raises(ContractError):
        execute(prepare(config), Listener())
    assert (tmp_path / "run").is_dir()


def test_logs_that_the_message_names_stay(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run", policy="tests.toy:Unbuildable", policy_servers=1)
    with pytest.raises(ConfigError, match=r"The end of .*logs/s0") as refusal:
        execute(prepare(config), Listener())
    assert str(tmp_path / "run" / "logs") in str(refusal.value)
    assert list((tmp_path / "run" / "logs").glob("s0*.log"))
