"""Every command of README and docs is understood by the program it names; those that run in a moment do run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from robotrials.errors import ConfigError
from tests.docs.pages import PAGES, ROOT, Block, blocks, commands, commands_of, split
from tests.docs.understood import NotUnderstoodError, check

RUN_PAGES = [page for page in PAGES if any(block.is_run for block in blocks(page))]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_command_is_understood(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # pages name examples by their path from there
    wrong = []
    for command in commands(page):
        try:
            check(command.words, loosely=command.inline)
        except (ConfigError, NotUnderstoodError) as error:
            wrong.append(f"{command}: {error}")
    assert wrong == []


@pytest.mark.parametrize("page", RUN_PAGES, ids=_name)
def test_the_commands_of_a_page_run_in_their_order(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "LP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    for block in (block for block in blocks(page) if block.is_run):
        for command in commands_of(block):
            words = _small(command.words)
            done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def _small(words: tuple[str, ...]) -> list[str]:
    """The command with this interpreter, and two episodes instead of many on two workers, filmed where it says so."""
    assert words[0] == "robotrials", f"only robotrials is run: {words}"
    rest = [word for word in words[1:] if not word.startswith("--eval.n_episodes")]
    small = ["--eval.n_episodes=2", "--eval.batch_size=2"] if rest[0] == "eval" else []
    if small and not any(word.startswith("--eval.record") for word in rest):
        small.append("--eval.record=none")
    return [sys.executable, "-m", "robotrials", *rest, *small]


def test_pages_have_commands_and_some_of_them_run() -> None:
    every = [command for page in PAGES for command in commands(page)]
    assert len(every) > 150
    assert {"eval", "resume", "bench", "compare", "report"} <= {c.words[1] for c in every if len(c.words) > 1}
    run = {c.words[1] for page in RUN_PAGES for block in blocks(page) if block.is_run for c in commands_of(block)}
    assert {"eval", "resume", "compare", "report", "metrics", "export"} <= run


@pytest.mark.parametrize(
    "line",
    [
        "robotrials evall --env.type=pusht --policy.type=random",
        "robotrials eval --env.type=pusht --policy.type=random --eval.episodes=3",
        "robotrials eval --env.type=pushd --policy.type=random",
        "robotrials eval --env.type=metaworld --env.task=no-such-task --policy.type=random",
        "robotrials eval --env.type=pusht --env.colour=red --policy.type=random",
        "robotrials eval --env.type=pusht --policy.type=random --policy.colour=red",
        "robotrials eval --env.type=pusht",
        "robotrials compare a b --fail-if-better",
        "robotrials bench install no-such-benchmark",
        "robotrials suite all no-such-suite",
        "make no-such-target",
        "pip install 'robotrials[no-such-extra]'",
        "python bench/no_such_script.py",
        "no-such-program --help",
    ],
)
def test_what_does_not_exist_is_not_understood(line: str) -> None:
    (words,) = split(line)
    with pytest.raises((ConfigError, NotUnderstoodError)):
        check(words)


def test_lines_are_split_as_a_shell_would() -> None:
    assert split("A=1 robotrials eval --until='width<=0.1' # as often") == [
        ("robotrials", "eval", "--until=width<=0.1")
    ]
    assert split("cd x && make test > log") == [("cd", "x"), ("make", "test")]
    block = Block("page", 7, "console", ("$ robotrials eval \\", "    --seed=1", "a table", "$ make demo"))
    assert [(c.line, c.words) for c in commands_of(block)] == [
        (7, ("robotrials", "eval", "--seed=1")),
        (10, ("make", "demo")),
    ]
