from __future__ import annotations

from pathlib import Path

import numpy as np

from robotrials.cli.advice import checkpoint_steps
from robotrials.cli.runner import carry_out
from robotrials.plan.task import ActionSpec
from robotrials.results.ledger import Ledger
from robotrials.results.record import Signals
from robotrials.run.prepare import prepare
from robotrials.worker.signal_monitor import WATCHED_EPISODES, SignalMonitor
from tests.engine.toy_runs import run, toy_config

BLACK, GRAY = np.zeros((32, 32, 3), np.uint8), np.full((32, 32, 3), 90, np.uint8)


def test_it_sees_the_range_of_actions_and_how_many_are_at_the_bounds() -> None:
    monitor = SignalMonitor(ActionSpec(2, (-1.0, -1.0), (1.0, 1.0)))
    monitor.played(np.array([[0.5, -2.0], [0.25, 0.0]]))
    monitor.played(np.array([[1.0, 0.5]]))
    assert monitor.signals() == Signals((0.25, -2.0), (1.0, 0.5), saturated=2 / 6)


def test_it_sees_blank_images_and_what_never_changes() -> None:
    monitor = SignalMonitor(ActionSpec(1, (-1.0,), (1.0,)))
    moving = GRAY.copy()
    moving[::8] = 200
    monitor.looked({"dark": BLACK, "live": moving, "state": np.zeros(2), "task": "go"})
    monitor.looked({"dark": BLACK, "live": GRAY, "state": np.ones(2), "task": "go"})
    signals = monitor.signals()
    assert (signals.blank, signals.still, signals.action_low) == (("dark",), ("dark",), ())


def test_the_first_episodes_of_each_task_are_watched_and_kept_in_the_ledger(tmp_path: Path) -> None:
    run(toy_config(tmp_path / "run", n_episodes=5))
    with Ledger.open(tmp_path / "run/ledger.sqlite", read_only=True) as ledger:
        signals = ledger.signals()
    assert sorted(signals) == [task * 5 + i for task in range(2) for i in range(WATCHED_EPISODES)]
    assert signals[0].still == ()
    assert len(signals[0].action_low) == 1


def test_a_run_in_which_nothing_succeeds_says_what_to_look_at(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert carry_out(prepare(toy_config(tmp_path / "run", policy="zero", n_episodes=2)), dry_run=False) == 0
    page = capsys.readouterr().out
    assert "Failures   4 failed: 4 at the step limit" in page
    assert "Nothing succeeded and nothing erred. Look at first:" in page
    assert "Actions: between 0 and 0, allowed [-1, 1]; 0 % at or beyond the bounds: they hardly move" in page
    assert "Steps: 4 of 4 episodes ran to the step limit of 60 (3 s at 20 Hz)" in page


def test_a_checkpoints_number_of_actions_is_read_off_its_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"n_action_steps": 50}')
    assert checkpoint_steps(str(tmp_path)) == 50
    assert checkpoint_steps("lerobot/pi0") is None
    assert checkpoint_steps(None) is None
