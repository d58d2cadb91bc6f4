"""What would be refused when a policy is trained, refused before it is."""

from __future__ import annotations

from dataclasses import replace

from robotrials.errors import ConfigError, NotInstalledError
from robotrials.plan.config import PolicyChoice, RunConfig

TO_COME = "to/come"
"""In the place of the policy's path: a repository of the Hub, which nobody looks for before it is loaded."""


def check_before_training(config: RunConfig, to_come: bool = True, without_simulator: bool = False) -> None:
    """Check a run: flags, the policy's options, tasks, simulator. ``to_come``: it plays a checkpoint that is not there
    yet.

    ``without_simulator``: one that is missing is no mistake, and then the tasks are not checked.

    Raises:
        ConfigError: options that cannot be meant, tasks that there are not.
        NotInstalledError: what the run needs is not installed.
    """
    from robotrials.policies import registry as policies
    from robotrials.run.prepare import check_all_but_policy

    policy = policy_to_come(config.policy) if to_come else config.policy
    if not to_come or policy.type == "lerobot":  # a class of one's own is asked when its file is there
        policies.validate(policy)
    try:
        _, benchmark, _, _ = check_all_but_policy(config)
    except NotInstalledError:
        if not without_simulator:
            raise
        return
    benchmark.tasks()


def policy_to_come(choice: PolicyChoice) -> PolicyChoice:
    """``choice`` with a path that nobody looks for, so that all else of it can be checked.

    Raises:
        ConfigError: a type that plays no checkpoint of LeRobot.
    """
    from robotrials.plan import import_path

    kind = choice.type or "lerobot"
    if kind != "lerobot" and not import_path.is_import_path(kind):
        raise ConfigError(
            f"--policy.type={kind} plays no checkpoint of lerobot-train; right is lerobot, or a class of yours"
        )
    options = {name: value for name, value in choice.options.items() if name != "python"}
    return replace(choice, type="lerobot" if kind == "lerobot" else kind, path=TO_COME, options=options)
