from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import shlex

import pytest

from robotrials import cli
from robotrials.benchmarks import registry as benchmarks
from robotrials.cli.flags import LINE_ONLY, NAMED, SET, TOP, parse_eval
from robotrials.cli.help import OVERVIEW, WIDTH, eval_page, flag_rows
from robotrials.cli.main import main
from robotrials.policies import registry as policies


@pytest.fixture(scope="module")
def page() -> str:
    return eval_page()


def test_every_flag_stands_on_the_page_once_as_an_entry(page: str) -> None:
    entries = re.findall(r"^  --([\w.]+)=?", page, re.MULTILINE)
    expected = [*NAMED, "policy.OPTION", "env.OPTION", *SET, *TOP, *LINE_ONLY, "push_to_hub"]
    assert sorted(entries) == sorted(expected)


def test_every_field_says_what_it_is_for_and_its_default() -> None:
    rows = flag_rows()
    assert set(rows) == {*SET, *TOP}
    assert rows["eval.n_episodes"] == ("--eval.n_episodes=N", "episodes of every task [50]")
    assert rows["eval.exact"][1].endswith("[true]")
    assert rows["eval.order"][0] == "--eval.order=longest|shuffled|balanced"


def verbs() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(cli.__path__)]


@pytest.mark.parametrize("name", verbs())
def test_the_page_of_every_verb_fits_eighty_columns(name: str) -> None:
    module = importlib.import_module(f"robotrials.cli.{name}")
    text = module.VERB.page if hasattr(module, "VERB") else getattr(module, "HELP", "")
    text = text if isinstance(text, str) else ""  # eval's is made when it is asked for, and tested above
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("text", [OVERVIEW])
def test_pages_fit_eighty_columns(text: str, page: str) -> None:
    for line in [*text.splitlines(), *page.splitlines()]:
        assert len(line) <= WIDTH, line


def test_the_page_names_benchmarks_policies_and_exit_statuses(page: str) -> None:
    flat = " ".join(page.split())
    assert ", ".join(benchmarks.names()) in flat
    assert ", ".join(policies.names()) in flat
    assert re.search(r"^  0  complete.*^  1  configuration error.*^  2  ", page, re.MULTILINE | re.DOTALL)


def test_the_worked_examples_parse(page: str, tmp_path: object) -> None:
    examples = page[page.index("Examples") : page.index("Exit status")].replace("\\\n", " ")
    lines = [line.strip() for line in examples.splitlines() if line.strip().startswith("robotrials eval")]
    assert len(lines) == 3
    for line in lines:
        words = [w for w in shlex.split(line)[2:] if not w.startswith("--config_path")]
        if len(words) < len(shlex.split(line)[2:]):
            words.append("--env.type=metaworld")  # stands in that file
        assert parse_eval(words).config.env.type == "metaworld"


@pytest.mark.parametrize("words", [["eval", "--help"], ["eval", "--sede=1", "-h"]])
def test_help_wins_over_any_mistake(words: list[str], page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out == page


def test_resume_has_a_page_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: robotrials resume DIR")


def test_the_options_of_a_named_benchmark_are_listed_too(page: str) -> None:
    longer = eval_page("metaworld")
    assert "--env.camera_name" not in page
    for field in dataclasses.fields(benchmarks.benchmark_class("metaworld").Config):
        assert len(re.findall(rf"^  --env.{field.name}=", longer, re.MULTILINE)) == 1
    assert max(map(len, longer.splitlines())) <= WIDTH


def test_an_unknown_benchmark_is_refused_even_in_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--env.type=metawrld", "--help"]) == 1
    assert "did you mean metaworld?" in capsys.readouterr().err
