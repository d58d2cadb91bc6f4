from __future__ import annotations

import dataclasses

import pytest

from robotrials.benchmarks.registry import make_benchmark
from robotrials.benchmarks.scoring import Scoring, identity_options, scoring_of, split_success
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import EnvChoice

NAME = "tests.benchmarks.test_scoring"


class Unreachable(Exception):  # noqa: N818  as a simulator calls it
    pass


class NoPath(Unreachable):
    pass


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("", "once")),
        ("end", ("", "end")),
        ("once", ("", "once")),
        ("info:won", ("info:won", "once")),
        ("info:won, end", ("info:won", "end")),
        ("reward>=0.5,once", ("reward>=0.5", "once")),
    ],
)
def test_where_success_is_and_when_it_counts(text: str, parts: tuple[str, str]) -> None:
    assert split_success(text) == parts


def options(**given: str) -> dict[str, object]:
    benchmark = make_benchmark(EnvChoice("tests.toy:Toy", given))
    return identity_options(benchmark, dataclasses.asdict(benchmark.config))


def test_only_what_can_change_an_outcome_is_in_the_identity() -> None:
    assert options() == options(success="once") == options(failure_exceptions="")
    assert options(success="end") == {**options(), "success": "end"}
    both = options(failure_exceptions="b.B,a.A")
    assert both == options(failure_exceptions="a.A,b.B") == {**options(), "failure_exceptions": ["a.A", "b.B"]}


def test_an_exception_is_known_by_its_name_that_of_a_base_class_and_one_it_is_imported_by() -> None:
    assert Scoring(failures=(f"{NAME}.NoPath",)).is_failure(NoPath())
    assert Scoring(failures=(f"{NAME}.Unreachable",)).is_failure(NoPath())
    assert not Scoring(failures=(f"{NAME}.NoPath",)).is_failure(Unreachable())
    assert Scoring(failures=("robotics.errors.X", "robotrials.benchmarks.base.ConfigError")).is_failure(ConfigError())
    assert not Scoring(failures=("not.imported.NoPath",)).is_failure(NoPath())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"success": "info:won"}, "--env.success=info:won: toy takes once or end"),
        ({"success": "last"}, "--env.success=last: toy takes once or end"),
        ({"failure_exceptions": "NoPath"}, "--env.failure_exceptions=NoPath: write module.Class"),
        ({"failure_exceptions": "a.B,c d"}, "--env.failure_exceptions=c d: write module.Class"),
        ({"failure_exceptions": "builtins.Exception"}, "too wide, crashes would be counted as failures"),
        ({"failure_exceptions": "robotrials.errors.ContractError"}, "too wide"),
    ],
)
def test_what_is_invalid_is_refused_with_the_options(given: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_benchmark(EnvChoice("tests.toy:Toy", given))


def test_options_of_a_benchmark_become_its_scoring() -> None:
    benchmark = make_benchmark(EnvChoice("tests.toy:Toy", {"success": "end", "failure_exceptions": f"{NAME}.NoPath"}))
    assert scoring_of(benchmark) == Scoring(True, (f"{NAME}.NoPath",))
    assert not scoring_of(benchmark).is_failure(ContractError())
