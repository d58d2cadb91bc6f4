"""What the actions of a LeRobot dataset look like, by how far the task has got: spread, pace and number of strategies."""
