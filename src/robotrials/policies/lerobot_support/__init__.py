"""What stands behind ``--policy.type=lerobot``. ``checkpoint`` and ``features`` import without torch and LeRobot."""
