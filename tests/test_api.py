from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

import robotrials
from robotrials.errors import ConfigError, ContractError, IdentityError
from robotrials.policies.base import Policy
from robotrials.stats.intervals import suite_rate
from tests.engine.toy_runs import digest
from tests.toy import Seer, Toy, WantsSonar

QUICK = {"task": "a,b", "n_episodes": 3, "batch_size": 2, "record": "none"}


@pytest.fixture(scope="module")
def by_name(tmp_path_factory: pytest.TempPathFactory) -> robotrials.Evaluation:
    path = tmp_path_factory.mktemp("named") / "run"
    return robotrials.evaluate("tests.toy:Seer", "tests.toy:Toy", output_dir=path, **QUICK)  # type: ignore[arg-type]


def test_what_comes_back_has_rates_tasks_frame_and_directory(by_name: robotrials.Evaluation) -> None:
    assert by_name.complete
    assert (by_name.directory / "eval_info.json").exists()
    assert sorted(by_name.tasks) == ["toys/a", "toys/b"]
    counts = [(task.n_success, task.n_finished) for task in by_name.tasks.values()]
    assert (by_name.rate, *by_name.interval) == suite_rate(counts)  # type: ignore[misc]
    rows = by_name.frame("records")
    assert [(row["task"], row["seed"]) for row in rows] == [(t, 1000 + i) for t in "ab" for i in range(3)]
    assert str(by_name).startswith(f"success {100 * by_name.rate:.1f} % [")  # type: ignore[operator]
    assert by_name.errors == ()


def test_classes_and_objects_come_to_the_same_outcomes(by_name: robotrials.Evaluation, tmp_path: Path) -> None:
    class Local(Seer):
        """No other process can import it."""

    for name, policy in {"class": Seer, "object": Seer(), "local": Local}.items():
        result = robotrials.evaluate(policy, Toy, output_dir=tmp_path / name, **QUICK)  # type: ignore[arg-type]
        assert result.complete
        assert digest(result.directory) == digest(by_name.directory)


def test_an_object_acts_in_this_process_and_leaves_nothing_behind(tmp_path: Path) -> None:
    class Watched(Seer):
        def act(self, sessions, observations):  # type: ignore[no-untyped-def]
            pids.add(os.getpid())
            return super().act(sessions, observations)

    pids: set[int] = set()
    policy = Watched()
    robotrials.evaluate(policy, Toy, output_dir=tmp_path / "run", **QUICK)  # type: ignore[arg-type]
    assert pids == {os.getpid()}
    assert len(policy.seen) > 0
    assert all(thread.name != "robotrials-policy" for thread in threading.enumerate())
    config = json.loads((tmp_path / "run/run.json").read_text())["config"]
    assert not Path(config["policy"]["options"]["url"].removeprefix("unix://")).exists()


def test_options_reach_the_policy_the_benchmark_and_the_run(tmp_path: Path) -> None:
    result = robotrials.evaluate(
        Seer,
        "tests.toy:Toy",
        n_episodes=2,
        seed=7,
        output_dir=tmp_path / "run",
        policy_options={"n": 2},
        env_options={"task": "z"},
        interval="exact",
        batch_size=1,
        record="none",
    )
    described = json.loads((tmp_path / "run/run.json").read_text())
    assert described["policy"]["n_action_steps"] == 2
    assert [row["seed"] for row in result.frame("records")] == [7, 8]
    assert result.summary.method == "exact"


def test_a_rule_stops_it_as_on_the_command_line(tmp_path: Path) -> None:
    more = {"n_episodes": 40, "batch_size": 1, "record": "none", "until": "width<=0.5"}
    result = robotrials.evaluate(Seer, "tests.toy:Toy", output_dir=tmp_path / "run", **more)  # type: ignore[arg-type]
    stopping = json.loads((result.directory / "run.json").read_text())["stopping"]
    assert stopping["rule"] == "width<=0.5"
    assert 0 < stopping["counted"] == result.summary.overall.n_finished < 40
    assert result.complete


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"n_episode": 3}, r"evaluate: n_episode"),
        ({"interval": "wald"}, "must be one of wilson, exact, jeffreys"),
        ({"policy_options": {"n": 2}}, "this one is an object already"),
        ({"policy_options": [1]}, r"evaluate: policy_options must be a map such as {a: b}, got \[1\]"),
        ({"env_options": "task"}, "evaluate: env_options must be a map such as"),
        ({"rename_map": 3}, "evaluate: rename_map must be a map such as {a: b}, got 3"),
        ({"seed": "a"}, "evaluate: seed must be a whole number, got 'a'"),
        ({"seed": 1.5}, "evaluate: seed must be a whole number, got 1.5"),
        ({"until": "width<=2"}, "a width is a fraction between 0 and 1"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(more: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        robotrials.evaluate(Seer(), Toy, output_dir=tmp_path / "run", **more)
    assert not (tmp_path / "run").exists()


def test_what_is_no_policy_or_benchmark_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"policy is a type, a path, a Policy class or a Policy object; got None"):
        robotrials.evaluate(None, Toy)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"env is a benchmark's type, import path or class; got None"):
        robotrials.evaluate("expert", None)  # type: ignore[arg-type]


def test_a_benchmark_that_only_this_process_has_is_refused() -> None:
    class Here(Toy):
        pass

    with pytest.raises(ConfigError, match="put the class at the top level of a file"):
        robotrials.evaluate("expert", Here)


def test_a_policy_that_looks_into_the_simulator_cannot_act_here() -> None:
    from robotrials.policies.expert import ExpertPolicy

    with pytest.raises(ConfigError, match="looks into the simulator"):
        robotrials.evaluate(ExpertPolicy(), Toy)


def test_a_misfit_and_a_broken_object_are_told(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"reads observation\.sonar"):
        robotrials.evaluate(WantsSonar(), Toy, output_dir=tmp_path / "a", **QUICK)  # type: ignore[arg-type]

    class Raises(Seer):
        def act(self, sessions, observations):  # type: ignore[no-untyped-def]
            raise ValueError("no such layer")

    result = robotrials.evaluate(Raises(), Toy, output_dir=tmp_path / "b", max_attempts=1, **QUICK)  # type: ignore[arg-type]
    assert not result.complete
    assert "the policy raised ValueError: no such layer" in result.errors[0]
    assert str(result).startswith("no episode has finished")


def test_weights_that_change_between_calls_are_never_taken_for_the_same(tmp_path: Path) -> None:
    policy: Policy = Seer()
    robotrials.evaluate(policy, Toy, output_dir=tmp_path / "run", **QUICK)  # type: ignore[arg-type]
    with pytest.raises(IdentityError, match=r"policy\.revision"):
        robotrials.evaluate(policy, Toy, output_dir=tmp_path / "run", **QUICK)  # type: ignore[arg-type]
