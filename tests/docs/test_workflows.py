"""Workflows do what docs/ci.md says: actions pinned by commit, least permissions, commands that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import DOCS, ROOT, Block, commands_of
from tests.docs.understood import check

WORKFLOWS = sorted([*(ROOT / ".github/workflows").glob("*.yml"), *(ROOT / "examples/ci").glob("*.yml")])
WRITES = {"docs.yml": {"pages", "id-token"}, "release.yml": {"id-token"}}
"""Permissions to write, by workflow; no other has any."""


def load(path: Path) -> dict[str, Any]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    content["on"] = content.pop(True)  # YAML 1.1 reads "on" so
    return content


def steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job.get("steps", [job])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_say_their_version(path: Path) -> None:
    uses = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
    outside = [(name, rest) for name, rest in uses if not name.startswith("./")]
    assert [name for name, _ in outside if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
    assert [name for name, rest in outside if not re.fullmatch(r" # v[\d.]+", rest)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_job_may_read_and_only_publishing_may_write(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        granted = job["permissions"]
        assert "timeout-minutes" in job or "uses" in job
        assert {name for name, level in granted.items() if level == "write"} <= WRITES.get(path.name, set())
        assert set(granted.values()) <= {"read", "write"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_text_from_outside_reaches_a_shell(path: Path) -> None:
    assert [step["run"] for step in steps(load(path)) if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_commands_of_steps_are_understood(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for step in steps(load(path)):
        block = Block(path.name, 1, "bash", tuple(step.get("run", "").splitlines()))
        for command in commands_of(block):
            if command.words[0] in ("robotrials", "make"):
                check([word for word in command.words if not word.startswith("$")])
            elif "/" in command.words[0]:
                assert (ROOT / command.words[0].removeprefix("../").removeprefix("robotrials/")).is_file()


def test_the_inputs_of_the_workflow_to_call_are_described() -> None:
    inputs = load(ROOT / ".github/workflows/evaluate.yml")["on"]["workflow_call"]["inputs"]
    page = (DOCS / "ci.md").read_text(encoding="utf-8")
    assert [name for name in inputs if f"`{name}`" not in page] == []
    example = load(ROOT / "examples/ci/evaluate.yml")["jobs"]["smoke"]["with"]
    assert set(example) <= set(inputs)


def test_the_hubs_token_reaches_one_step_and_no_other() -> None:
    workflow = load(ROOT / ".github/workflows/evaluate.yml")
    assert workflow["on"]["workflow_call"]["secrets"]["HF_TOKEN"]["required"] is False
    steps = workflow["jobs"]["evaluate"]["steps"]
    holding = [step["name"] for step in steps if "secrets." in json.dumps(step)]
    assert holding == ["Evaluate"]
    assert (ROOT / ".github/workflows/evaluate.yml").read_text(encoding="utf-8").count("secrets.") == 1


def test_a_release_is_published_without_a_password() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    assert "password" not in text.replace("no password exists", "")
    publish = load(ROOT / ".github/workflows/release.yml")["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == {"name": "pypi"}
