"""What the actions of a LeRobot dataset look like, over the course of the task: spread, pace, ways to move."""
