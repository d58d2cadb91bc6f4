"""The whole engine, with processes that die, hang and err: every episode once, with the right outcome."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from robotrials.engine.queue import FAIL_FAST_AFTER
from robotrials.errors import ConfigError, ContractError, IdentityError, RunLockedError
from robotrials.results.ledger import Ledger
from robotrials.results.record import EndReason, EpisodeRecord
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare, prepare_resume
from tests import toy
from tests.engine.toy_runs import Listener, digest, run, toy_config, worker_processes


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The outcomes of one worker, in plan order."""
    directory = tmp_path_factory.mktemp("reference") / "run"
    result = run(toy_config(directory, batch_size=1))
    assert result.complete
    return digest(directory)


def accepted(directory: Path) -> list[EpisodeRecord]:
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        return list(ledger.accepted())


def worker_pids() -> list[int]:
    return [process.pid for process in worker_processes()]


def test_no_worker_outlives_a_run(tmp_path: Path) -> None:
    run(toy_config(tmp_path / "run"))
    assert worker_pids() == []


@pytest.mark.parametrize(
    "changes",
    [{"batch_size": 2}, {"batch_size": 3}, {"order": "shuffled"}, {"record": "all"}, {"record": "failures"}],
    ids=str,
)
def test_outcomes_do_not_depend_on_layout_order_or_recording(tmp_path: Path, undisturbed: str, changes: dict) -> None:
    assert run(toy_config(tmp_path / "run", **changes)).complete
    assert digest(tmp_path / "run") == undisturbed


def test_error_in_an_episode_is_retried_and_leaves_the_outcome_unchanged(tmp_path: Path, undisturbed: str) -> None:
    listener = Listener()
    result = run(toy_config(tmp_path / "run", trouble="once@a/1+once@b/4"), listener)
    assert result.complete
    assert digest(tmp_path / "run") == undisturbed
    assert sum("attempt 1 erred, trying again: RuntimeError: a hiccup" in m for m in listener.messages) == 2


def test_worker_that_kills_itself_once_costs_one_attempt(tmp_path: Path, undisturbed: str) -> None:
    assert run(toy_config(tmp_path / "run", trouble="die_once@a/2")).complete
    assert digest(tmp_path / "run") == undisturbed
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        lost, kept = ledger.attempts_of(2)
    assert (lost.attempt, kept.attempt) == (1, 2)
    assert "killed by SIGKILL" in (lost.error or "")
    assert "logs/w" in (lost.error or "")


def test_step_that_hangs_is_cut_off_and_the_episode_tried_again(tmp_path: Path, undisturbed: str) -> None:
    assert run(toy_config(tmp_path / "run", trouble="hang_once@b/0", step_timeout=2.0)).complete
    assert digest(tmp_path / "run") == undisturbed
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        hung = ledger.attempts_of(6)[0]
    assert "hung: no progress" in (hung.error or "")
    assert "--eval.step_timeout=2" in (hung.error or "")


def test_random_kills_of_workers_change_nothing(tmp_path: Path, undisturbed: str) -> None:
    rng, stop = random.Random(7), threading.Event()
    killed = []

    def kill_now_and_then() -> None:
        wait_for_records(tmp_path / "run", 1)
        while not stop.wait(rng.uniform(0.3, 0.8)):
            pids = worker_pids()
            if pids and len(killed) < 6:
                os.kill(rng.choice(pids), signal.SIGKILL)
                killed.append(time.monotonic())

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        result = run(toy_config(tmp_path / "run", step_s=0.01, max_attempts=10))
    finally:
        stop.set()
        killer.join()
    assert killed
    assert result.complete
    assert digest(tmp_path / "run") == undisturbed


def test_error_on_every_attempt_is_recorded_as_error_and_counted_apart(tmp_path: Path) -> None:
    result = run(toy_config(tmp_path / "run", trouble="raise@a/1+die@b/2"))
    assert not result.complete
    assert not result.interrupted
    overall = result.summary.overall
    assert (overall.n_planned, overall.n_finished, overall.n_errors) == (12, 10, 2)
    assert any("the physics exploded" in text for text in result.failures)
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        assert len(ledger.attempts_of(1)) == 3
        records = {record.episode: record for record in ledger.accepted()}
    assert records[1].end is EndReason.ERROR
    assert records[1].success is None
    assert "Traceback" in (records[1].error or "")


def test_task_whose_every_episode_errs_fails_fast_and_the_others_go_on(tmp_path: Path) -> None:
    listener = Listener()
    result = run(toy_config(tmp_path / "run", n_episodes=20, max_attempts=2, trouble="raise@a/*"), listener)
    overall = result.summary.overall
    assert (overall.n_planned, overall.n_finished, overall.n_errors) == (40, 20, 20)
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        tried = [episode for episode in range(20) if ledger.attempts_of(episode)[0].attempt > 0]
    # Given up, and what two workers may hold at that moment: one episode in play and one ahead each.
    assert len(tried) <= FAIL_FAST_AFTER + 3
    assert any("its other" in text and "are not run" in text for text in listener.messages)


def test_simulator_that_cannot_be_built_errs_with_its_own_message(tmp_path: Path) -> None:
    result = run(toy_config(tmp_path / "run", trouble="build@b"))
    assert result.summary.overall.n_finished == 6
    assert any("the scene file is missing" in text for text in result.failures)


def test_resume_tries_errors_again_and_keeps_what_finished(tmp_path: Path, undisturbed: str) -> None:
    directory = tmp_path / "run"
    config = toy_config(directory, trouble="once@a/1", max_attempts=1)
    first = run(config)
    assert first.summary.overall.n_errors == 1
    resumed = execute(prepare_resume(directory), Listener())
    assert resumed.complete
    assert digest(directory) == undisturbed
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        assert [len(ledger.attempts_of(episode)) for episode in range(12)] == [1, 2] + [1] * 10


def test_finished_run_is_a_noop(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run")
    run(config)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").glob("logs/*")}
    described = (tmp_path / "run/run.json").read_text()
    prepared = prepare(config)
    assert prepared.is_finished
    result = execute(prepared, Listener())
    assert result.complete
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "run").glob("logs/*")} == before
    assert (tmp_path / "run/run.json").read_text() == described


def test_other_configuration_in_the_same_directory_is_refused_with_what_differs(tmp_path: Path) -> None:
    run(toy_config(tmp_path / "run"))
    with pytest.raises(IdentityError, match=r"policy\.options\.n.*3"):
        prepare(toy_config(tmp_path / "run", policy_options={"n": "3"}))
    with pytest.raises(IdentityError, match=r"--eval\.n_episodes: 6 -> 7\nthese are other episodes"):
        prepare(toy_config(tmp_path / "run", n_episodes=7))


def test_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/thesis.tex").touch()
    with pytest.raises(ConfigError, match="exists and holds no run"):
        prepare(toy_config(tmp_path / "run"))


def test_second_coordinator_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    config = toy_config(tmp_path / "run", step_s=0.02)
    prepared = prepare(config)
    first = threading.Thread(target=execute, args=(prepared, Listener()))
    first.start()
    try:
        while not (tmp_path / "run/ledger.sqlite").exists():
            time.sleep(0.01)
        with pytest.raises(RunLockedError):
            execute(prepared, Listener())
    finally:
        first.join()


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("tests.toy:WantsSonar", r"reads observation\.sonar, which a does not have"),
        ("tests.toy:WrongShape", r"returned actions of shape \(1, 1, 7\)"),
    ],
)
def test_policy_that_does_not_fit_is_refused_with_both_sides(tmp_path: Path, policy: str, words: str) -> None:
    with pytest.raises(ContractError, match=words):
        run(toy_config(tmp_path / "run", policy))


def test_missing_success_signal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="no success signal at step 1"):
        run(toy_config(tmp_path / "run", tasks="a", trouble="no_success@a/*"))


def test_nan_in_some_episodes_is_an_error_of_those_and_is_not_retried(tmp_path: Path) -> None:
    result = run(toy_config(tmp_path / "run", "tests.toy:NotANumber", tasks="a"))
    assert (result.summary.overall.n_finished, result.summary.overall.n_errors) == (3, 3)
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        assert len(ledger.attempts_of(1)) == 1


OFTEN = {"policy_options": {"n": 2}}
"""Looks at every other step, so that what is wrong at the second is seen."""


def test_nan_that_is_observed_is_said_and_counted_for_its_episode(tmp_path: Path) -> None:
    listener = Listener()
    result = run(
        toy_config(tmp_path / "run", "tests.toy:Steady", tasks="a", trouble="nan@a/1+nan@a/4", **OFTEN), listener
    )
    assert result.complete
    assert result.summary.overall.n_nonfinite == 2
    said = [text for text in listener.messages if "held NaN or infinity in" in text]
    assert sorted(text.split(":")[0] for text in said) == ["toys/a/1", "toys/a/4"]
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        counts = [record.nonfinite for record in ledger.accepted()]
    assert [n > 0 for n in counts] == [False, True, False, False, True, False]
    metrics = json.loads((tmp_path / "run/eval_info.json").read_text())["per_task"][0]["metrics"]
    assert metrics["nonfinite_observations"] == counts


def test_where_nan_is_refused_only_its_episodes_err_and_once_each(tmp_path: Path) -> None:
    config = toy_config(
        tmp_path / "run", "tests.toy:Steady", tasks="a", trouble="nan@a/0+nan@a/4", nonfinite="error", **OFTEN
    )
    result = run(config)
    assert (result.summary.overall.n_finished, result.summary.overall.n_errors) == (4, 2)
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        assert [len(ledger.attempts_of(number)) for number in range(6)] == [1] * 6
    with pytest.raises(IdentityError, match="nonfinite"):
        prepare(replace(config, eval=replace(config.eval, nonfinite="warn")))


def test_policy_that_cannot_be_made_ends_the_run_with_its_message(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="could not make the policy: ValueError: weights are corrupt"):
        run(toy_config(tmp_path / "run", "tests.toy:Unbuildable"))


def coordinator_process(config_dir: Path, **more: object) -> subprocess.Popen[bytes]:
    code = (
        "import sys; from pathlib import Path; from tests.engine.toy_runs import *\n"
        f"r = run(toy_config(Path({str(config_dir)!r}), **{more!r})); sys.exit(0 if r.complete else 2)"
    )
    return subprocess.Popen([sys.executable, "-c", code])


def children_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def wait_for_records(directory: Path, n: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (directory / "ledger.sqlite").exists():
            with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
                if len(ledger.accepted_ids()) >= n:
                    return
        time.sleep(0.02)
    raise AssertionError(f"{directory} has not reached {n} records")


def test_killed_coordinator_leaves_no_worker_and_the_run_is_resumed_exactly(tmp_path: Path, undisturbed: str) -> None:
    directory = tmp_path / "run"
    process = coordinator_process(directory, step_s=0.02)
    wait_for_records(directory, 3)
    workers = children_of(process)
    process.kill()
    process.wait()
    assert workers
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert alive == []
    prepared = prepare(toy_config(directory, step_s=0.02))
    assert 3 <= prepared.done < 12
    assert execute(prepared, Listener()).complete
    assert digest(directory) == undisturbed
    assert len(json.loads((directory / "run.json").read_text())["sessions"]) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_cleanly_as_partial(tmp_path: Path, number: signal.Signals) -> None:
    directory = tmp_path / "run"
    process = coordinator_process(directory, step_s=0.02)
    wait_for_records(directory, 2)
    workers = children_of(process)
    process.send_signal(number)
    assert process.wait(timeout=20) == 2
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert alive == []
    assert json.loads((directory / "eval_info.json").read_text())
    assert 2 <= prepare(toy_config(directory, step_s=0.02)).done < 12


def test_coordinator_that_was_stopped_for_a_while_blames_no_worker(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    process = coordinator_process(directory, step_s=0.02, step_timeout=2.0)
    wait_for_records(directory, 2)
    process.send_signal(signal.SIGSTOP)
    time.sleep(6.0)
    process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=60) == 0
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        assert set(ledger.attempt_counts().values()) == {1}


def test_stopped_worker_is_found_and_replaced(tmp_path: Path, undisturbed: str) -> None:
    directory = tmp_path / "run"
    process = coordinator_process(directory, step_s=0.02, step_timeout=2.0)
    wait_for_records(directory, 1)
    os.kill(children_of(process)[0].pid, signal.SIGSTOP)
    assert process.wait(timeout=60) == 0
    assert digest(directory) == undisturbed


def test_policy_server_that_dies_is_replaced_and_its_episodes_are_tried_again(tmp_path: Path, undisturbed: str) -> None:
    options = {"mark": str(tmp_path / "mark")}
    config = toy_config(tmp_path / "run", "tests.toy:DiesOnce", policy_servers=1, policy_options=options)
    listener = Listener()
    assert run(config, listener).complete
    assert digest(tmp_path / "run") == undisturbed
    assert any("policy server s0 was lost (exit status 7); starting another" in m for m in listener.messages)


def test_episode_that_ends_its_policy_server_is_given_up_and_no_other_with_it(tmp_path: Path, undisturbed: str) -> None:
    more = {"policy_servers": 1, "batch_size": 4, "max_attempts": 2, "step_s": 0.01}
    result = run(toy_config(tmp_path / "run", "tests.toy:DiesInOne", **more))
    records = {record.episode: record for record in accepted(tmp_path / "run")}
    erred = [number for number, record in records.items() if record.is_error]
    assert [number % 6 for number in erred] == [3, 3], "the two with seed 1003, of either task"
    assert result.summary.overall.n_errors == 2


def test_process_that_is_worn_out_is_replaced_and_no_episode_is_lost(tmp_path: Path, undisturbed: str) -> None:
    listener = Listener()
    assert run(toy_config(tmp_path / "run", trouble="wear@a/*+wear@b/*", batch_size=1), listener).complete
    assert digest(tmp_path / "run") == undisturbed
    workers = {record.worker for record in accepted(tmp_path / "run")}
    assert len(workers) == 4, "three episodes each"
    assert sum("erred" in words for words in listener.messages) >= 6, (
        "two attempts of the first one too many, each time"
    )


def test_policy_server_that_comes_back_with_other_weights_ends_the_run(tmp_path: Path) -> None:
    options = {"mark": str(tmp_path / "mark")}
    config = toy_config(tmp_path / "run", "tests.toy:OtherWeights", policy_servers=1, policy_options=options)
    with pytest.raises(IdentityError, match=r"revision: first -> second"):
        run(config)


@pytest.mark.parametrize("servers", [1, 2])
def test_outcomes_do_not_depend_on_policy_servers(tmp_path: Path, undisturbed: str, servers: int) -> None:
    assert run(toy_config(tmp_path / "run", policy_servers=servers, batch_size=3)).complete
    assert digest(tmp_path / "run") == undisturbed


def test_a_child_that_an_environment_forks_and_that_exits_is_no_second_worker(tmp_path: Path) -> None:
    result = run(toy_config(tmp_path / "run", tasks="a", trouble="fork@a/*", step_timeout=20.0))
    assert (result.summary.overall.n_finished, result.summary.overall.n_errors) == (6, 0)


@pytest.mark.parametrize("policy", ["WrongOnce", "WrongFirst"])
def test_one_episode_that_does_not_fit_costs_no_other(tmp_path: Path, policy: str) -> None:
    result = run(toy_config(tmp_path / "run", f"tests.toy:{policy}", tasks="a", batch_size=1))
    assert (result.summary.overall.n_finished, result.summary.overall.n_errors) == (5, 1)


def test_directory_of_a_run_that_never_had_an_outcome_can_be_used_again(tmp_path: Path) -> None:
    with pytest.raises(ContractError):
        run(toy_config(tmp_path / "run", "tests.toy:WrongShape"))
    assert run(toy_config(tmp_path / "run")).complete


def test_benchmark_whose_source_changed_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "own_bench.py"
    source.write_text(Path(toy.__file__).read_text())
    config = toy_config(tmp_path / "run", n_episodes=1)
    config = replace(config, env=replace(config.env, type=f"{source}:Toy"))
    assert run(config).complete
    source.write_text(source.read_text() + "# another rule\n")
    with pytest.raises(IdentityError, match=r"benchmark\.source"):
        prepare(config)


def test_script_in_the_current_folder_does_not_stand_in_for_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise ImportError('the wrong random')")
    monkeypatch.setenv("PYTHONPATH", str(Path(toy.__file__).parent.parent))
    monkeypatch.chdir(tmp_path)
    assert run(toy_config(tmp_path / "run", n_episodes=1)).complete


@pytest.mark.parametrize(
    "settings", [{"record_fps": float("inf")}, {"step_timeout": float("nan")}, {"step_timeout": 0.0}], ids=str
)
def test_settings_that_are_no_finite_number_are_refused(tmp_path: Path, settings: dict) -> None:
    with pytest.raises(ConfigError, match="must be above 0 and finite"):
        prepare(toy_config(tmp_path / "run", **settings))


def test_episode_that_a_dead_worker_had_not_begun_costs_no_attempt(tmp_path: Path) -> None:
    """While many episodes are left a worker holds one lease ahead; only the one it was playing has erred."""
    config = toy_config(tmp_path / "run", tasks="a", n_episodes=30, batch_size=1, trouble="die_once@a/2")
    assert run(config).complete
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        assert ledger.attempt_counts() == {episode: 2 if episode == 2 else 1 for episode in range(30)}
