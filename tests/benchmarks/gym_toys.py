"""Small Gymnasium environments that say things in different ways; importing this module registers them."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Point(gymnasium.Env):  # type: ignore[misc]
    """Walk from a random start to the origin. It remembers how often it was reset, unless it is told to forget."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(
        self, says: str = "success", remembers: bool = False, late: int = 0, render_mode: str | None = None
    ) -> None:
        self.late, self.steps = late, 0
        self.says, self.remembers, self.render_mode = says, remembers, render_mode
        self.resets, self.drawn = 0, 0
        self.action_space = spaces.Box(-1.0, 1.0, (1, 2), np.float32)
        self.observation_space = spaces.Dict(
            {
                "robot": spaces.Dict({"at": spaces.Box(-9.0, 9.0, (2,)), "speed": spaces.Box(-9.0, 9.0, (1,))}),
                "goal": spaces.Box(-9.0, 9.0, (2,), np.float64),
                "mode": spaces.Discrete(3),
                "wrist": spaces.Box(0, 255, (3, 6, 8), np.uint8),
            }
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets += 1
        self.steps = 0
        self.at = self.np_random.uniform(-1.0, 1.0, 2)
        if self.remembers:
            self.at = self.at + self.resets
        return self._seen(0.0), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action.shape == (1, 2)
        assert action.dtype == np.float32
        self.at = self.at + 0.1 * action[0]
        distance = float(np.linalg.norm(self.at))
        self.steps += 1
        silent = self.says == "nothing" or self.steps < self.late
        info = {} if silent else {self.says: np.float64(distance < 0.2), "distance": distance}
        return self._seen(1.0), -distance, self.says == "nothing" and distance < 0.2, False, info

    def render(self) -> Any:
        self.drawn += 1
        return np.full((4, 5, 3), 10 * self.resets, np.uint8)

    def _seen(self, speed: float) -> dict[str, Any]:
        wrist = np.zeros((3, 6, 8), np.uint8)
        wrist[0] = 255
        robot = {"at": self.at.astype(np.float32), "speed": np.full(1, speed, np.float32)}
        return {"robot": robot, "goal": np.zeros(2), "mode": 1, "wrist": wrist}


class Blind(Point):
    """Draws nothing."""

    metadata = {"render_modes": [], "render_fps": 20}  # noqa: RUF012


class Odd(Point):
    """A little off in the way that ``odd`` names."""

    def __init__(self, odd: str = "", **given: Any) -> None:
        super().__init__(**given)
        self.odd = odd
        if odd == "left behind":
            subprocess.Popen(["sleep", "90"])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        seen, info = super().reset(seed=seed)
        if self.odd == "unreachable at reset" and seed and self.at[0] > 0:
            raise OutOfReach("no path to the target")
        return seen if self.odd == "reset without info" else (seen, info)

    def step(self, action: Any) -> Any:
        seen, reward, terminated, truncated, info = super().step(action)
        if self.odd == "four values":
            return seen, reward, terminated, info
        if self.odd == "no reward":
            return seen, None, terminated, truncated, info
        if self.odd == "list of info":
            return seen, reward, terminated, truncated, [info]
        if self.odd == "arrays of one":
            return seen, np.array([reward]), np.array([terminated]), np.array([truncated]), info
        if self.odd == "unreachable" and self.steps == 2 and self.at[0] > 0:
            raise OutOfReach("no path to the target")
        return seen, reward, terminated, truncated, info

    def _seen(self, speed: float) -> dict[str, Any]:
        seen = super()._seen(speed)
        if self.odd == "missing entry":
            del seen["goal"]
        if self.odd == "entry of none":
            seen["goal"] = None
        return seen

    def render(self) -> Any:
        picture = super().render()
        drawn = {"none": None, "float": picture / 255.0, "two": [picture, picture], "grey": picture[..., 0]}
        if self.odd == "broken":
            raise OSError("EGL is gone")
        return drawn.get(self.odd, picture)

    def close(self) -> None:
        if self.odd == "close raises":
            raise OSError("EGL is gone")
        if self.odd == "close ends the process":
            os._exit(0)


class OutOfReach(Exception):  # noqa: N818  as a simulator calls it
    """What a simulator means as a failure."""


class Seedless(Point):
    """``reset`` takes no seed."""

    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class Whole(gymnasium.Env):  # type: ignore[misc]
    """Takes whole numbers, and shows the last ones."""

    action_space = spaces.Box(-9, 9, (3,), np.int64)
    observation_space = spaces.Box(-9.0, 9.0, (3,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action.dtype == np.int64
        return action.astype(np.float32), 0.0, False, False, {"success": False}


gymnasium.register("Odd-v0", Odd, max_episode_steps=30)
gymnasium.register("Seedless-v0", Seedless, max_episode_steps=30)
gymnasium.register("Whole-v0", Whole, max_episode_steps=5)
gymnasium.register("Point-v0", Point, max_episode_steps=30)
gymnasium.register("Blind-v0", Blind, max_episode_steps=30)
gymnasium.register("Endless-v0", Point)
