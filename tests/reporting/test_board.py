"""Who is ranked, who ties, and who is not complete."""

from __future__ import annotations

from dataclasses import replace

import pytest

from robotrials.errors import ConfigError
from robotrials.reporting.board import Board, Cell, make_board
from robotrials.reporting.sources import Counts, Source
from robotrials.stats.intervals import suite_rate


def source(model: str, env: str = "libero", label: str = "", **suites: list[tuple[int, int]]) -> Source:
    """``suites`` maps a suite to (successes, episodes) of its tasks 0, 1, ..."""
    tasks = {suite: {i: Counts(k, n) for i, (k, n) in enumerate(counts)} for suite, counts in suites.items()}
    return Source(model, env, label or model, tasks)


def cells(board: Board, column: str) -> dict[str, Cell]:
    (position,) = [i for i, c in enumerate(board.columns) if c.name == column]
    return {model.name: model.cells[position] for model in board.models}


def test_overall_weighs_every_task_the_same_and_has_the_suites_interval() -> None:
    board = make_board([source("a", goal=[(9, 10), (1, 10)], long=[(5, 20)])])
    assert [column.name for column in board.columns] == ["Overall", "goal", "long"]
    overall = cells(board, "Overall")["a"]
    rate, low, high = suite_rate([(9, 10), (1, 10), (5, 20)])
    assert (overall.rate, overall.interval) == (rate, (low, high))
    assert (overall.successes, overall.finished, overall.rank, overall.best) == (15, 40, 1, True)


def test_overlapping_intervals_are_ties_and_clearly_worse_models_come_after_all_that_are_better() -> None:
    board = make_board(
        [
            source("low", goal=[(10, 100)]),
            source("b", goal=[(88, 100)]),
            source("a", goal=[(90, 100)]),
            source("c", goal=[(86, 100)]),
        ]
    )
    ranks = {name: cell.rank for name, cell in cells(board, "goal").items()}
    assert ranks == {"a": 1, "b": 1, "c": 1, "low": 4}
    assert [model.name for model in board.models] == ["a", "b", "c", "low"]
    assert [cell.best for cell in cells(board, "goal").values()] == [True, False, False, False]


def test_a_model_without_a_suite_has_no_mean_and_stands_apart() -> None:
    whole = source("whole", goal=[(1, 10)], long=[(1, 10)])
    board = make_board([source("half", goal=[(10, 10)]), whole])
    assert [model.name for model in board.models] == ["whole", "half"]
    half = cells(board, "Overall")["half"]
    assert (half.rate, half.rank, half.missing) == (None, None, "1 of 2 suites")
    assert cells(board, "goal")["half"].rank == 1
    assert cells(board, "long")["half"].missing == "no results"


def test_tasks_and_episodes_that_are_missing_take_the_rank_and_are_named() -> None:
    fewer = source("fewer", goal=[(10, 10)])
    erred = Source("erred", "libero", "", {"goal": {0: Counts(9, 9, errors=1), 1: Counts(10, 10)}})
    stopped = Source("stopped", "libero", "", {"goal": {0: Counts(10, 10), 1: Counts(4, 4, missing=6)}})
    board = make_board([fewer, erred, stopped, source("whole", goal=[(1, 10), (2, 10)])])
    found = cells(board, "goal")
    assert {name: cell.missing for name, cell in found.items()} == {
        "whole": "",
        "erred": "",
        "fewer": "1 of 2 tasks",
        "stopped": "6 episodes not run",
    }
    assert found["fewer"].rate == 1.0
    assert [name for name, cell in found.items() if cell.rank] == ["erred", "whole"]


def test_a_model_with_errors_is_ranked_by_the_worst_case() -> None:
    erred = Source("erred", "libero", "", {"goal": {0: Counts(45, 45, errors=5), 1: Counts(40, 50)}})
    found = cells(make_board([erred, source("whole", goal=[(44, 50), (40, 50)])]), "goal")
    cell = found["erred"]
    assert cell.rate == pytest.approx((1.0 + 0.8) / 2)
    assert cell.floor == pytest.approx((0.9 + 0.8) / 2)
    assert cell.interval == (suite_rate([(45, 50), (40, 50)])[1], suite_rate([(50, 50), (40, 50)])[2])
    assert (cell.rank, cell.is_worst_case, found["whole"].is_worst_case) == (1, True, False)
    assert (cell.best, found["whole"].best) == (True, False)  # 85 % at worst, against 84 %


def test_a_model_gains_nothing_by_erring() -> None:
    dodger = Source("dodger", "libero", "", {"goal": {0: Counts(10, 10, errors=90)}})
    board = make_board([dodger, source("honest", goal=[(60, 100)])])
    assert [model.name for model in board.models] == ["honest", "dodger"]
    assert cells(board, "goal")["dodger"].interval[0] < 0.1  # type: ignore[index]
    nothing = Source("nothing", "libero", "", {"goal": {0: Counts(errors=10)}})
    assert cells(make_board([nothing]), "goal")["nothing"].missing == "10 errors"


def test_a_task_counts_in_every_suite_that_holds_it_and_once_in_a_mean() -> None:
    names = {("easy", 0): "push", ("easy", 1): "reach", ("reach", 0): "reach"}
    whole = replace(source("whole", env="metaworld", easy=[(9, 10), (5, 10)]), names=names)
    single = replace(source("single", env="metaworld", reach=[(8, 10)]), names=names)
    board = make_board([whole, single])
    assert (cells(board, "reach")["whole"].successes, cells(board, "reach")["whole"].rank) == (5, 1)
    assert cells(board, "easy")["single"].missing == "1 of 2 tasks"
    overall = cells(board, "Overall")["whole"]
    assert (overall.finished, overall.rate) == (20, pytest.approx(0.7))
    assert overall.is_complete


def test_files_of_one_model_are_one_row_and_a_second_result_of_a_suite_is_another() -> None:
    board = make_board(
        [
            source("a", label="one", goal=[(1, 2)]),
            source("a", label="two", long=[(2, 2)]),
            source("a", label="three", goal=[(0, 2)]),
        ]
    )
    rows = {model.name: model.labels for model in board.models}
    assert rows == {"a (one and 1 more)": ["one", "two"], "a (three)": ["three"]}


def test_two_results_of_one_model_are_both_called_after_their_files() -> None:
    board = make_board([source("a", label="one", goal=[(1, 2)]), source("a", label="two", goal=[(2, 2)])])
    assert [model.name for model in board.models] == ["a (two)", "a (one)"]


def test_a_file_that_does_not_say_its_benchmark_joins_the_only_one_with_that_suite() -> None:
    board = make_board([source("a", goal=[(1, 2)]), source("b", env="", goal=[(1, 2)])])
    assert [column.name for column in board.columns] == ["goal"]
    two = make_board(
        [source("a", goal=[(1, 2)]), source("c", env="other", goal=[(1, 2)]), source("b", env="", goal=[(1, 2)])]
    )
    assert {model.name: model.cells[0].missing for model in two.models}["b"] == "1 of 3 suites"


def test_several_benchmarks_have_a_mean_each_and_suites_of_one_name_are_told_apart() -> None:
    board = make_board(
        [source("a", goal=[(1, 2)], easy=[(1, 2)]), source("a", env="meta", easy=[(1, 2)], hard=[(1, 2)])]
    )
    assert [column.name for column in board.columns] == [
        "Overall", "libero", "meta", "goal", "libero/easy", "meta/easy", "hard",
    ]  # fmt: skip


def test_only_suites_that_are_asked_for_count() -> None:
    sources = [source("half", goal=[(10, 10)]), source("whole", goal=[(1, 10)], long=[(1, 10)])]
    board = make_board(sources, ["goal"])
    assert [(model.name, model.cells[0].rank) for model in board.models] == [("half", 1), ("whole", 2)]
    with pytest.raises(ConfigError, match="no results have a suite 'gaol'; there are goal, libero, long"):
        make_board(sources, ["gaol"])


def test_sums_without_tasks_are_ranked_too() -> None:
    sums = Source("sums", "libero", "", {"goal": {None: Counts(9, 10)}})
    board = make_board([sums, source("a", goal=[(5, 5), (5, 5)])])
    assert {name: (cell.missing, cell.rank) for name, cell in cells(board, "goal").items()} == {
        "a": ("", 1),
        "sums": ("", 1),
    }


def test_nothing_to_rank_is_refused_with_the_reasons() -> None:
    with pytest.raises(ConfigError, match="no results to make a leaderboard of\n  lab/a: gone"):
        make_board([], not_read=["lab/a: gone"])


def test_conditions_that_differ_within_a_benchmark_are_named_with_who_had_which() -> None:
    def under(model: str, steps: str, env: str = "libero") -> Source:
        conditions = {"--env.episode_length": steps, "version of mujoco": "3.3.0"}
        return replace(source(model, env, goal=[(1, 10)]), conditions=conditions)

    unknown = source("from-the-hub", goal=[(1, 10)])
    board = make_board([under("a", "280"), under("b", "520"), under("c", "520"), under("d", "1", "aloha"), unknown])
    assert board.not_alike == ("libero, --env.episode_length: 520 (b, c); 280 (a)",)
    assert make_board([under("a", "280"), under("b", "280")]).not_alike == ()
