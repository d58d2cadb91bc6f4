"""LIBERO-plus: its tasks are read from a checkout's files; a real checkout is run where LIBERO_PLUS_ROOT names one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotrials.benchmarks.adapters.libero.plus import scene_numbers
from robotrials.benchmarks.adapters.libero.plus_tasks import DIMENSIONS, groups_of, states_file
from robotrials.benchmarks.registry import make_benchmark
from robotrials.errors import ConfigError
from robotrials.plan.config import EnvChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec

SHIPPED = os.environ.get("LIBERO_PLUS_ROOT")

NAMES = {
    "turn_on_the_stove_view_329_0_100_0_0_initstate_0": "Camera Viewpoints",
    "turn_on_the_stove_view_0_0_100_0_0_initstate_230": "Robot Initial States",
    "turn_on_the_stove_language_3_view_0_0_100_0_0_initstate_0": "Language Instructions",
    "turn_on_the_stove_light_39": "Light Conditions",
    "turn_on_the_stove_table_12": "Background Textures",
    "turn_on_the_stove_view_0_0_100_0_0_initstate_0_noise_43": "Sensor Noise",
    "turn_on_the_stove_add_10": "Objects Layout",
    "pick_up_the_bowl_from_table_center_moved_level2_sample2": "Objects Layout",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one suite of eight tasks, and as little else as listing them needs."""
    library = tmp_path / "libero" / "libero"
    states = library / "init_files" / "libero_goal"
    for folder in (library / "benchmark", library / "bddl_files" / "libero_goal", states):
        folder.mkdir(parents=True)
    (library / "benchmark" / "libero_suite_task_map.py").write_text(
        f"libero_task_map = {{'libero_goal': {list(NAMES)}}}"
    )
    classified = [{"id": i + 1, "name": name, "category": kind} for i, (name, kind) in enumerate(NAMES.items())]
    (library / "benchmark" / "task_classification.json").write_text(json.dumps({"libero_goal": classified}))
    (library / "bddl_files" / "libero_goal" / "turn_on_the_stove_language_3.bddl").write_text(
        "(define (problem LIBERO)\n  (:language Make the stove hot please)\n)"
    )
    for name in ("turn", "turn_on_the_stove", "turn_on_the_st"):
        (states / f"{name}.pruned_init").touch()
    return tmp_path


def tasks(root: Path, **options: Any) -> list[TaskSpec]:
    return make_benchmark(EnvChoice("libero_plus", {"task": "libero_goal", "root": str(root), **options})).tasks()


def test_tasks_are_grouped_by_the_dimension_that_is_perturbed(checkout: Path) -> None:
    found = tasks(checkout)
    assert [(task.id, task.name, task.group) for task in found] == [
        (i, name, DIMENSIONS[kind]) for i, (name, kind) in enumerate(NAMES.items())
    ]
    assert {task.max_steps for task in found} == {300}
    assert [task.n_init_states for task in found] == [50, 50, 50, 50, 50, 50, 1, 1]


def test_sentences_are_told_without_what_names_the_variant(checkout: Path) -> None:
    told = [task.instruction for task in tasks(checkout)]
    assert told[2] == "Make the stove hot please"
    assert told[7] == "pick up the bowl from table center"
    assert {told[i] for i in (0, 1, 3, 4, 5, 6)} == {"turn on the stove"}


def test_dimensions_can_be_chosen(checkout: Path) -> None:
    assert [task.group for task in tasks(checkout, perturbation="layout, camera")] == ["camera", "layout", "layout"]
    assert [task.id for task in tasks(checkout, perturbation="layout", task_ids="6")] == [6]


def test_a_task_that_is_named_and_filtered_out_is_an_error(checkout: Path) -> None:
    named = r"that --env\.perturbation=layout leaves out: 0 \(camera\), 2 \(language\); leave them or"
    with pytest.raises(ConfigError, match=named):
        tasks(checkout, perturbation="layout", task_ids="0,2,6")
    with pytest.raises(ConfigError, match=r"leaves out: 0 \(camera\)"):
        tasks(checkout, perturbation="layout", task_ids="0")


def test_no_task_at_all_is_an_error(checkout: Path) -> None:
    with pytest.raises(ConfigError, match=r"libero_goal has no task in --env\.task_ids="):
        tasks(checkout, task_ids="[]")


@pytest.mark.parametrize(
    "shape",
    [
        lambda kinds: [{"id": i + 1, "category": kind} for i, kind in enumerate(kinds)],
        lambda kinds: {str(i): {"category": kind} for i, kind in enumerate(kinds)},
        lambda kinds: {str(i + 1): {"perturbation_type": kind} for i, kind in enumerate(kinds)},
    ],
    ids=["list", "map from 0", "map from 1"],
)
def test_every_shape_of_the_classification_is_read(shape: Callable[[list[str]], Any]) -> None:
    assert groups_of(shape(list(DIMENSIONS)), 7, "libero_10") == list(DIMENSIONS.values())


@pytest.mark.parametrize("entries", [[], [{"id": 1, "category": "Smell"}], {"1": {}}])
def test_a_task_of_no_known_dimension_is_refused(entries: Any) -> None:
    with pytest.raises(ConfigError, match=r"of task 0 of libero_10; it should be one of Camera Viewpoints, Robot"):
        groups_of(entries, 1, "libero_10")


def test_initial_states_are_those_of_the_task_that_a_variant_continues(checkout: Path) -> None:
    library = checkout / "libero" / "libero"
    for name in list(NAMES)[:7]:
        assert states_file(library, "libero_goal", name).name == "turn_on_the_stove.pruned_init"
    own = library / "init_files" / "libero_newobj" / "libero_goal" / "turn_on_the_stove_add_10.pruned_init"
    own.parent.mkdir(parents=True)
    own.touch()
    assert states_file(library, "libero_goal", "turn_on_the_stove_add_10") == own
    with pytest.raises(ConfigError, match=r"holds initial states for open_the_door; run with --env\.init_states"):
        states_file(library, "libero_goal", "open_the_door")


def test_view_start_and_noise_are_in_the_name() -> None:
    assert scene_numbers("a_view_355_15_154_8_352_initstate_230_noise_43") == {
        "horizon_view": "355",
        "vertical_view": "15",
        "scale_factor": 1.54,
        "end_point_rot": "8",
        "end_point_vertical": "352",
        "init_state": "230",
        "noise": 43,
    }
    assert scene_numbers("a_view_0_0_100_0_0_initstate_0")["noise"] == 0
    assert scene_numbers("a_table_12")["scale_factor"] == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"root": "/nowhere"}, r"--env\.root=/nowhere is no checkout of LIBERO-plus"),
        ({"task": "libero_90"}, "libero_plus has no suite libero_90"),
        ({"perturbation": "smell"}, r"--env\.perturbation=smell: known are camera, robot, language, light"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(options: dict[str, str], words: str, checkout: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        make_benchmark(EnvChoice("libero_plus", {"task": "libero_goal", "root": str(checkout), **options})).tasks()


def test_without_a_checkout_it_says_what_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"--env\.root is needed: the folder of a checkout"):
        make_benchmark(EnvChoice("libero_plus", {})).tasks()


@pytest.mark.skipif(SHIPPED is None, reason="needs LIBERO_PLUS_ROOT, a checkout of LIBERO-plus with LIBERO's assets")
@pytest.mark.parametrize("perturbation", ["camera", "robot", "language", "noise"])
def test_an_episode_of_a_real_checkout_is_the_same_after_another_and_however_often_looked_at(perturbation: str) -> None:
    pytest.importorskip("robosuite")
    small = {"observation_width": 96, "observation_height": 96, "perturbation": perturbation}
    options = {"task": "libero_goal", "root": str(SHIPPED), **small}
    benchmark = make_benchmark(EnvChoice("libero_plus", options))
    task = benchmark.tasks()[100]
    env = benchmark.make(task)
    shown = []
    for index in (0, 1, 0):
        env.reset(EpisodeSpec(0, task.suite, task.name, index, 1000 + index, index, task.max_steps))
        if len(shown) == 0:
            env.observe(task.images)
        env.step(np.zeros(7))
        shown.append(env.observe(task.images))
    env.close()
    for key in task.observations:
        np.testing.assert_array_equal(shown[0][key], shown[2][key])
    assert not np.array_equal(shown[0]["observation.state"], shown[1]["observation.state"])
