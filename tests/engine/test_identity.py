"""Identity is safe by default: every option is in it unless it is marked as one that changes no outcome."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from robotrials.benchmarks.installed import Installed
from robotrials.plan.config import SETTINGS, EnvChoice, EvalSettings, PolicyChoice, RunConfig, option
from robotrials.plan.outcome import ELSEWHERE, NO_OUTCOME
from robotrials.plan.plan import build_plan
from robotrials.results.rundir import identity_hash
from robotrials.run.description import run_identity
from tests import toy

CONFIG = RunConfig(PolicyChoice("random"), EnvChoice("pusht"), seed=1000)


def identity(config: RunConfig) -> dict[str, Any]:
    benchmark = toy.Toy(toy.ToyConfig(task="a,b"))
    assert config.seed is not None
    plan = build_plan(benchmark.tasks(), config.eval.n_episodes, config.seed)
    return run_identity(config, benchmark, Installed("3.11", {"numpy": "2.0"}), plan, "builtin")


def options() -> Iterator[tuple[str, str]]:
    """Section and name of every option there is; the section is empty for those without."""
    for section, kind in {"": RunConfig, **SETTINGS}.items():
        for field in dataclasses.fields(kind):
            if field.metadata:
                yield section, field.name


def other(value: Any, field: dataclasses.Field[Any], hint: Any) -> Any:
    """A value that the option does not have now."""
    if choices := field.metadata.get("choices"):
        return next(choice for choice in choices if choice != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, Mapping):
        return {"observation.image": "x"}
    if value is None:
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return {int: 1, float: 1.0, Path: Path("x")}.get(kinds[0], "x")
    return f"{value}x"


def changed(section: str, name: str) -> RunConfig:
    owner = getattr(CONFIG, section) if section else CONFIG
    (field,) = (field for field in dataclasses.fields(owner) if field.name == name)
    value = other(getattr(owner, name), field, typing.get_type_hints(type(owner))[name])
    if name == "shard_id":
        return replace(CONFIG, eval=replace(CONFIG.eval, shard_id=1, num_shards=2))
    new = replace(owner, **{name: value})
    return replace(CONFIG, **{section: new}) if section else new


@pytest.mark.parametrize(("section", "name"), list(options()), ids=lambda word: word or "top")
def test_every_option_is_in_the_identity_unless_marked(section: str, name: str) -> None:
    differs = identity(changed(section, name)) != identity(CONFIG)
    if (section, name) == ("render", "device"):
        assert not differs  # what really draws is noted by run/prepare.py: auto may become the GPU, too
    else:
        assert differs is (name not in NO_OUTCOME.get(section, ()))


def test_marks_name_options_that_exist_and_each_once() -> None:
    there = set(options())
    for table in (NO_OUTCOME, ELSEWHERE):
        assert {(section, name) for section, marked in table.items() for name in marked} <= there
    for section, marked in ELSEWHERE.items():
        assert not marked & NO_OUTCOME.get(section, frozenset())


def test_an_option_that_nobody_marked_is_in_the_identity_once_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Later(EvalSettings):
        friction: float = option(1.0, "one that comes later")

    config = replace(CONFIG, eval=Later())
    assert identity(config) == identity(CONFIG)  # at its default it is what runs before it had
    assert identity(replace(config, eval=Later(friction=0.5)))["settings"] == {"eval.friction": 0.5}


def test_the_identity_of_a_run_is_what_it_was() -> None:
    """A hash written by an earlier state of the code; one that differs would refuse to resume every run there is."""
    known = {**identity(CONFIG), "robotrials": "0.1.0"}
    assert list(known) == ["robotrials", "python", "plan", "benchmark", "policy", "rename_map", "exact"]
    assert identity_hash(known) == "a016c1dbeac9342c"
