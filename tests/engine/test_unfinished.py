"""A run that a signal stops: its figures are of the finished beginning everywhere, and of everything once resumed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from robotrials.engine.observer import Progress
from robotrials.results.counting import what_counts
from robotrials.results.ledger import Ledger
from robotrials.results.reopened import reopen
from robotrials.results.stored import read_run, stored_plan
from robotrials.run.execute import execute
from robotrials.run.prepare import prepare, prepare_resume
from tests.engine.toy_runs import Listener, toy_config


class Interrupter(Listener):
    """Presses Ctrl-C once eight episodes have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.pressed = False

    def on_progress(self, snapshot: Progress) -> None:
        if snapshot.done >= 8 and not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_run_is_judged_by_its_finished_beginning_and_a_resumed_one_by_all(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    config = toy_config(directory, tasks="a,b,c", n_episodes=10, batch_size=2, step_s=0.01)
    result = execute(prepare(config), Interrupter())
    assert result.interrupted
    described = json.loads((directory / "run.json").read_text())
    assert described["order"] == {"tasks_at_once": 2}
    with Ledger.open(directory / "ledger.sqlite", read_only=True) as ledger:
        settled = ledger.accepted_ids()
    counting = what_counts(described, stored_plan(described, directory), settled)
    overall = result.summary.overall
    assert overall.n_finished == len(counting.counted)
    assert overall.n_out_of_order == len(counting.out_of_order) == len(settled) - overall.n_finished
    assert overall.n_missing == 30 - len(settled)
    info = json.loads((directory / "eval_info.json").read_text())
    assert sum(len(entry["metrics"]["successes"]) for entry in info["per_task"]) == overall.n_finished
    assert info["overall"].get("n_out_of_order", 0) == overall.n_out_of_order
    assert reopen(directory).summary == result.summary
    assert len(read_run(directory).episodes) == overall.n_finished

    whole = execute(prepare_resume(directory), Listener())
    assert (whole.summary.overall.n_finished, whole.summary.overall.n_out_of_order) == (30, 0)
    assert "note" not in json.loads((directory / "eval_info.json").read_text())


def test_the_order_of_a_run_stays_that_of_its_first_session(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    execute(prepare(toy_config(directory, tasks="a,b,c", n_episodes=10, batch_size=2, step_s=0.01)), Interrupter())
    execute(prepare(toy_config(directory, tasks="a,b,c", n_episodes=10, batch_size=4, step_s=0.01)), Listener())
    assert json.loads((directory / "run.json").read_text())["order"] == {"tasks_at_once": 2}


def test_a_run_in_balanced_order_is_judged_round_by_round(tmp_path: Path) -> None:
    execute(prepare(toy_config(tmp_path / "run", tasks="a,b,c", n_episodes=2, order="balanced")), Listener())
    assert json.loads((tmp_path / "run/run.json").read_text())["order"] == {"tasks_at_once": 3}
