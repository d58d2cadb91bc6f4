"""A LeRobot plugin as a user would install it: a policy nobody looked at, with every kind of state in its object."""

from .configuration_drifter import DrifterConfig

__all__ = ["DrifterConfig"]
