"""From a Gymnasium observation space to LeRobot's names.

Cameras (``gym_cameras``) become ``observation.image`` or ``observation.images.<name>``; vectors of numbers are put
together to ``observation.state`` and ``observation.environment_state``. The keys that LeRobot's own environments use
(``pixels``, ``agent_pos``, ``environment_state``) mean what they mean there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robotrials.benchmarks.adapters.gym.cameras import Camera, camera_of
from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError, ContractError
from robotrials.plan.options import nearest
from robotrials.plan.task import Feature

IMAGE, IMAGES = "observation.image", "observation.images."
STATE, FULL_STATE = "observation.state", "observation.environment_state"

Path = tuple[str, ...]
"""Keys from the observation down to an entry (of a tuple, its position); empty: the observation itself."""


@dataclass(frozen=True)
class ObservationLayout:
    """``images``: key to entry and how it is read; ``vectors``: key to the entries joined in it."""

    images: Mapping[str, tuple[Path, Camera]] = field(default_factory=dict)
    vectors: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    features: Mapping[str, Feature] = field(default_factory=dict)

    def read(self, raw: Any, cameras: Sequence[str]) -> Observation:
        """The vectors, float32 (D,), and those images of ``cameras`` that are in the observation, uint8 (H, W, C).

        Raises:
            ContractError: an entry is missing, or is not what the space declares.
        """
        observation: Observation = {}
        for key, paths in self.vectors.items():
            parts = [_numbers(_at(raw, path), path) for path in paths]
            observation[key] = np.concatenate(parts).astype(np.float32)
        for key in cameras:
            if key in self.images:
                path, picture = self.images[key]
                observation[key] = picture.read(_at(raw, path))
        return observation


def lay_out(
    space: Any, state: Sequence[str] = (), environment_state: Sequence[str] = (), ignore: Sequence[str] = ()
) -> ObservationLayout:
    """The layout of ``space``, a ``gymnasium.spaces`` Box, Dict or Tuple.

    ``state`` and ``environment_state`` name the entries joined there, in that order (``a/b`` for b within a), whatever
    they look like. When neither is given, ``agent_pos`` and ``environment_state`` are taken where the space has
    ``agent_pos``, else ``observation.state`` holds every vector in the order of the space. Entries that ``ignore``
    names are left out.

    Raises:
        ConfigError: an entry that is not there or is no vector, one that looks like a camera and cannot be converted,
            two entries that would have one name, or nothing that could be observed.
    """
    entries = _without(dict(_entries(space, ())), ignore)
    named = {*state, *environment_state}
    pictures = {
        path: picture
        for path, box in entries.items()
        if _name(path) not in named and (picture := camera_of(_title(path), box, _remedy(path))) is not None
    }
    numbers = _name_vectors([path for path, box in entries.items() if path not in pictures and _is_vector(box)])
    images = _name_images(pictures)
    vectors = _choose(numbers, state, environment_state)
    features = {key: picture.feature for key, (_, picture) in images.items()}
    for key, paths in vectors.items():
        features[key] = Feature((sum(_size(entries[path]) for path in paths),))
    if not features:
        raise ConfigError(f"nothing can be observed: there is no image and no vector of numbers in {space}")
    return ObservationLayout(images, vectors, features)


def _entries(space: Any, path: Path) -> list[tuple[Path, Any]]:
    children = getattr(space, "spaces", None)
    if isinstance(children, (tuple, list)):
        children = dict(enumerate(children))
    if not isinstance(children, Mapping):
        return [(path, space)]
    return [entry for key, child in children.items() for entry in _entries(child, (*path, str(key)))]


def _without(entries: Mapping[Path, Any], ignore: Sequence[str]) -> dict[Path, Any]:
    names = [_name(path) for path in entries]
    for name in ignore:
        if name not in names:
            raise ConfigError(f"--env.ignore={name}: no such entry{nearest(name, names)}; {', '.join(names)}")
    return {path: box for path, box in entries.items() if _name(path) not in ignore}


def _remedy(path: Path) -> str:
    if not path:
        return "Convert it in a wrapper of the environment"
    name = _name(path)
    return (
        f"Leave it out with --env.ignore={name}, take it as numbers with --env.state={name},..., or convert it in a "
        "wrapper of the environment"
    )


def _choose(
    numbers: Mapping[str, Path], state: Sequence[str], environment_state: Sequence[str]
) -> dict[str, tuple[Path, ...]]:
    asked = {STATE: tuple(state), FULL_STATE: tuple(environment_state)}
    if not state and not environment_state:
        if "agent_pos" in numbers:
            asked = {
                STATE: ("agent_pos",),
                FULL_STATE: ("environment_state",) if "environment_state" in numbers else (),
            }
        else:
            asked = {STATE: tuple(numbers)}
    for key, names in asked.items():
        for name in names:
            if name not in numbers:
                flag = "--env.state" if key == STATE else "--env.environment_state"
                known = "what is observed has no names: leave the flag out" if "" in numbers else ", ".join(numbers)
                raise ConfigError(f"{flag}={name}: no such vector{nearest(name, numbers)}; {known or 'there is none'}")
    return {key: tuple(numbers[name] for name in names) for key, names in asked.items() if names}


def _name_vectors(paths: Sequence[Path]) -> dict[str, Path]:
    named: dict[str, Path] = {}
    for path in paths:
        if _name(path) in named:
            raise ConfigError(f"two entries are called {_name(path)}: {named[_name(path)]} and {path}; rename one")
        named[_name(path)] = path
    return named


def _name_images(pictures: Mapping[Path, Camera]) -> dict[str, tuple[Path, Camera]]:
    named: dict[str, tuple[Path, Camera]] = {}
    for path, picture in pictures.items():
        inner = path[1:] if path[:1] == ("pixels",) else path
        key = IMAGES + "_".join(inner) if inner else IMAGE
        if key in named:
            raise ConfigError(
                f"{_name(named[key][0])} and {_name(path)} would both be {key}: rename one of these entries, in a "
                "wrapper of the environment"
            )
        named[key] = (path, picture)
    return named


def _is_vector(box: Any) -> bool:
    # Discrete has a dtype and the shape (), and is an index, not a quantity; so is MultiDiscrete. Neither has bounds.
    is_box = all(hasattr(box, name) for name in ("low", "high"))
    return is_box and np.dtype(box.dtype).kind in "biuf"


def _size(box: Any) -> int:
    return int(np.prod(box.shape))


def _name(path: Path) -> str:
    return "/".join(path)


def _title(path: Path) -> str:
    return _name(path) or "the observation"


def _numbers(value: Any, path: Path) -> np.ndarray:
    numbers = np.asarray(value).reshape(-1)
    if numbers.dtype.kind not in "biuf":
        where = f"{_name(path)} of the environment's observation" if path else "the environment's observation"
        raise ContractError(f"{where} is {value!r:.80}, not numbers")
    return numbers


def _at(raw: Any, path: Path) -> Any:
    for depth, key in enumerate(path):
        try:
            raw = raw[int(key)] if isinstance(raw, (tuple, list)) else raw[key]
        except (KeyError, IndexError, TypeError):
            missing = _name(path[: depth + 1])
            raise ContractError(f"the environment's observation lacks {missing}, which its space declares") from None
    return raw
