"""What a Gymnasium environment looks like, asked of the interpreter that has it.

Only building an environment tells its spaces, and only a step tells what its ``info`` holds. The coordinator, which
imports no simulator, therefore lets another process do both: ``python -m robotrials.benchmarks.gym_probe`` reads a
recipe from standard input and answers on standard output, as JSON.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from robotrials.benchmarks import asking
from robotrials.benchmarks.gym_env import Recipe, make_simulator
from robotrials.benchmarks.gym_layout import IMAGE
from robotrials.benchmarks.gym_success import SuccessRule, find, parse
from robotrials.benchmarks.loaded_code import class_modules, own_code_digest, owners_of
from robotrials.errors import ConfigError
from robotrials.plan.options import nearest
from robotrials.plan.task import ActionSpec, Feature

_TIMEOUT_S = 300
_SEED = 0
_PLAY_S = 30.0  # for a key of info that may come with the last step


@dataclass(frozen=True)
class Look:
    """What was seen. ``max_steps`` and ``fps`` are 0 when the environment has none; ``success`` is the rule, as
    ``--env.success`` writes it, given or found; ``source`` the package that it is from and a hash of code in none."""

    observations: Mapping[str, Feature]
    action: ActionSpec
    max_steps: int
    fps: float
    draws: bool
    success: str
    source: str


def look_at(recipe: Recipe, success: str, python: str | None) -> Look:
    """Build the environment of ``recipe`` in ``python`` (None: this interpreter), in a process of its own.

    Asked again, it answers from memory.

    Raises:
        ConfigError: it cannot be built, cannot be controlled by a vector of numbers, shows nothing, or does not say
            what success is where ``success`` (``--env.success``) says it, or anywhere when that is empty.
    """
    return _ask(json.dumps({"success": success, "recipe": asdict(recipe)}, sort_keys=True), python)


@functools.lru_cache(maxsize=64)
def _ask(question: str, python: str | None) -> Look:
    answer = asking.ask(__name__, question, python, _flag(json.loads(question)), _TIMEOUT_S)
    features = {key: Feature(tuple(shape), dtype) for key, (shape, dtype) in answer.pop("observations").items()}
    action = answer.pop("action")
    return Look(features, ActionSpec(action["dim"], tuple(action["low"]), tuple(action["high"])), **answer)


def look_here(recipe: Recipe, success: str) -> dict[str, Any]:
    """The answer, in the process that builds the environment; as JSON has it.

    Raises:
        ConfigError: as ``look_at`` does.
        ContractError: it does not show what its observation space declares.
    """
    env = make_simulator(recipe)
    layout = recipe.lay_out(env.observation_space)
    features = {key: (feature.shape, feature.dtype) for key, feature in layout.features.items()}
    action = _action(env.action_space, recipe.id)
    first, *_ = env.reset(seed=_SEED)
    layout.read(first, tuple(layout.images))
    rule = parse(success)
    env.action_space.seed(_SEED)
    if rule is None:
        success = f"info:{find(env.step(env.action_space.sample())[4], f'--env.id={recipe.id}').key}"
    else:
        _check_success(env, rule, recipe.id)
    draws = env.render_mode == "rgb_array"
    if recipe.draws:
        if not draws or IMAGE in features:
            why = "has an image of that name" if draws else "draws nothing"
            raise ConfigError(f"--env.image_from_render: {recipe.id} {why}")
        features[IMAGE] = (env.render().shape, "uint8")
    answer = {
        "observations": features,
        "action": action,
        "max_steps": int((env.spec.max_episode_steps if env.spec else 0) or 0),
        "fps": float(env.metadata.get("render_fps") or 0),
        "draws": draws,
        "success": success,
        "source": _source(env, recipe.imports),
    }
    env.close()
    return answer


def _action(space: Any, name: str) -> dict[str, Any]:
    import numpy as np

    if not all(hasattr(space, bound) for bound in ("low", "high")):
        raise ConfigError(f"--env.id={name}: its actions are {space}; right is a Box, a vector of numbers")
    low, high = (np.asarray(bound, dtype=float).reshape(-1).tolist() for bound in (space.low, space.high))
    return {"dim": len(low), "low": low, "high": high}


def _source(env: Any, imports: Sequence[str]) -> str:
    """``distribution version`` of the environment's class, and ``sha256:...`` of all code that belongs to none."""
    owners = owners_of(type(env.unwrapped).__module__)
    digest = own_code_digest([*class_modules(env), *imports])
    return ", ".join([*owners, digest] if digest else owners) or "unknown"


def _check_success(env: Any, rule: SuccessRule, name: str) -> None:
    """Whether ``info`` has the key that ``--env.success`` names. One that is missing may still come with the last step:
    the episode is played on, until it ends or has taken long enough.

    Raises:
        ConfigError: info does not have it, or it holds no truth value.
    """
    if rule.key is None:
        return
    until, ended = time.monotonic() + _PLAY_S, False
    while not ended and time.monotonic() < until:
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        ended = bool(terminated or truncated)
        if rule.key in info:
            rule.read(float(reward), bool(terminated), bool(truncated), info)
            return
    if ended:
        keys = sorted(map(str, info))
        raise ConfigError(
            f"--env.success=info:{rule.key}: the info of {name} has no such key{nearest(rule.key, keys)}, not with the "
            f"last step of an episode, either; it holds {', '.join(keys) or 'nothing'}"
        )


def _flag(question: dict[str, Any]) -> str:
    return f"--env.id={question['recipe']['id']}"


def _look(question: dict[str, Any]) -> dict[str, Any]:
    recipe = question["recipe"]
    for name in ("imports", "state", "environment_state", "ignore"):
        recipe[name] = tuple(recipe[name])
    return look_here(Recipe(**recipe), question["success"])


if __name__ == "__main__":
    asking.answer(_look, _flag)
