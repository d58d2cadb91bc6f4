"""The tasks of robosuite 1.5.2 with Panda arms: what each asks for, and the sizes it trades in.

robosuite has no sentences for its tasks; these are ours. Sizes were read off the built environments.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RobosuiteTask:
    """``arms`` is the number of Pandas, ``gripper`` that of the gripper joints of each; ``proprio`` and ``objects`` are
    the sizes of robosuite's ``robot<i>_proprio-state`` and ``object-state``."""

    instruction: str
    objects: int
    arms: int = 1
    gripper: int = 2
    proprio: int = 50

    @property
    def action_dim(self) -> int:
        """Per arm an offset of the hand (position, axis-angle) and an effort of the gripper, if it has one."""
        return self.arms * (7 if self.gripper else 6)

    @property
    def eef_dim(self) -> int:
        """Per arm: position of the hand (3), its quaternion (x, y, z, w), joints of the gripper."""
        return self.arms * (7 + self.gripper)


_NUT, _NUTS = "Put the {} nut onto the {} peg.", "Put each nut onto the peg of its shape."
_BIN = "Pick up the {} and put it into its compartment of the bin."

TASKS = {
    "Lift": RobosuiteTask("Lift the cube off the table.", 10),
    "Stack": RobosuiteTask("Put the red cube on top of the green cube.", 23),
    "NutAssembly": RobosuiteTask(_NUTS, 28),
    "NutAssemblySingle": RobosuiteTask("Put the nut onto the peg of its shape.", 15),
    "NutAssemblySquare": RobosuiteTask(_NUT.format("square", "square"), 14),
    "NutAssemblyRound": RobosuiteTask(_NUT.format("round", "round"), 14),
    "PickPlace": RobosuiteTask("Put each object into its compartment of the bin.", 56),
    "PickPlaceSingle": RobosuiteTask(_BIN.format("object"), 15),
    "PickPlaceMilk": RobosuiteTask(_BIN.format("milk carton"), 14),
    "PickPlaceBread": RobosuiteTask(_BIN.format("bread"), 14),
    "PickPlaceCereal": RobosuiteTask(_BIN.format("cereal box"), 14),
    "PickPlaceCan": RobosuiteTask(_BIN.format("can"), 14),
    "Door": RobosuiteTask("Turn the handle and open the door.", 14),
    "Wipe": RobosuiteTask("Wipe the dirt off the table.", 8, gripper=0, proprio=47),
    "ToolHang": RobosuiteTask("Put the frame into the stand and hang the tool on it.", 44),
    "TwoArmLift": RobosuiteTask("Lift the pot by its two handles and keep it level.", 19, arms=2),
    "TwoArmPegInHole": RobosuiteTask("Put the peg through the hole of the plate.", 17, arms=2, gripper=0, proprio=46),
    "TwoArmHandover": RobosuiteTask("Pick up the hammer with one arm and hand it to the other.", 16, arms=2),
    "TwoArmTransport": RobosuiteTask(
        "Put the trash from the target bin into the trash bin, and the hammer from the start bin into the target bin.",
        41,
        arms=2,
    ),
}

GROUPS = {
    "all": tuple(TASKS),
    "single_arm": tuple(name for name, task in TASKS.items() if task.arms == 1),
    "two_arm": tuple(name for name, task in TASKS.items() if task.arms == 2),
}
