"""A policy server that times its policy on batches before it serves: ``python -m robotrials.tuning.policy_probe``."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError
from robotrials.machine.threads import available_cores
from robotrials.plan.config import PolicyChoice
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy, PolicySpec
from robotrials.policies.fit import env_key_of
from robotrials.policies.own_generators import own_generators
from robotrials.policies.registry import make_policy, policy_class, told_exactness
from robotrials.serving.server import PolicyServer
from robotrials.tuning.probe import play_part
from robotrials.tuning.protocol import ProbePolicy, memory_bytes, tell
from robotrials.wire.envelope import Message
from robotrials.wire.stream import listen

_REPEATS = 3
_LONG_ENOUGH_S = 0.2
"""A size is timed so often, or for so long."""


def made_up(spec: PolicySpec, task: TaskSpec, rename_map: Mapping[str, str], number: int) -> Observation:
    """An observation of the shapes that the policy will see, with random content."""
    rng = np.random.Generator(np.random.PCG64(number))
    times = (spec.n_obs_steps,) if spec.n_obs_steps > 1 else ()
    seen: Observation = {}
    for key in spec.observations:
        feature = task.observations.get(env_key_of(key, rename_map))
        if feature is None:
            seen[key] = task.instruction
        elif feature.is_image:
            seen[key] = rng.integers(0, 256, (*times, *feature.shape), dtype=np.uint8)
        else:
            seen[key] = rng.random((*times, *feature.shape)).astype(feature.dtype)
    return seen


def seconds_of(policy: Policy, probe: ProbePolicy, rows: int) -> float:
    """One forward pass over ``rows`` sessions: the median of several, after one to warm up."""
    spec = policy.spec()
    sessions = [policy.new_session(probe.episodes[i % len(probe.episodes)], probe.task) for i in range(rows)]
    observations = [made_up(spec, probe.task, probe.rename_map, i) for i in range(rows)]
    policy.act(sessions, observations)
    taken: list[float] = []
    while len(taken) < _REPEATS or (sum(taken) < _LONG_ENOUGH_S and len(taken) < 1000):
        began = time.perf_counter()
        policy.act(sessions, observations)
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def sizes_up_to(largest: int) -> Sequence[int]:
    """1, 2, 4, 8, ... and ``largest`` itself."""
    doubled = [1 << i for i in range(largest.bit_length()) if 1 << i < largest]
    return [*doubled, largest]


def other_batches(choice: PolicyChoice, exact: bool, probe: ProbePolicy, known: int, ends: float) -> dict[int, float]:
    """Seconds of a full pass by ``--policy.max_batch``, loading the policy anew for each, while there is time."""
    if "max_batch" not in inspect.signature(policy_class(choice)).parameters or "max_batch" in choice.options:
        return {}
    found: dict[int, float] = {}
    for size in sizes_up_to(probe.largest):
        if size == known:
            continue
        began = time.monotonic()
        if began >= ends:
            break
        options = {**choice.options, "max_batch": size}
        policy = make_policy(told_exactness(replace(choice, options=options), exact))
        if policy.spec().max_batch == size:  # else it cannot be exact at that size
            found[size] = seconds_of(policy, probe, size)
        spent = time.monotonic() - began
        if time.monotonic() + spent > ends:
            break
    return found


def run(folder: Path, name: str, probe: Message) -> None:
    """Load, time, tell, serve until killed."""
    assert isinstance(probe, ProbePolicy)
    policy = make_policy(told_exactness(probe.policy, probe.exact))
    policy = own_generators(policy) if probe.exact else policy
    spec = policy.spec()
    if spec.needs_env:
        raise ConfigError(f"policy {spec.name} looks into the simulator, so it cannot live in a policy server")
    tell(folder, name, "loaded", at=time.time())
    ends = time.monotonic() + probe.seconds
    largest = min(probe.largest, spec.max_batch or probe.largest)
    infer: dict[int, float] = {}
    for size in sizes_up_to(largest):
        infer[size] = seconds_of(policy, probe, size)
        if time.monotonic() > ends:
            break
    memory = memory_bytes()
    other = other_batches(probe.policy, probe.exact, probe, spec.max_batch or 0, ends)
    tell(
        folder,
        name,
        "timed",
        infer={str(size): seconds for size, seconds in infer.items()},
        other={str(size): seconds for size, seconds in other.items()},
        max_batch=spec.max_batch,
        own_device=policy.has_own_device,
        memory=memory,
    )
    listener = listen(probe.listen)
    cores = None if policy.has_own_device else available_cores()
    server = PolicyServer(policy, listener, probe.token, cores=cores)
    tell(folder, name, "serving")
    server.serve()


if __name__ == "__main__":
    play_part("robotrials.tuning.policy_probe", run)
