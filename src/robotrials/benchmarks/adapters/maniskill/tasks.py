"""The tasks of ManiSkill 3 (mani-skill 3.0.1) that need no download, as the coordinator knows them.

Everything here was read from the simulator (a test compares): step limit, robot, cameras, length of the flat state
of ``obs_mode="state"``. ManiSkill has no language; the sentences are ours, in the words of its task descriptions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robotrials.plan.task import ActionSpec

CONTROL_HZ = 20.0

BASE, HAND = "base_camera", "hand_camera"

_JOINTS = 7


@dataclass(frozen=True)
class ManiSkillTask:
    """``max_steps`` is ManiSkill's own limit; ``state`` the length of its flat state; ``expert`` the name of its motion
    planner's module; ``reward`` the mode that ``auto`` means; ``gripper`` is False for the robot that holds a stick.

    ``reshapes`` tells that every episode builds its objects anew, at some 0.2 CPU seconds.
    """

    max_steps: int
    state: int
    instruction: str
    cameras: tuple[str, ...] = (BASE,)
    expert: str = ""
    reward: str = "normalized_dense"
    gripper: bool = True
    reshapes: bool = False

    @property
    def qpos(self) -> int:
        """Joint positions of the robot: seven of the arm, two of the gripper's fingers."""
        return _JOINTS + 2 * self.gripper


TASKS = {
    "PickCube-v1": ManiSkillTask(
        50, 42, "Pick up the red cube and move it to the green goal position.", expert="pick_cube"
    ),
    "PushCube-v1": ManiSkillTask(50, 35, "Push the blue cube into the target circle.", expert="push_cube"),
    "StackCube-v1": ManiSkillTask(
        50, 48, "Pick up the red cube and stack it on top of the green cube.", (BASE, HAND), "stack_cube"
    ),
    "PegInsertionSide-v1": ManiSkillTask(
        100,
        43,
        "Pick up the peg and insert its orange end into the hole of the box.",
        (BASE, HAND),
        "peg_insertion_side",
        reshapes=True,
    ),
    "PlugCharger-v1": ManiSkillTask(
        200, 46, "Pick up the charger and plug it into the receptacle.", (BASE, HAND), "plug_charger", "sparse"
    ),
    "LiftPegUpright-v1": ManiSkillTask(
        50, 32, "Lift the peg and stand it upright on the table.", expert="lift_peg_upright"
    ),
    "PullCube-v1": ManiSkillTask(50, 35, "Pull the blue cube into the target circle.", expert="pull_cube"),
    "PokeCube-v1": ManiSkillTask(50, 54, "Pick up the peg and poke the cube with it into the target circle."),
    "RollBall-v1": ManiSkillTask(80, 44, "Push the ball so that it rolls to the goal at the other end of the table."),
    "PushT-v1": ManiSkillTask(100, 31, "Push the T-shaped block onto the T-shaped target.", gripper=False),
    "PlaceSphere-v1": ManiSkillTask(
        50, 39, "Pick up the blue sphere and place it into the bin.", expert="place_sphere"
    ),
    "PullCubeTool-v1": ManiSkillTask(
        100, 39, "Pick up the L-shaped tool and pull the cube within reach with it.", expert="pull_cube_tool"
    ),
    "StackPyramid-v1": ManiSkillTask(
        250,
        64,
        "Place the red cube next to the green cube and stack the blue cube on top of both.",
        (BASE, HAND),
        "stack_pyramid",
        "sparse",
    ),
}

GROUPS = {"all": tuple(TASKS), "experts": tuple(name for name, task in TASKS.items() if task.expert)}

EXPERT_CONTROL = "pd_joint_pos"
"""The control mode in which ManiSkill's motion planners act."""

_LOW = (-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973)
_HIGH = (2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973)
_POSE = (2.0,) * 3 + (2 * np.pi,) * 3


def _unit(n: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return (-1.0,) * n, (1.0,) * n


# The arm's part of an action; the gripper's one number follows the position, before velocities.
_ARM: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "pd_joint_delta_pos": _unit(7),
    "pd_joint_pos": (_LOW, _HIGH),
    "pd_ee_delta_pos": _unit(3),
    "pd_ee_delta_pose": _unit(6),
    "pd_ee_pose": (tuple(-x for x in _POSE), _POSE),
    "pd_joint_target_delta_pos": _unit(7),
    "pd_ee_target_delta_pos": _unit(3),
    "pd_ee_target_delta_pose": _unit(6),
    "pd_joint_vel": _unit(7),
    "pd_joint_pos_vel": (_LOW, _HIGH),
    "pd_joint_delta_pos_vel": _unit(7),
}
CONTROL_MODES = tuple(_ARM)


def action_spec(control_mode: str, gripper: bool) -> ActionSpec:
    """The action of a Panda arm in one of ``CONTROL_MODES``, with or without a gripper (1 opens, -1 closes).

    The bounds are float32 numbers, as the simulator's are.
    """
    low, high = _ARM[control_mode]
    if gripper:
        low, high = (*low, -1.0), (*high, 1.0)
    if control_mode in ("pd_joint_pos_vel", "pd_joint_delta_pos_vel"):
        low, high = low + (-1.0,) * _JOINTS, high + (1.0,) * _JOINTS
    return ActionSpec(len(low), _float32(low), _float32(high))


def canonical(name: str) -> str:
    """``PickCube`` and ``PickCube-v1`` are one task; groups keep their name."""
    name = name.strip()
    return f"{name}-v1" if f"{name}-v1" in TASKS else name


def _float32(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(float(np.float32(value)) for value in values)
