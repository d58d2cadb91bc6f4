from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from robotrials.errors import ConfigError
from robotrials.results.compare.comparison import ComparisonReport, Options, compare_runs, short_names
from robotrials.results.compare.pairing import digest_of
from robotrials.results.compare.verdict import BETTER, NO_DIFFERENCE, TOO_FEW, WORSE
from robotrials.results.stored import read_run
from robotrials.stats.intervals import suite_rate
from robotrials.stats.paired import PairCounts, agresti_min, weighted_difference
from robotrials.stats.unpaired import barnard, newcombe
from tests.results.stored_runs import Outcome, first, write_run

ONE = ("easy/push",)


def compare(*paths: Path, **options: object) -> ComparisonReport:
    return compare_runs([read_run(path) for path in paths], Options(**options))  # type: ignore[arg-type]


def test_runs_of_the_same_seeds_are_paired(tmp_path: Path) -> None:
    # 50 pairs: the other wins 8, the baseline 2, as in the published example.
    a = write_run(tmp_path / "a", lambda s: s.index < 32, ONE, 50)
    b = write_run(tmp_path / "b", lambda s: s.index < 30 or 40 <= s.index < 48, ONE, 50)
    (result,) = compare(a, b).against_first
    assert result.pairing.paired
    assert result.pairing.why == "paired: 50 episodes of the same task and seed"
    line = result.overall
    assert (line.pairs, line.wins, line.losses) == (50, 8, 2)
    assert (line.p, line.mid_p) == (0.109375, 0.0654296875)
    assert line.difference == pytest.approx(0.12)
    assert line.interval == pytest.approx((-0.005627, 0.236396), abs=1e-6)
    assert [p.baseline.index for p in result.differing] == [30, 31, *range(40, 48)]


def test_the_difference_is_the_other_minus_the_baseline(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", first(2)), write_run(tmp_path / "b", first(9))
    (up,), (down,) = compare(a, b).against_first, compare(b, a).against_first
    assert (up.overall.difference, down.overall.difference) == pytest.approx((0.7, -0.7))
    assert (up.verdict.kind, down.verdict.kind) == (BETTER, WORSE)
    assert up.verdict.words.startswith("b is better than a: +70.0 points [")


def test_other_seeds_are_not_paired_and_it_says_why(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", first(28), ONE, 50)
    b = write_run(tmp_path / "b", first(40), ONE, 50, seed=9000)
    (result,) = compare(a, b).against_first
    assert result.pairing.why == "not paired: the seeds differ (easy/push/0 has 1000 in a, 9000 in b)"
    assert result.overall.test == "Barnard"
    assert result.overall.p == pytest.approx(0.012036, abs=1e-6)
    assert result.overall.interval == pytest.approx(newcombe((40, 50), (28, 50)))
    assert (result.overall.wins, result.differing, result.anytime_p) == (None, (), None)


def test_other_initial_states_are_not_paired(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", first(5), ONE, init_states=10)
    b = write_run(tmp_path / "b", first(5), ONE, init_states=1)
    (result,) = compare(a, b).against_first
    assert not result.pairing.paired
    assert result.pairing.why.endswith("the initial states differ (easy/push/1 has 1 in a, 0 in b)")


def test_scenes_are_matched_by_seed_whatever_their_number(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", lambda s: s.seed % 2 == 0, ONE, 20, seed=1000)
    b = write_run(tmp_path / "b", lambda s: s.seed % 2 == 0, ONE, 20, seed=1005)
    (result,) = compare(a, b).against_first
    assert result.overall.pairs == 15
    assert result.differing == ()
    assert result.pairing.why.endswith("10 without a finished partner are left out")


def test_too_small_an_overlap_is_not_worth_pairing(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", first(5), ONE, 20), write_run(tmp_path / "b", first(5), ONE, 20, seed=1015)
    (result,) = compare(a, b).against_first
    assert result.pairing.why == (
        "not paired: only 5 episodes are the same in both; the seeds differ (easy/push/0 has 1000 in a, 1015 in b)"
    )
    assert result.overall.baseline == (5, 20)


def test_errors_and_missing_episodes_are_left_out_and_said(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", first(6), ONE)
    b = write_run(tmp_path / "b", lambda s: "error" if s.index == 0 else None if s.index > 7 else False, ONE)
    report = compare(a, b)
    assert report.notes == (
        "b is not complete: 2 of 10 episodes have no result yet",
        "b: 1 episode ended in an error: left out, not a failure",
    )
    (result,) = report.against_first
    assert (result.overall.pairs, result.overall.wins, result.overall.losses) == (7, 0, 5)
    assert (result.other.errors, result.other.finished, result.other.missing) == (1, 7, 2)


def test_a_task_of_which_nothing_finished_is_said_to_be_in_no_mean(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", lambda s: True)
    b = write_run(tmp_path / "b", lambda s: "error" if s.task == "reach" else True)
    report = compare(a, b)
    assert report.sides[1].rate == 1.0
    assert report.notes == (
        "b: 10 episodes ended in an error: left out, not a failure",
        "b: the mean is over 1 of 2 tasks: nothing of easy/reach has finished",
    )


def test_tasks_weigh_the_same_in_the_overall_line(tmp_path: Path) -> None:
    # push: 10 pairs, the other wins 4. reach: 2 pairs only, the other wins both.
    def outcome(wins: int) -> Outcome:
        return lambda s: "error" if s.task == "reach" and s.index > 1 else s.index < wins

    a, b = write_run(tmp_path / "a", outcome(0)), write_run(tmp_path / "b", outcome(4))
    (result,) = compare(a, b).against_first
    push, reach = result.tasks
    assert (push.difference, reach.difference) == (0.4, 1.0)
    assert result.overall.difference == pytest.approx(0.7)
    expected = weighted_difference([PairCounts(10, 4, 0), PairCounts(2, 2, 0)])
    assert result.overall.interval == pytest.approx(expected[1:])
    assert push.interval == pytest.approx(agresti_min(PairCounts(10, 4, 0)))
    assert (result.overall.wins, result.overall.p) == (6, 0.03125)


def test_unpaired_tasks_of_unequal_numbers_are_compared_within_themselves(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", lambda s: None if s.task == "reach" and s.index > 2 else s.index < 5)
    b = write_run(tmp_path / "b", first(5), seed=9000)
    (result,) = compare(a, b).against_first
    assert result.overall.test == "Mantel-Haenszel"
    even = compare(write_run(tmp_path / "c", first(3)), b).against_first[0]
    assert even.overall.test == "Barnard"
    assert even.overall.p == pytest.approx(barnard((6, 20), (10, 20)))


def test_groups_and_suites_have_lines_of_their_own(tmp_path: Path) -> None:
    tasks, groups = ("s/a", "s/b", "t/c", "t/d"), ("camera", "light", "camera", "light")
    a = write_run(tmp_path / "a", first(2), tasks, groups=groups)
    b = write_run(tmp_path / "b", lambda s: s.index < (8 if s.task in "ac" else 2), tasks, groups=groups)
    (result,) = compare(a, b).against_first
    lines = {line.name: line.difference for line in result.groups}
    assert lines == pytest.approx({"s": 0.3, "t": 0.3, "[camera]": 0.6, "[light]": 0.0})


def test_no_difference_is_told_from_too_few_episodes(tmp_path: Path) -> None:
    few = compare(write_run(tmp_path / "a", first(5)), write_run(tmp_path / "b", first(6))).against_first[0]
    assert few.verdict.kind == TOO_FEW
    assert few.verdict.needed is not None
    assert few.verdict.needed > 20
    assert f"about {few.verdict.needed:,} pairs would do (there are 20)" in few.verdict.words
    many = compare(
        write_run(tmp_path / "c", first(300), ONE, 600), write_run(tmp_path / "d", first(301), ONE, 600)
    ).against_first[0]
    assert many.verdict.kind == NO_DIFFERENCE
    assert "the interval lies within ±5 points" in many.verdict.words


def test_three_runs_are_ranked_with_holm_and_letters(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / name, first(k), ONE, 40) for name, k in (("low", 5), ("mid", 20), ("near", 21))]
    report = compare(*paths)
    assert report.ranking is not None
    assert [report.names[i] for i in report.ranking.order] == ["near", "mid", "low"]
    assert report.ranking.letters == ("a", "a", "b")
    raw = {(0, 1): 2 / 2**15, (0, 2): 2 / 2**16, (1, 2): 1.0}
    assert report.ranking.adjusted_p == pytest.approx({(0, 1): 2 * raw[(0, 1)], (0, 2): 3 * raw[(0, 2)], (1, 2): 1.0})
    mid, near = report.against_first
    assert mid.adjusted_p == pytest.approx(2 * raw[(0, 1)])
    assert "after Holm" in near.verdict.words


def test_rates_take_the_interval_that_is_asked_for(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", first(5)), write_run(tmp_path / "b", first(6))
    side = compare(a, b, interval="exact").sides[1]
    assert side.interval == pytest.approx(suite_rate([(6, 10), (6, 10)], method="exact")[1:])


def stopping(against: Path, counted: int | None, **reference: object) -> dict[str, object]:
    reference = {"path": str(against), **reference}
    return {"rule": f"vs={against}", "counted": counted, "decided": counted is not None, "reference": reference}


@pytest.mark.parametrize(
    ("counted", "note"), [(10, "b stopped early by --until=vs={}"), (None, "b: --until=vs={} was not reached")]
)
def test_a_run_that_was_watched_for_the_comparison_is_judged_by_what_is_valid_then(
    tmp_path: Path, counted: int | None, note: str
) -> None:
    a = write_run(tmp_path / "a", lambda s: False, ONE)
    b = write_run(tmp_path / "b", first(7), ONE, stopping=stopping(a, counted))
    report = compare(a, b)
    (result,) = report.against_first
    assert result.overall.p == pytest.approx(2 / 2**7)  # 0.016, but somebody looked after every pair
    assert result.anytime_p == pytest.approx(1 / 16)
    assert result.verdict.kind == TOO_FEW
    assert (result.pairing.sequential, result.pairing.stopped) == (True, counted is not None)
    assert note.format(a) in report.notes


def test_a_run_that_stopped_against_another_is_compared_as_any(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", lambda s: False, ONE)
    b = write_run(tmp_path / "b", first(7), ONE, stopping=stopping(tmp_path / "c", 10))
    (result,) = compare(a, b).against_first
    assert not result.pairing.sequential
    assert result.verdict.kind == BETTER


def test_a_baseline_that_has_moved_is_known_by_its_outcomes(tmp_path: Path) -> None:
    a, other = write_run(tmp_path / "a", lambda s: False, ONE), write_run(tmp_path / "other", first(1), ONE)
    outcomes = {(e.suite, e.task, e.index): bool(e.success) for e in read_run(a).episodes}
    moved = stopping(tmp_path / "was", 10, outcomes=digest_of(outcomes))
    b = write_run(tmp_path / "b", first(7), ONE, stopping=moved)
    assert compare(a, b).against_first[0].pairing.sequential
    assert not compare(other, b).against_first[0].pairing.sequential


def test_what_differs_beside_the_policy_is_noted(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", first(5)), write_run(tmp_path / "b", first(5))
    described = json.loads((b / "run.json").read_text())
    described["identity"]["benchmark"]["options"] = {"camera": "side"}
    (b / "run.json").write_text(json.dumps(described))
    (result,) = compare(a, b).against_first
    assert result.pairing.notes == ("differs beside the policy: benchmark.options.camera: (not set) -> side",)


def test_a_file_of_lerobot_eval_is_matched_by_the_number_of_the_task(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", first(5))
    metrics = {"successes": [i < 9 for i in range(10)], "sum_rewards": [], "max_rewards": []}
    info = {"per_task": [{"task_group": "easy", "task_id": i, "metrics": metrics} for i in (0, 1)]}
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/eval_info.json").write_text(json.dumps(info))
    (result,) = compare(a, tmp_path / "theirs").against_first
    assert result.pairing.why.startswith("not paired: theirs does not say which seeds")
    assert [line.name for line in result.tasks] == ["easy/push", "easy/reach"]
    (ordered,) = compare(a, tmp_path / "theirs", by_order=True).against_first
    assert (ordered.overall.pairs, ordered.overall.wins, ordered.overall.losses) == (20, 8, 0)


def test_tasks_that_not_all_have_are_left_out_and_named(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", first(5)), write_run(tmp_path / "b", first(5), ("easy/push", "easy/shelf"))
    report = compare(a, b)
    assert [line.name for line in report.against_first[0].tasks] == ["easy/push"]
    assert "1 tasks of b are not in all runs and are left out: easy/shelf" in report.notes
    with pytest.raises(ConfigError, match=r"share no task.*c: hard/x"):
        compare(a, write_run(tmp_path / "c", first(1), ("hard/x",)))
    with pytest.raises(ConfigError, match="takes two runs or more"):
        compare(a)


def test_names_are_as_short_as_they_can_be_told_apart() -> None:
    assert short_names([Path("/x/a/run"), Path("/x/b/run")]) == ("a/run", "b/run")
    assert short_names([Path("/x/a"), Path("/x/b/eval_info.json")]) == ("a", "b")
    assert short_names([Path("/x/a"), Path("/x/a")]) == ("a (1)", "a (2)")


def test_ten_thousand_episodes_a_run_take_less_than_three_seconds_of_cpu(tmp_path: Path) -> None:
    tasks = [f"s/t{i}" for i in range(10)]
    a = write_run(tmp_path / "a", lambda s: s.index % 3 > 0, tasks, 1000)
    b = write_run(tmp_path / "b", lambda s: s.index % 4 > 0, tasks, 1000)
    c = write_run(tmp_path / "c", lambda s: s.index % 4 > 0, tasks, 1000, seed=50_000)
    for other in (b, c):
        began = time.process_time()
        (result,) = compare(a, other).against_first
        assert time.process_time() - began <= 3.0
        assert result.verdict.kind == BETTER


def write_info(path: Path, env: str | None, **metrics: list[object]) -> Path:
    path.mkdir()
    entry = {"task_group": "s", "task_id": 0, "metrics": metrics}
    (path / "eval_info.json").write_text(json.dumps({"per_task": [entry]}))
    if env is not None:
        (path / "eval_config.json").write_text(json.dumps({"env": {"type": env}}))
    return path


def test_a_scene_that_was_played_twice_is_paired_once_each(tmp_path: Path) -> None:
    a = write_info(tmp_path / "a", None, successes=[True] * 4, seeds=[7] * 4)
    b = write_info(tmp_path / "b", None, successes=[False] * 2, seeds=[7] * 2)
    (result,) = compare(a, b).against_first
    assert (result.overall.pairs, result.pairing.dropped) == (2, 2)


def test_files_of_other_benchmarks_share_no_task(tmp_path: Path) -> None:
    outcomes: list[object] = [True, False]
    one = write_info(tmp_path / "one", "libero", successes=outcomes)
    two = write_info(tmp_path / "two", "metaworld", successes=outcomes)
    with pytest.raises(ConfigError, match=r"share no task.*one is of libero, two of metaworld"):
        compare(one, two)
    same, unknown = (
        write_info(tmp_path / name, env, successes=outcomes) for name, env in (("3", "libero"), ("4", None))
    )
    assert len(compare(one, same, unknown).against_first) == 2
