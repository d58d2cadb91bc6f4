from __future__ import annotations

from dataclasses import replace

import pytest

from robotrials.tuning.advise import advise, layouts
from robotrials.tuning.costs import EpisodeCost, MeasuredCosts, ServerCost
from robotrials.tuning.model import RunLayout, TaskLoad, Work, bound, pace, predict

COST = EpisodeCost(reset=0.1, step=0.01, render=0.0, infer=0.0, rest=0.0, film=0.0, steps=90, steps_a_look=1, busy=1.0)
"""One second an episode."""


def figures(
    cost: EpisodeCost = COST, cores: int = 4, server: ServerCost | None = None, **more: object
) -> MeasuredCosts:
    known = {
        "memory": 64e9,
        "gpus": 1,
        "gpu_memory": None,
        "start_s": 2.0,
        "build_s": 0.0,
        "coordinator_s": 1.0,
        "worker_memory": 2e8,
    }
    return MeasuredCosts(cores=cores, costs={"t": cost}, server=server, **{**known, **more})  # type: ignore[arg-type]


def server(**more: object) -> ServerCost:
    known = {"load_s": 5.0, "infer": {1: 0.02}, "other": {}, "max_batch": None, "own_device": True, "memory": 1e9}
    return ServerCost(**{**known, **more})  # type: ignore[arg-type]


def test_wall_time_is_start_and_the_schedule_of_all_episodes() -> None:
    found = predict(figures(), [TaskLoad("t", 100, 500)], RunLayout(4))
    assert found.wall_s == pytest.approx(1.0 + 2.0 + 25.0)
    assert found.pace.cores_busy == pytest.approx(1.0)


def test_more_workers_than_cores_help_only_what_sleeps() -> None:
    tasks = [TaskLoad("t", 400, 500)]
    assert predict(figures(), tasks, RunLayout(8)).wall_s >= predict(figures(), tasks, RunLayout(4)).wall_s
    asleep = EpisodeCost(**{**vars(COST), "busy": 0.25})
    by_four, by_sixteen = (predict(figures(asleep), tasks, RunLayout(n)) for n in (4, 16))
    assert by_four.pace.cores_busy == pytest.approx(0.25)
    assert by_sixteen.pace.looks_per_s == pytest.approx(4 * by_four.pace.looks_per_s)
    assert advise(figures(asleep), tasks, RunLayout(4)).best.layout.workers >= 12


def test_the_last_round_counts() -> None:
    """Five episodes of a second on four workers take two."""
    assert predict(figures(), [TaskLoad("t", 5, 500)], RunLayout(4)).wall_s == pytest.approx(1.0 + 2.0 + 2.0)


def test_a_server_with_its_own_device_runs_beside_the_cores() -> None:
    """Two workers, looks of 20 ms, passes of 20 ms for one or both: taking turns or in step, 50 looks a second."""
    found = pace(Work(0.02, 0.0), RunLayout(2, 1), 8, server(infer={1: 0.02, 2: 0.02}))
    assert 40 < found.looks_per_s <= 52
    assert found.cores_busy == pytest.approx(found.looks_per_s * 0.02 / 8, rel=0.05)


def test_a_saturated_server_gives_its_batch_over_its_pass() -> None:
    found = pace(Work(1e-3, 0.0), RunLayout(16, 1), 16, server(infer={1: 0.02, 8: 0.04}, max_batch=8))
    assert found.looks_per_s == pytest.approx(8 / 0.04, rel=0.1)
    assert found.servers_busy > 0.95
    twice = pace(Work(1e-3, 0.0), RunLayout(32, 2), 16, server(infer={1: 0.02, 8: 0.04}, max_batch=8))
    assert twice.looks_per_s == pytest.approx(2 * found.looks_per_s, rel=0.15)


def test_transfer_is_the_server_s_work_for_each_row() -> None:
    found = pace(Work(1e-3, 0.0, transfer=0.01), RunLayout(16, 1), 16, server(infer={1: 0.02, 8: 0.04}, max_batch=8))
    assert found.looks_per_s == pytest.approx(8 / (0.04 + 8 * 0.01), rel=0.1)


def test_a_server_on_the_processor_takes_its_share_of_the_cores() -> None:
    """Each look is 10 ms of a core for the worker and 10 for the policy: one core makes 50 a second, two make 100."""
    own = server(infer={1: 0.01, 2: 0.02, 4: 0.04}, own_device=False)
    one = pace(Work(0.01, 0.0), RunLayout(4, 1), 1, own)
    assert one.looks_per_s == pytest.approx(50, rel=0.1)
    assert one.cores_busy == pytest.approx(1.0)


def test_advice_takes_the_bottleneck_away_while_memory_lasts() -> None:
    tasks = [TaskLoad("t", 400, 500)]
    saturated = figures(server=server(infer={1: 0.1}, max_batch=1), gpus=4)
    advice = advise(saturated, tasks, RunLayout(4, 1))
    assert advice.best.layout.servers == 4
    assert advice.best.wall_s < 0.5 * advice.usual.wall_s
    assert advice.bottleneck == "infer"
    small = figures(server=server(infer={1: 0.1}, max_batch=1), gpus=4, memory=3e9)
    layout = advise(small, tasks, RunLayout(4, 1)).best.layout
    assert layout.servers * 1e9 + layout.workers * 2e8 <= 0.85 * 3e9


def test_other_batches_are_advised_where_they_are_faster() -> None:
    slow = server(infer={1: 0.03, 4: 0.03}, other={16: 0.04}, max_batch=4)
    layout = advise(figures(server=slow, cores=16), [TaskLoad("t", 800, 500)], RunLayout(16, 1)).best.layout
    assert layout.max_batch == 16


def test_equal_layouts_go_to_the_one_with_fewer_processes() -> None:
    assert advise(figures(), [TaskLoad("t", 4, 500)], RunLayout(16)).best.layout == RunLayout(4)
    assert advise(figures(), [TaskLoad("t", 1, 500)], RunLayout(1)).best.layout == RunLayout(1)


def test_the_largest_part_of_what_keeps_cores_busy_is_named() -> None:
    tasks = [TaskLoad("t", 400, 500)]
    assert advise(figures(), tasks, RunLayout(4)).bottleneck == "simulate"
    drawn = EpisodeCost(**{**vars(COST), "render": 0.05})
    assert advise(figures(drawn), tasks, RunLayout(4)).bottleneck == "render"
    filmed = EpisodeCost(**{**vars(COST), "film": 0.05})
    assert advise(figures(filmed), [TaskLoad("t", 400, 500, filmed=400)], RunLayout(4)).bottleneck == "film"


def test_films_cost_the_episodes_that_are_filmed() -> None:
    filmed = figures(EpisodeCost(**{**vars(COST), "film": 0.01}))
    wall = predict(filmed, [TaskLoad("t", 100, 500, filmed=10)], RunLayout(4)).wall_s
    assert wall == pytest.approx(1.0 + 2.0 + (100 + 10 * 0.9) / 4, abs=1.2)


def test_a_task_that_was_not_played_is_like_the_others() -> None:
    assert predict(figures(), [TaskLoad("other", 100, 500)], RunLayout(4)).wall_s == pytest.approx(28.0)
    assert predict(figures(), [TaskLoad("other", 100, 45)], RunLayout(4)).wall_s < 28.0


@pytest.mark.parametrize("own_device", [True, False])
def test_what_cannot_be_best_is_not_simulated(own_device: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = replace(COST, step=0.01, render=0.02, steps=200, steps_a_look=10, transfer=1e-4)
    policy = server(infer={1: 0.02, 4: 0.03, 8: 0.04}, other={16: 0.06, 32: 0.1}, max_batch=8, own_device=own_device)
    many = figures(cost, 16, policy, gpus=4, build_s=0.5)
    tasks, usual = [TaskLoad("t", 500, 500)], RunLayout(22, 1)
    everything = {layout: predict(many, tasks, layout) for layout in layouts(many, tasks, usual)}
    for layout, prediction in everything.items():
        assert predict(many, tasks, layout, bound).wall_s <= 1.02 * prediction.wall_s, layout
    simulated = []

    def counted(*more: object) -> object:
        simulated.extend(more[2:3] if len(more) == 3 else ())
        return predict(*more)  # type: ignore[arg-type]

    monkeypatch.setattr("robotrials.tuning.advise.predict", counted)
    advice = advise(many, tasks, usual)
    assert advice.best.wall_s <= 1.06 * min(prediction.wall_s for prediction in everything.values())
    assert len(simulated) < 0.5 * len(everything)


def test_advice_is_among_what_may_be() -> None:
    many = figures(cores=4, server=server())
    found = advise(many, [TaskLoad("t", 100, 500)], RunLayout(4, 2), lambda layout: layout.servers == 2)
    assert found.best.layout.servers == 2
