"""The shipped model: what it says of itself, and that it does its tasks in the real simulator."""

from __future__ import annotations

import numpy as np
import pytest

from robotrials.benchmarks.registry import make_benchmark
from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.plan import build_plan
from robotrials.plan.task import Feature, TaskSpec
from robotrials.policies import files
from robotrials.policies.fit import check_fit
from robotrials.policies.onnx import OnnxPolicy
from robotrials.policies.registry import make_policy

pytest.importorskip("onnxruntime")

STATE = "observation.environment_state"
MODEL = PolicyChoice(path="builtin:metaworld-bc")
TASKS = (
    "reach-v3,push-v3,pick-place-v3,door-open-v3,drawer-open-v3,drawer-close-v3,"
    "button-press-topdown-v3,peg-insert-side-v3,window-open-v3,window-close-v3"
)


@pytest.fixture(scope="module")
def policy() -> OnnxPolicy:
    made = make_policy(MODEL)
    assert isinstance(made, OnnxPolicy)
    return made


def tasks(names: str = TASKS) -> list[TaskSpec]:
    return make_benchmark(EnvChoice("metaworld", {"task": names})).tasks()


def first_action(policy: OnnxPolicy, task: TaskSpec, sentence: str) -> list[float]:
    (episode,) = build_plan([task], 1, 1000)
    observation = {STATE: np.linspace(-0.3, 0.6, 39, dtype=np.float32), "task": sentence}
    actions: list[float] = policy.act([policy.new_session(episode, task)], [observation])[0, 0].tolist()
    return actions


def test_the_model_is_small_enough_to_ship() -> None:
    assert files.locate("builtin:metaworld-bc").stat().st_size < 2_000_000


def test_it_fits_meta_world_and_looks_through_no_camera(policy: OnnxPolicy) -> None:
    spec = policy.spec()
    assert spec.observations == {STATE: Feature((39,)), "task": Feature((), "str")}
    check_fit(spec.name, spec.observations, spec.action_dim, tasks(), {})


def test_it_tells_its_ten_tasks_apart_by_their_sentences(policy: OnnxPolicy) -> None:
    actions = {tuple(first_action(policy, task, task.instruction)) for task in tasks()}
    assert len(actions) == 10


def test_sentences_it_never_heard_are_all_one_to_it(policy: OnnxPolicy) -> None:
    task = tasks("reach-v3")[0]
    unknown = first_action(policy, task, "Fly to the moon")
    assert first_action(policy, task, "Make some tea") == unknown
    assert first_action(policy, task, task.instruction) != unknown
    assert all(-1 <= a <= 1 for a in unknown)


def test_it_does_its_tasks(policy: OnnxPolicy) -> None:
    pytest.importorskip("metaworld")
    benchmark = make_benchmark(EnvChoice("metaworld", {"task": "drawer-open-v3,push-v3", "obs_type": "state"}))
    plan = build_plan(benchmark.tasks(), 3, 1000)
    for task in plan.tasks:
        env = benchmark.make(task)
        for episode in (e for e in plan if e.task == task.name):
            env.reset(episode)
            session = policy.new_session(episode, task)
            for _ in range(200):  # the expert needs 60 to 90
                outcome = env.step(policy.act([session], [env.observe(())])[0, 0])
                if outcome.success:
                    break
            assert outcome.success, episode.name
        env.close()
