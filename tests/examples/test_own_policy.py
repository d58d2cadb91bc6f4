from __future__ import annotations

from pathlib import Path

import pytest

from robotrials.benchmarks.registry import make_benchmark
from robotrials.plan.config import EnvChoice, PolicyChoice
from robotrials.plan.plan import build_plan
from robotrials.policies.registry import make_policy

FILE = Path(__file__).parents[2] / "examples" / "own_policy.py"


def test_the_example_policy_reaches_its_goal_in_every_episode() -> None:
    pytest.importorskip("metaworld")
    policy = make_policy(PolicyChoice(f"{FILE}:Reacher", options={"gain": "8"}))
    benchmark = make_benchmark(EnvChoice("metaworld", {"task": "reach-v3", "obs_type": "state"}))
    plan = build_plan(benchmark.tasks(), 3, 1000)
    env = benchmark.make(plan.tasks[0])
    for episode in plan:
        env.reset(episode)
        session = policy.new_session(episode, plan.tasks[0])
        for _ in range(100):
            outcome = env.step(policy.act([session], [env.observe(())])[0, 0])
            if outcome.success:
                break
        assert outcome.success
    env.close()
