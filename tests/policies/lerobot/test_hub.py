"""The commit of a Hub repository: settled before anything is loaded, and what is loaded is that one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from robotrials.errors import ConfigError
from robotrials.plan.config import PolicyChoice
from robotrials.policies import registry
from robotrials.policies.lerobot import checkpoint
from robotrials.policies.lerobot import hub as hub_commits
from robotrials.policies.lerobot import policy as lerobot_policy
from tests.policies.hub_stand_in import ModelHub, serving
from tests.policies.lerobot.test_checkpoint import PUSHT, folder

OLD, NEW = "a" * 40, "b" * 40
needs_client = pytest.mark.skipif(find_spec("huggingface_hub") is None, reason="the Hub's client is not installed")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[ModelHub]:
    with serving(ModelHub()) as found:
        found.move("v1", OLD, folder(tmp_path / "old"))
        found.move("main", NEW, folder(tmp_path / "new"))
        yield found


def ask(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "robotrials.policies.lerobot.hub", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@needs_client
def test_hub_is_asked_and_not_the_cache_whose_branch_is_old(hub: ModelHub, tmp_path: Path) -> None:
    ref = tmp_path / "home" / "hub" / "models--me--act" / "refs" / "main"
    ref.parent.mkdir(parents=True)
    ref.write_text(OLD)
    online = hub.environment(tmp_path / "home")
    assert ask(online, "me/act").stdout.strip() == NEW
    assert ask(online, "me/act", "v1").stdout.strip() == OLD
    assert ask(hub.environment(tmp_path / "home", offline=True), "me/act").stdout.strip() == OLD
    unreachable = {**online, "HF_ENDPOINT": "http://127.0.0.1:9"}
    assert ask(unreachable, "me/act").stdout.strip() == OLD


@needs_client
def test_what_neither_hub_nor_cache_can_tell_is_refused_with_a_way_out(hub: ModelHub, tmp_path: Path) -> None:
    online = hub.environment(tmp_path / "home")
    assert ask(online, "me/act", "v9").stderr.strip() == (
        "--policy.pretrained_revision=v9: me/act on the Hub has no such revision"
    )
    assert "the Hub has no such repository that you may see; a private one needs" in ask(online, "me/none").stderr
    gated = ask(online, "me/gated").stderr
    assert "is a gated repository: ask for access at https://huggingface.co/me/gated" in gated
    assert "log in (hf auth login)" in ask(online, "me/token").stderr
    assert "the Hub cannot be reached" in ask(online, "me/busy").stderr
    offline = ask(hub.environment(tmp_path / "home", offline=True), "me/act")
    assert offline.returncode == 1
    assert "HF_HUB_OFFLINE is set" in offline.stderr
    assert "nstall" not in offline.stderr
    unreachable = ask({**online, "HF_ENDPOINT": "http://127.0.0.1:9"}, "me/act")
    assert "the Hub cannot be reached" in unreachable.stderr
    assert "let this machine reach the Hub, or download the repository beforehand" in unreachable.stderr
    assert "--policy.pretrained_revision=<40 digits>" in offline.stderr


def test_commit_is_itself_and_asks_nobody() -> None:
    assert hub_commits.commit("me/act", OLD) == OLD


def test_interpreter_without_the_client_asks_the_policys_own(
    hub: ModelHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in hub.environment(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(hub_commits, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"huggingface_hub is not installed.*pip install .*\[hub\]"):
        hub_commits.commit("me/act")
    if find_spec("huggingface_hub") is not None:
        assert hub_commits.commit("me/act", "v1", sys.executable) == OLD


def test_fitting_settles_the_commit_for_servers_and_the_identity_tells_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(hub_commits, "find_spec", lambda name: None)
    refs = tmp_path / "models--me--act" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text(NEW)
    (refs / "v1").write_text(OLD)
    main = PolicyChoice("lerobot", "me/act", {"device": "cpu"})
    old = PolicyChoice("lerobot", "me/act", {"device": "cpu", "pretrained_revision": "v1"})
    for choice, commit in ((main, NEW), (old, OLD)):
        fitted = lerobot_policy.fitted(choice, [PUSHT], {})
        assert fitted.options["commit"] == commit
        (refs / "main").write_text("c" * 40)  # moved since
        assert registry.revision(fitted) == f"me/act@{commit}"
        assert registry.without_places(choice).options == {"device": "cpu"}


def test_base_of_an_adapter_is_settled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(hub_commits, "find_spec", lambda name: None)
    adapter = folder(tmp_path / "adapter", use_peft=True)
    (adapter / "adapter_model.safetensors").write_bytes(b"")
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "me/base", "revision": "v1"}))
    refs = tmp_path / "models--me--base" / "refs"
    refs.mkdir(parents=True)
    (refs / "v1").write_text(OLD)
    fitted = lerobot_policy.fitted(PolicyChoice("lerobot", str(adapter)), [PUSHT], {})
    assert fitted.options["base_commit"] == OLD
    (refs / "v1").write_text(NEW)
    assert registry.revision(fitted) == f"sha256:{checkpoint.digest(adapter)} on me/base@{OLD}"


_LOAD = """
import sys
from robotrials.policies.lerobot.policy import LeRobotPolicy
policy = LeRobotPolicy("me/act", max_batch=1, **dict(word.split("=") for word in sys.argv[1:]))
print(policy.revision, float(sum(p.sum() for p in policy._engine._policy.parameters())))
"""


def load(environment: dict[str, str], *options: str) -> tuple[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, *options], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    revision, total = done.stdout.split()[-2:]
    return revision, float(total)


def test_settled_commit_is_loaded_although_its_branch_has_moved(hub: ModelHub, tmp_path: Path) -> None:
    pytest.importorskip("lerobot")
    from tests.policies import tiny_lerobot

    hub.commits[OLD] = tiny_lerobot.shared("act")  # while main is at another commit
    online = hub.environment(tmp_path / "home")
    pinned = load(online, f"commit={OLD}")
    assert pinned[0] == f"me/act@{OLD}"
    # The branch that the commit was found by is noted, so that the run goes on without the Hub.
    assert load(hub.environment(tmp_path / "home", offline=True)) == pinned
