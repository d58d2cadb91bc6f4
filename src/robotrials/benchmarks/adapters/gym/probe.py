"""What a Gymnasium environment looks like, asked of the interpreter that has it.

Only building an environment tells its spaces, and only a step tells what its ``info`` holds. The coordinator, which
imports no simulator, therefore lets another process do both: ``python -m robotrials.benchmarks.adapters.gym.probe`` is
given a recipe and answers as JSON (``asking``).
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from robotrials.benchmarks import asking
from robotrials.benchmarks.adapters.gym.answers import Step, read_reset, read_step, require_gymnasium
from robotrials.benchmarks.adapters.gym.env import Recipe, make_simulator, reader_of
from robotrials.benchmarks.adapters.gym.layout import IMAGE
from robotrials.benchmarks.adapters.gym.picture import DRAWS, FILM, picture_of
from robotrials.benchmarks.adapters.gym.reading import ObservationReader
from robotrials.benchmarks.adapters.gym.success import SuccessRule, find, missing_key, parse
from robotrials.benchmarks.loaded_code import class_modules, own_code_digest, owners_of
from robotrials.errors import ConfigError
from robotrials.plan.task import ActionSpec, Feature

_TIMEOUT_S = 300
_SEED = 0
_PLAY_S = 30.0  # for a key of info that may come with the last step


@dataclass(frozen=True)
class ProbedEnv:
    """What was seen. ``max_steps`` and ``fps`` are 0 when the environment has none; ``success`` is the rule, as
    ``--env.success`` writes it, given or found; ``source`` the package that it is from and a hash of code in none."""

    observations: Mapping[str, Feature]
    action: ActionSpec
    max_steps: int
    fps: float
    draws: bool
    success: str
    source: str


def look_at(recipe: Recipe, success: str, python: str | None) -> ProbedEnv:
    """Build the environment of ``recipe`` in ``python`` (None: this interpreter), in a process of its own.

    Asked again, it answers from memory.

    Raises:
        ConfigError: it cannot be built, cannot be controlled by a vector of numbers, shows nothing, or does not say
            what success is where ``success`` (``--env.success``) says it, or anywhere when that is empty.
    """
    return _ask(json.dumps({"success": success, "recipe": asdict(recipe)}, sort_keys=True), python)


@functools.lru_cache(maxsize=64)
def _ask(question: str, python: str | None) -> ProbedEnv:
    answer = asking.ask(__name__, question, python, _flag(json.loads(question)), _TIMEOUT_S)
    features = {key: Feature(tuple(shape), dtype) for key, (shape, dtype) in answer.pop("observations").items()}
    action = answer.pop("action")
    return ProbedEnv(features, ActionSpec(action["dim"], tuple(action["low"]), tuple(action["high"])), **answer)


def look_here(recipe: Recipe, success: str, closing: ExitStack) -> dict[str, Any]:
    """The answer, in the process that builds the environment, which ``closing`` closes; as JSON has it.

    Raises:
        ConfigError: as ``look_at`` does.
        ContractError: its answers are not Gymnasium's, or not what its spaces declare.
    """
    env = make_simulator(recipe)
    closing.callback(env.close)
    reader = reader_of(env, recipe)
    features = {key: (feature.shape, feature.dtype) for key, feature in reader.layout.features.items()}
    action = _action(env.action_space, recipe.id)
    step = _first_step(env, reader, recipe.id)
    rule = parse(success)
    if rule is None:
        success = f"info:{find(step.info, f'--env.id={recipe.id}').key}"
    else:
        _check_success(env, step, rule, recipe.id)
    draws = env.render_mode in DRAWS
    if recipe.draws:
        features[IMAGE] = (_picture(env, recipe, IMAGE in features).shape, "uint8")
    return {
        "observations": features,
        "action": action,
        "max_steps": int((env.spec.max_episode_steps if env.spec else 0) or 0),
        "fps": float(env.metadata.get("render_fps") or 0),
        "draws": draws,
        "success": success,
        "source": _source(env, recipe.imports),
    }


def _first_step(env: Any, reader: ObservationReader, name: str) -> Step:
    """What the first step returns; it and the reset before it are what the environment declares."""
    env.action_space.seed(_SEED)
    try:
        reader.require(read_reset(env.reset(seed=_SEED), name))
        step = read_step(env.step(env.action_space.sample()), name)
    except (TypeError, ValueError):
        require_gymnasium(env.unwrapped, name, _SEED)
        raise
    reader.require(step.observation)
    return step


def _picture(env: Any, recipe: Recipe, taken: bool) -> Any:
    """What ``--env.image_from_render`` observes.

    Raises:
        ConfigError: there is no such picture, or the observation has one of its name.
    """
    mode = env.render_mode
    picture = picture_of(env.render(), recipe.id, mode == FILM) if mode in DRAWS else None
    if picture is None or taken:
        why = "has an image of that name" if taken else "draws nothing"
        raise ConfigError(f"--env.image_from_render: {recipe.id} {why}")
    return picture


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


def _check_success(env: Any, step: Step, rule: SuccessRule, name: str) -> None:
    """Whether ``info`` has the key that ``--env.success`` names. One that is missing may still come with the last step:
    the episode is played on, until it ends or has taken long enough.

    Raises:
        ConfigError: info does not have it, or it holds no truth value.
    """
    if rule.key is None:
        return
    until, ended = time.monotonic() + _PLAY_S, False
    while True:
        ended = step.terminated or step.truncated
        if rule.key in step.info:
            rule.read(step.reward, step.terminated, step.truncated, step.info)
            return
        if ended or time.monotonic() > until:
            break
        step = read_step(env.step(env.action_space.sample()), name)
    if ended:
        raise missing_key(rule.key, step.info, name)


def _flag(question: dict[str, Any]) -> str:
    return f"--env.id={question['recipe']['id']}"


def _look(question: dict[str, Any], closing: ExitStack) -> dict[str, Any]:
    recipe = question["recipe"]
    for name in ("imports", "state", "environment_state", "ignore"):
        recipe[name] = tuple(recipe[name])
    return look_here(Recipe(**recipe), question["success"], closing)


if __name__ == "__main__":
    asking.answer(_look, _flag)
