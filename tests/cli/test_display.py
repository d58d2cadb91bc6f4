from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from robotrials.cli import draw
from robotrials.cli.display import MAX_MESSAGES, MAX_TASKS, Heading, LineDisplay, describe, open_display, pace
from robotrials.cli.display import render_panel as panel
from robotrials.engine.observer import Progress, TaskProgress, Underway
from robotrials.stats.intervals import wilson
from robotrials.stats.sequential import confidence_sequence, unfinished_sequence

HEADING = Heading("expert on metaworld")
SECONDS = {"reset": 1.0, "simulate": 6.0, "render": 2.0, "infer": 1.0, "wait": 0.0}


def progress(*tasks: TaskProgress, elapsed_s: float = 30.0, eta_s: float | None = 12.0) -> Progress:
    done = sum(task.done for task in tasks)
    successes = sum(task.successes for task in tasks)
    errors = sum(task.errors for task in tasks)
    return Progress(
        planned=sum(task.planned for task in tasks),
        done=done,
        successes=successes,
        failures=done - successes - errors,
        errors=errors,
        running=2,
        workers=3,
        elapsed_s=elapsed_s,
        eta_s=eta_s,
        seconds=SECONDS,
        per_task=tasks,
    )


REACH = TaskProgress("easy", "reach-v3", planned=50, done=40, successes=38, errors=0)
PUSH = TaskProgress("easy", "push-v3", planned=50, done=12, successes=5, errors=2)
WAITING = TaskProgress("easy", "door-v3", planned=50, done=0, successes=0, errors=0)
FINISHED = TaskProgress("easy", "drawer-v3", planned=50, done=50, successes=50, errors=0)
ALL = progress(REACH, PUSH, WAITING, FINISHED)


def drawn(snapshot: Progress, width: int = 100, height: int = 40, heading: Heading = HEADING) -> list[str]:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=width, height=height)
    with console.capture() as captured:
        console.print(panel(heading, snapshot, console))
    return captured.get().splitlines()


def test_the_panel_says_how_far_how_good_how_long_and_where_the_time_goes() -> None:
    text = "\n".join(drawn(ALL))
    low, high = unfinished_sequence(93, 100, 2)
    for words in (
        "expert on metaworld",
        "0:30, about 0:12 left",
        "102/200  51 %",
        f"success  93 succeeded, 7 failed so far, {100 * low:.1f} – {100 * high:.1f} % (anytime-valid 95 %)   2 errors",
        "now      2 running",
        "3 workers · 3.4 episodes/s",
        "simulate 60 %  render 20 %  infer 10 %  reset 10 %",
    ):
        assert words in text


def test_the_panel_lists_tasks_at_work_and_counts_the_others() -> None:
    lines = drawn(ALL)
    assert any(line.split()[:4] == ["reach-v3", "40/50", "38", "succeeded"] for line in lines)
    assert any(line.split()[:3] == ["push-v3", "12/50", "5"] and line.endswith("2 errors") for line in lines)
    assert lines[-1].strip() == "1 finished, 1 with no episode done, of 4 tasks"


def test_many_tasks_at_work_are_cut_to_a_few_and_counted() -> None:
    tasks = [TaskProgress("easy", f"task-{i}", 10, 1, 1, 0) for i in range(20)]
    lines = drawn(progress(*tasks))
    assert sum("task-" in line for line in lines) == MAX_TASKS
    assert f"{20 - MAX_TASKS} more at work, of 20 tasks" in lines[-1]


def test_episodes_of_earlier_sessions_do_not_count_as_pace() -> None:
    assert "3 episodes/min" in "\n".join(drawn(progress(REACH, elapsed_s=20.0), heading=Heading("x", done_before=39)))
    assert "episodes/" not in "\n".join(drawn(progress(REACH), heading=Heading("x", done_before=40)))


def test_before_the_first_outcome_there_is_no_rate_and_no_end_in_sight() -> None:
    text = "\n".join(drawn(progress(WAITING, eta_s=None)))
    assert "no outcome yet" in text
    assert "left" not in text
    all_erred = TaskProgress("easy", "a", 5, 2, 0, 2)
    assert "no outcome yet   2 errors" in "\n".join(drawn(progress(all_erred)))


@pytest.mark.parametrize(("width", "height"), [(40, 10), (80, 24), (120, 12), (300, 60)])
def test_the_panel_fits_the_terminal(width: int, height: int) -> None:
    lines = drawn(ALL, width, height)
    assert max(map(len, lines)) <= width
    assert len(lines) <= height


def test_one_line_says_the_same_in_a_log() -> None:
    low, high = unfinished_sequence(93, 100, 2)
    assert describe(ALL) == (
        f"102/200 episodes (51 %), 93 succeeded [{100 * low:.1f}, {100 * high:.1f}] % (anytime-valid 95 %), 2 errors, "
        "2 running, 0:30 elapsed, about 0:12 left"
    )
    assert describe(progress(WAITING, eta_s=None)) == "0/50 episodes (0 %), 2 running, 0:30 elapsed"


def test_below_twenty_episodes_no_interval_is_shown() -> None:
    few = progress(TaskProgress("easy", "reach-v3", planned=50, done=8, successes=8, errors=0))
    assert "8 succeeded, 0 failed so far" in "\n".join(drawn(few))
    assert "29" not in "\n".join(drawn(few))
    assert "8 succeeded so far, 2 running" in describe(few)


@pytest.mark.parametrize(
    ("underway", "words"),
    [
        (Underway("loading the policy", 12.3), "loading the policy (12 s)"),
        (Underway(step=120, step_limit=500), "2 episodes under way, the farthest at step 120 of 500"),
    ],
)
def test_what_is_loaded_and_how_far_episodes_are_is_said_before_any_has_ended(underway: Underway, words: str) -> None:
    waiting = replace(progress(WAITING, eta_s=None), underway=underway)
    assert f"now      {words}" in "\n".join(drawn(waiting))
    assert describe(waiting) == f"0/50 episodes (0 %), {words}, 0:30 elapsed"


def test_the_interval_shown_allows_for_looking_and_for_what_still_runs() -> None:
    shown = draw.valid_interval(ALL)
    assert shown is not None
    for narrower in (wilson(93, 100), confidence_sequence(93, 100)):
        assert shown[0] < narrower[0]
        assert shown[1] > narrower[1]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def lines_at(moments: list[tuple[float, int]], capsys: pytest.CaptureFixture[str], planned: int = 1000) -> list[str]:
    """What a log has after snapshots at (second, episodes done)."""
    clock = Clock()
    display = LineDisplay(HEADING, clock)
    for clock.now, done in moments:
        display.on_progress(progress(TaskProgress("s", "t", planned, done, done, 0)))
    return [line.split()[0] for line in capsys.readouterr().err.splitlines()]


@pytest.mark.parametrize(
    ("moments", "shown"),
    [
        ([(s, s * 100) for s in range(1, 10)], []),  # a tenth each second: not before ten seconds have gone
        ([(s, s) for s in range(1, 101)], ["60/1,000"]),  # one a second: not before a tenth is done or a minute gone
        ([(s, s * 20) for s in range(1, 31)], ["200/1,000", "400/1,000", "600/1,000"]),
        ([(s, 3) for s in range(1, 185)], ["3/1,000"] * 3),  # long without a tenth: every minute
        ([(s, 0) for s in range(1, 75)], ["0/1,000"] * 2),  # nothing has ended: after ten seconds, then every minute
        ([(60, 1000)], []),  # the end is the table's to tell
    ],
)
def test_a_log_gets_a_line_every_ten_seconds_or_ten_per_cent_whichever_is_rarer_and_one_a_minute_at_least(
    moments: list[tuple[float, int]], shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines_at(moments, capsys) == shown


def test_messages_are_shown_as_they_are_and_a_flood_is_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    display = LineDisplay(HEADING)
    for i in range(MAX_MESSAGES + 50):
        display.on_message(f"[red]{i}[/red]")
    lines = capsys.readouterr().err.splitlines()
    assert lines[:-1] == [f"[red]{i}[/red]" for i in range(MAX_MESSAGES)]
    assert "more messages are not shown" in lines[-1]


def test_without_a_terminal_the_display_is_plain_lines() -> None:
    with open_display(HEADING) as display:
        assert isinstance(display, LineDisplay)


@pytest.mark.parametrize(
    ("per_second", "words"),
    [(2.4, "2.4 episodes/s"), (0.5, "30 episodes/min"), (0.01, "36 episodes/h"), (12345.0, "1.23e+04 episodes/s")],
)
def test_pace_is_in_a_unit_that_can_be_read(per_second: float, words: str) -> None:
    assert pace(per_second) == words
