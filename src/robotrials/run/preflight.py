"""What a worker or a policy server would refuse when it starts, found while the run is planned.

Every check raises and leaves nothing behind, so a dry run makes the same ones as a run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import zmq

from robotrials.benchmarks.base import Benchmark
from robotrials.environments import folders
from robotrials.errors import ConfigError, NotInstalledError
from robotrials.install import install_command
from robotrials.machine.threads import thread_limits
from robotrials.plan import import_path
from robotrials.plan.config import PolicyChoice, RunConfig
from robotrials.plan.plan import Plan
from robotrials.policies import registry as policies
from robotrials.policies.asked import ask_policy
from robotrials.policies.base import PolicySpec
from robotrials.policies.fit import check_fit, check_renames
from robotrials.rendering.gl import gl_environment
from robotrials.wire.transport import also_bind, bind_router

_TRIAL_BYTES = 1 << 18
"""Room that a run needs at the very least: its run.json and an empty ledger."""


def check_folder(path: Path, flag: str) -> None:
    """Make and remove a file where ``path`` is, or will be.

    Raises:
        ConfigError: a file is in the way, the folder cannot be made or written, or the disk is full.
    """
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise ConfigError(f"{flag}={path}: {there} is a file, not a folder")
    try:
        with tempfile.TemporaryDirectory(prefix=".robotrials-", dir=there) as trial:
            descriptor = os.open(os.path.join(trial, "trial"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(bytes(_TRIAL_BYTES))
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        raise ConfigError(f"{flag}={path} cannot be written: {error.strerror or error} ({there})") from None


def check_listening(address: str) -> None:
    """Listen at ``--eval.listen`` for a moment.

    Raises:
        ConfigError: it is no address, or it is in use or not of this machine.
    """
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        also_bind(bind_router(context, "inproc://preflight"), address)
    finally:
        context.destroy(linger=0)


def check_runtime(config: RunConfig) -> None:
    """What ``--eval.runtime`` and ``--eval.listen`` need of this machine.

    Raises:
        ConfigError: an address that cannot be listened at, or a Ray cluster that does not answer.
        NotInstalledError: Ray is missing.
    """
    if config.eval.listen:
        check_listening(config.eval.listen)
    if config.eval.runtime == "ray":
        if find_spec("ray") is None:
            raise NotInstalledError(f"--eval.runtime=ray needs Ray: {install_command('ray')}")
        from robotrials.engine.launchers.ray import require_answer

        require_answer(config.ray.address)


def check_policy(config: RunConfig, policy: PolicyChoice, benchmark: Benchmark, plan: Plan, served: bool) -> None:
    """Whether the policy can be made where it will run, and fits every task, as far as that is cheap to know.

    ``policy`` is the one that is loaded; ``served``: it lives in a policy server of the run.

    Raises:
        ConfigError: its interpreter, packages, device or options are wrong, or it cannot play there.
        ContractError: it does not fit the benchmark.
    """
    check_renames(plan.tasks, config.rename_map)
    if policies.type_of(policy) == "expert":
        for task in plan.tasks:
            benchmark.check_expert(task)
    spec = policies.known_spec(policy)
    if spec is None or policy.python is not None:
        spec = _asked(config, policy, benchmark, served) or spec
    policies.check_plan(policy, plan)
    if spec is None:
        return
    if spec.needs_env and served:
        raise ConfigError(
            f"policy {spec.name} looks into the simulator, so it cannot run in a policy server: leave out "
            "--eval.policy_servers and --policy.python"
        )
    check_fit(spec.name, spec.observations, spec.action_dim, plan.tasks, config.rename_map)


def _asked(config: RunConfig, policy: PolicyChoice, benchmark: Benchmark, served: bool) -> PolicySpec | None:
    """What the interpreter says that will run the policy; None for one that is not on this machine, and for a class
    that is heavy to import or to make: its own process tells."""
    if policies.is_elsewhere(policy):
        return None
    own = import_path.is_import_path(policies.type_of(policy))
    if served:
        if config.eval.runtime == "ray" or (own and policy.python is None):
            return None
        environ = {**os.environ, **thread_limits(1)}
        return ask_policy(policy, policy.python, not own and not policies.is_served(policy), environ)
    if config.eval.runtime != "local":
        return None
    return ask_policy(policy, config.env.python, True, _worker_environment(config, benchmark))


def _worker_environment(config: RunConfig, benchmark: Benchmark) -> dict[str, str]:
    environ: Mapping[str, str] = {**os.environ, **gl_environment(os.environ), **thread_limits(1)}
    return {**environ, **folders.variables(benchmark.installation, config.env.python, environ)}
