"""Does what the policy needs match what the benchmark gives? Asked before any simulator is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robotrials.errors import ContractError
from robotrials.plan.task import Feature, TaskSpec

ALWAYS_THERE = ("task",)
"""Keys every observation has: the instruction."""


def env_key_of(policy_key: str, rename_map: Mapping[str, str]) -> str:
    """The benchmark's key behind ``policy_key``; ``rename_map`` maps the benchmark's names to the policy's."""
    for env_key, renamed in rename_map.items():
        if renamed == policy_key:
            return env_key
    return policy_key


def check_renames(tasks: Sequence[TaskSpec], rename_map: Mapping[str, str]) -> None:
    """
    Raises:
        ContractError: a rename of a key that a task does not have.
    """
    for task in tasks:
        for env_key in rename_map:
            if env_key not in task.observations:
                raise ContractError(
                    f"--rename_map renames {env_key}, which {task.name} does not have; it has: {_offer(task)}"
                )


def check_fit(
    policy: str,
    observations: Mapping[str, Feature | None],
    action_dim: int | None,
    tasks: Sequence[TaskSpec],
    rename_map: Mapping[str, str],
) -> None:
    """Compare one policy's needs with every task's offer.

    Raises:
        ContractError: a key that no camera or state provides, another shape, another action size, or a rename of a
            key that does not exist; the message names both sides.
    """
    check_renames(tasks, rename_map)
    for task in tasks:
        offer = _offer(task)
        for key, wanted in observations.items():
            if key in ALWAYS_THERE:
                continue
            env_key = env_key_of(key, rename_map)
            have = task.observations.get(env_key)
            if have is None:
                raise ContractError(
                    f"policy {policy} reads {key}, which {task.name} does not have; it has: {offer}. "
                    'If one of these is meant, rename it: --rename_map=\'{"<benchmark key>": "' + key + "\"}'"
                )
            if wanted is not None and wanted.shape != have.shape:
                raise ContractError(f"policy {policy} reads {key} as {wanted}, but {task.name} gives {env_key} {have}")
        if action_dim is not None and action_dim != task.action.dim:
            raise ContractError(
                f"policy {policy} gives actions of {action_dim} numbers, but {task.name} takes {task.action.dim}"
            )


def _offer(task: TaskSpec) -> str:
    return ", ".join(f"{key} {feature}" for key, feature in task.observations.items())
