"""The reference says what is there: files, keys, columns, verbs, names; and tests that pages name exist."""

from __future__ import annotations

import importlib
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from robotrials.benchmarks import registry as benchmarks
from robotrials.cli.main import main
from tests.docs.pages import DOCS, PAGES, ROOT

FILES = (DOCS / "reference/run-directory.md").read_text(encoding="utf-8")
CODE = set(re.findall(r"`([^`]+)`", FILES))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("gym_pusht")
    folder = tmp_path_factory.mktemp("reference") / "run"
    flags = ["--policy.type=random", "--env.type=pusht", "--env.episode_length=3", "--eval.n_episodes=1"]
    assert main(["eval", *flags, "--eval.batch_size=1", f"--output_dir={folder}"]) == 0
    return folder


def documented(name: str) -> bool:
    return any(name == code or name in re.split(r"[^\w.]+", code) for code in CODE)


def test_every_file_of_a_run_is_described(run: Path) -> None:
    names = {path.relative_to(run).parts[0] for path in run.rglob("*") if path.is_file()}
    assert {name for name in names if not documented(name)} == set()


@pytest.mark.parametrize("name", ["run.json", "eval_info.json", "metrics.json"])
def test_every_key_of_its_json_files_is_described(run: Path, name: str) -> None:
    content = json.loads((run / name).read_text())
    keys = set(content)
    if name == "eval_info.json":
        keys |= set(content["overall"]) | set(content["per_task"][0]) | set(content["per_task"][0]["metrics"])
    assert {key for key in keys if not documented(key) and key != "metrics"} == set()


def test_every_column_of_the_ledger_is_described(run: Path) -> None:
    with sqlite3.connect(run / "ledger.sqlite") as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(attempts)")]
    assert len(columns) > 15
    assert [column for column in columns if not documented(column)] == []


def test_nothing_is_described_that_is_not_there(run: Path) -> None:
    content: dict[str, Any] = json.loads((run / "metrics.json").read_text())
    section = FILES.partition("## metrics.json")[2].partition("\n## ")[0]
    always = re.findall(r"`(\w+)`", section.partition("`per_label`")[0])
    assert set(always) - {"suite"} == set(content)


def test_names_of_the_python_reference_can_be_imported_and_have_a_docstring() -> None:
    names = re.findall(r"^::: (\S+)$", (DOCS / "reference/python.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(names) > 15
    for name in names:
        assert (resolve(name).__doc__ or "").strip(), name


def resolve(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)


def test_every_benchmark_has_a_page_and_stands_in_the_overview() -> None:
    overview = (DOCS / "benchmarks/overview.md").read_text(encoding="utf-8")
    for name in benchmarks.names():
        assert (DOCS / f"benchmarks/{name}.md").is_file(), name
        assert f"[`{name}`]({name}.md)" in overview


def test_tests_that_pages_name_exist() -> None:
    functions = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for file in re.findall(r"`(tests/[\w/]+\.py)`", text):
            assert (ROOT / file).is_file(), f"{page.name}: {file}"
        for name in re.findall(r"`(test_\w+)`", text):
            assert f"def {name}(" in functions, f"{page.name}: {name}"
