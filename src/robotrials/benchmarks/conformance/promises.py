"""What a benchmark promises to whoever evaluates on it: the exactness of a run stands on these."""

from __future__ import annotations

PROMISES: dict[str, str] = {
    "tasks": "tasks() gives the same tasks each time, with bounds, limits and rates that make sense",
    "instruction": "every task has a sentence that says what to do",
    "shapes": "observe() gives the keys, shapes and dtypes that the task declares, and only the cameras asked for",
    "picture": "render() gives a picture for the video, and not one that is black all over",
    "own arrays": "arrays that were handed out do not change with later steps",
    "same seed": "the same episode twice: identical observations, pictures, rewards and flags",
    "own seed": "episodes with other seeds are other episodes",
    "other episodes": "an episode does not depend on those before it, finished or not",
    "rebuilt": "nor on the environment having been closed and built anew, or another task's",
    "looking": "observe() and render() change nothing, however often they are called",
    "fresh process": "a fresh process plays the same episode",
    "order": "the order of episodes does not matter",
    "clean output": "nothing is printed on stdout or stderr",
    "success": "success is told at every step, true or false, never None; rewards are finite",
    "start": "an episode begins unsolved, and goes on after its first step",
    "step limit": "an episode can be played up to the step limit, and is not cut short before",
    "ending": "what is observed after the last step is of the episode that ended, not of the next",
    "memory": "memory does not grow from episode to episode",
    "close": "close() works, twice, and on an environment that was never reset",
}
"""Name to sentence, in the order in which they are tried."""
