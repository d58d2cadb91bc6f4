"""Policy servers share out the GPUs that they may see."""

from __future__ import annotations

from robotrials.machine.gpus import gpu_of_server, visible_gpus


def test_the_users_choice_of_gpus_comes_before_all_that_are_there() -> None:
    assert visible_gpus({}, lambda: 3) == ["0", "1", "2"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "4,GPU-1f2e"}, lambda: 8) == ["4", "GPU-1f2e"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": ""}, lambda: 8) == []
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "-1"}, lambda: 8) == []


def test_servers_take_the_gpus_in_turn() -> None:
    gpus = ["4", "6"]
    assert [gpu_of_server(slot, gpus, None)["CUDA_VISIBLE_DEVICES"] for slot in range(3)] == ["4", "6", "4"]
    assert gpu_of_server(1, gpus, "cuda") == {"CUDA_VISIBLE_DEVICES": "6"}


def test_nothing_is_set_where_there_is_no_choice_or_it_is_made() -> None:
    assert gpu_of_server(1, ["0"], None) == {}
    assert gpu_of_server(1, [], None) == {}
    assert gpu_of_server(1, ["0", "1"], "cuda:1") == {}
    assert gpu_of_server(1, ["0", "1"], "cpu") == {}
