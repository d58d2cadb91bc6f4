"""What is drawn from the global generators of Python, NumPy and torch is an episode's own, in every layout."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from robotrials.plan.config import EnvChoice
from tests import dice, toy
from tests.engine.toy_runs import digest, run, toy_config

LAYOUTS: dict[str, dict[str, int]] = {
    "three workers": {"batch_size": 3},
    "one server": {"batch_size": 3, "policy_servers": 1},
    "two servers": {"batch_size": 3, "policy_servers": 2},
}
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def outcomes(directory: Path, policy: str, env: str = "Toy", **more: Any) -> str:
    config = toy_config(directory, f"{dice.__file__}:{policy}", **more)
    result = run(replace(config, env=EnvChoice(f"{toy.__file__}:{env}", config.env.options)))
    assert result.complete, result.failures
    return digest(directory)


@pytest.mark.parametrize(
    ("generator", "env"),
    [("python", "Toy"), ("numpy", "Toy"), ("numpy", "Dice"), pytest.param("torch", "Dice", marks=needs_torch)],
)
def test_policy_that_draws_globally_gives_the_same_in_every_layout(tmp_path: Path, generator: str, env: str) -> None:
    options = {"policy_options": {"generator": generator}}
    alone = outcomes(tmp_path / "alone", "Gambler", env, batch_size=1, **options)
    for name, layout in LAYOUTS.items():
        assert outcomes(tmp_path / name, "Gambler", env, **layout, **options) == alone, name
    assert outcomes(tmp_path / "other", "Gambler", env, policy_options={"generator": "numpy", "quiet": "1"}) != alone


@pytest.mark.parametrize("layout", LAYOUTS)
def test_policy_that_draws_late_and_remembers_gives_the_same_in_every_layout(tmp_path: Path, layout: str) -> None:
    options = {"policy_options": {"quiet": "3"}}
    alone = outcomes(tmp_path / "alone", "Rememberer", "Dice", batch_size=1, **options)
    assert outcomes(tmp_path / "other", "Rememberer", "Dice", **LAYOUTS[layout], **options) == alone


def test_policy_that_draws_where_an_episode_begins_gives_the_same_in_every_layout(tmp_path: Path) -> None:
    alone = outcomes(tmp_path / "alone", "Rememberer", "Dice", batch_size=1)
    for name, layout in LAYOUTS.items():
        assert outcomes(tmp_path / name, "Rememberer", "Dice", **layout) == alone, name


def test_class_that_says_it_is_served_gets_a_server(tmp_path: Path) -> None:
    assert outcomes(tmp_path / "served", "GamblerServed") == outcomes(tmp_path / "beside", "Gambler")
    assert (tmp_path / "served" / "logs" / "s0.log").exists()
    assert not (tmp_path / "beside" / "logs" / "s0.log").exists()
