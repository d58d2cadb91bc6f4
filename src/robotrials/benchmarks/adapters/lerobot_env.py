"""A bridge to LeRobot's own environments: any ``EnvConfig`` of LeRobot 0.6, those of plugins included.

``--env.type=lerobot_env --env.config=aloha --env.task=AlohaTransferCube-v0``. Environments are made, observed and
processed by LeRobot as lerobot-eval does, one in each worker; only the loop around them is ours. Workers import LeRobot
and torch for it, and every step draws every camera: where robotrials has the benchmark itself, that is the better way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.foreign.benchmark import ForeignBenchmark
from robotrials.benchmarks.adapters.foreign.readers import Reader
from robotrials.benchmarks.adapters.foreign.single_env import SingleEnv
from robotrials.benchmarks.adapters.gym.cameras import looks_like_camera
from robotrials.benchmarks.adapters.gym.success import SUCCESS_HELP
from robotrials.benchmarks.base import BenchmarkConfig, Observation
from robotrials.environments.installation import GL_LIBRARIES, Installation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.config import option
from robotrials.plan.options import nearest

IMAGE = "observation.image"


@dataclass(frozen=True)
class LeRobotEnvConfig(BenchmarkConfig):
    """``--env.*`` of the bridge."""

    task: str = option("", "the config's task; default: its own")
    config: str = option("", "LeRobot's name of the environment: pusht, aloha, libero, or a plugin's")
    options: Mapping[str, Any] = option({}, "further fields of that config: {obs_type: pixels}")
    plugins: tuple[str, ...] = option((), "modules to import first, because they register it")
    success: str = option("", SUCCESS_HELP)
    ignore: tuple[str, ...] = option((), "entries that are left out, such as a depth camera: depth, pixels/NAME")
    max_steps: int = option(0, "step limit of an episode; 0: the environment's own", least=0)
    fps: float = option(0.0, "control rate in Hz; 0: the config's", least=0)
    rebuild: bool = option(False, "make the environment anew for every episode")
    trust_remote_code: bool = option(False, "for configs that run code of a Hub; --trust_remote_code=true is the same")


class LeRobotEnv(ForeignBenchmark):
    """``--env.type=lerobot_env``."""

    name = "lerobot_env"
    extra = "lerobot"
    modules = ("lerobot", "torch", "gymnasium")
    packages = ("lerobot", "gymnasium", "numpy", "torch", "gym-pusht", "pymunk", "gym-aloha", "metaworld", "mujoco")
    Config = LeRobotEnvConfig
    installation = Installation(
        requirements=("lerobot[pusht,aloha]==0.6.1", "gymnasium==1.4.0"), python=">=3.12,<3.14", system=GL_LIBRARIES
    )

    def __init__(self, config: LeRobotEnvConfig) -> None:
        super().__init__(config)
        if not config.config:
            raise ConfigError(
                "--env.config is needed: LeRobot's name of an environment, such as pusht, aloha or libero"
            )
        self._built_for: Any = None

    def build(self) -> Mapping[str, Mapping[int, Any]]:
        """
        Raises:
            ConfigError: LeRobot knows no such environment or field, or wants code of a Hub that is not trusted.
        """
        from lerobot.envs.factory import make_env

        self._built_for = config = self._config()
        if getattr(config, "hub_path", None) and not self.config.trust_remote_code:
            raise ConfigError(
                f"--env.config={self.config.config} runs code of {config.hub_path}, which may do anything you can do: "
                "if you trust it, add --trust_remote_code=true"
            )
        trust = self.config.trust_remote_code
        made: Mapping[str, Mapping[int, Any]] = make_env(
            config, n_envs=1, use_async_envs=False, trust_remote_code=trust
        )
        return made

    def reader(self, sim: SingleEnv) -> Reader:
        config = self._built_for if self._built_for is not None else self._config()
        return LeRobotReader(config, self.config.ignore)

    def source(self) -> str:
        from importlib.metadata import version

        return f"lerobot {version('lerobot')} {self.config.config}"

    def _config(self) -> Any:
        import importlib

        from lerobot.envs.configs import EnvConfig
        from lerobot.utils.import_utils import register_third_party_plugins

        register_third_party_plugins()
        for module in self.config.plugins:
            importlib.import_module(module)
        known = EnvConfig.get_known_choices()
        name = self.config.config
        if name not in known:
            raise ConfigError(
                f"--env.config={name}: LeRobot has no such environment{nearest(name, known)}; {', '.join(known)}"
            )
        cls = EnvConfig.get_choice_class(name)
        given = {**({"task": self.config.task} if self.config.task else {}), **self.config.options}
        of_class = [field.name for field in fields(cls)]
        for key in given:
            if key not in of_class:
                raise ConfigError(f"--env.options: {name} has no {key}{nearest(key, of_class)}; {', '.join(of_class)}")
        return cls(**given)


class LeRobotReader:
    """LeRobot's own way from an environment to a policy's input, and back to numbers that cross processes.

    Pictures become uint8 (H, W, C) again: LeRobot divides them by 255, which rounding undoes. Entries that ``ignore``
    names (``a/b`` for b within a) are left out.
    """

    def __init__(self, config: Any, ignore: Sequence[str] = ()) -> None:
        self._before, self._after = config.get_env_processors()
        self._ignore = frozenset(ignore)
        self._is_checked = False

    def __call__(self, raw: Any, sentence: str, cameras: Sequence[str] | None) -> Observation:
        import torch
        from lerobot.envs.utils import preprocess_observation

        shown = _without(raw, self._ignore)
        if not self._is_checked:
            _check_cameras(shown)
            self._is_checked = True
        if cameras is not None and not cameras:
            shown.pop("pixels", None)
        with torch.no_grad():
            batch = preprocess_observation(_batch_of_one(shown))
            batch["task"] = [sentence]
            batch = self._before(batch)
        observation: Observation = {}
        for key, value in batch.items():
            if not isinstance(value, torch.Tensor) or not key.startswith("observation"):
                continue
            if key.startswith(IMAGE):
                if cameras is None or key in cameras:
                    observation[key] = _picture(value[0])
            else:
                observation[key] = value[0].cpu().numpy().astype(np.float32).reshape(-1)
        return observation

    def require(self, raw: Any) -> None:
        """LeRobot's own processing has read it by then."""

    def action(self, action: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            done = self._after({"action": torch.from_numpy(np.asarray(action, dtype=np.float32)[None])})
        answer: np.ndarray = done["action"][0].cpu().numpy()
        return answer


def _batch_of_one(raw: Any) -> Any:
    if isinstance(raw, Mapping):
        return {key: _batch_of_one(value) for key, value in raw.items()}
    return np.asarray(raw)[None]


def _without(raw: Mapping[str, Any], ignore: frozenset[str], inside: str = "") -> dict[str, Any]:
    return {
        key: _without(value, ignore, f"{inside}{key}/") if isinstance(value, Mapping) else value
        for key, value in raw.items()
        if f"{inside}{key}" not in ignore
    }


def _check_cameras(shown: Mapping[str, Any]) -> None:
    """
    Raises:
        ConfigError: a camera that LeRobot does not take for one: it would stop at it, or read it as a vector.
    """
    pixels = shown.get("pixels", {})
    cameras = pixels if isinstance(pixels, Mapping) else {"": pixels}
    for name, value in cameras.items():
        picture = np.asarray(value)
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] >= min(picture.shape[:2]):
            raise ConfigError(_refusal(f"pixels/{name}" if name else "pixels", picture))
    for name, value in shown.items():
        if name != "pixels" and isinstance(value, np.ndarray) and looks_like_camera(value.shape, value.dtype):
            raise ConfigError(_refusal(name, value))


def _refusal(name: str, picture: np.ndarray) -> str:
    return (
        f"{name}, {picture.dtype}{list(picture.shape)}, looks like a camera, but LeRobot's cameras are uint8 (H, W, C) "
        f"and in `pixels`. Leave it out with --env.ignore={name}, or convert it in a wrapper of the environment"
    )


def _picture(tensor: Any) -> np.ndarray:
    """(C, H, W) float in [0, 1] to (H, W, C) uint8.

    Raises:
        ContractError: it holds other numbers, which an environment processor must have made.
    """
    levels = np.rint(tensor.cpu().numpy().transpose(1, 2, 0) * 255)
    if not (levels.min() >= 0 and levels.max() <= 255):  # also where one is NaN
        raise ContractError("a processor of the environment made a picture with numbers that are not between 0 and 1")
    return np.ascontiguousarray(levels.astype(np.uint8))
