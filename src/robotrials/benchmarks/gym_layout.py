"""From a Gymnasium observation space to LeRobot's names.

Images (uint8, three axes) become ``observation.image`` or ``observation.images.<name>``; vectors of numbers are put
together to ``observation.state`` and ``observation.environment_state``. The keys that LeRobot's own environments use
(``pixels``, ``agent_pos``, ``environment_state``) mean what they mean there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError
from robotrials.plan.options import nearest
from robotrials.plan.task import Feature

IMAGE, IMAGES = "observation.image", "observation.images."
STATE, FULL_STATE = "observation.state", "observation.environment_state"

Path = tuple[str, ...]
"""Keys from the observation down to an entry; empty: the observation itself."""


@dataclass(frozen=True)
class Layout:
    """``images``: key to entry, and whether its channels come first; ``vectors``: key to the entries joined in it."""

    images: Mapping[str, tuple[Path, bool]] = field(default_factory=dict)
    vectors: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    features: Mapping[str, Feature] = field(default_factory=dict)

    def read(self, raw: Any, cameras: Sequence[str]) -> Observation:
        """The vectors, float32 (D,), and those images of ``cameras`` that are in the observation, uint8 (H, W, C)."""
        observation: Observation = {}
        for key, paths in self.vectors.items():
            parts = [np.asarray(_at(raw, path)).reshape(-1) for path in paths]
            observation[key] = np.concatenate(parts).astype(np.float32)
        for key in cameras:
            if key in self.images:
                path, channels_first = self.images[key]
                picture = np.asarray(_at(raw, path))
                observation[key] = np.array(np.moveaxis(picture, 0, -1) if channels_first else picture, order="C")
        return observation


def lay_out(space: Any, state: Sequence[str] = (), environment_state: Sequence[str] = ()) -> Layout:
    """The layout of ``space``, a ``gymnasium.spaces`` Box or Dict.

    ``state`` and ``environment_state`` name the entries joined there, in that order (``a/b`` for b within a). When
    neither is given, ``agent_pos`` and ``environment_state`` are taken where the space has ``agent_pos``, else
    ``observation.state`` holds every vector in the order of the space.

    Raises:
        ConfigError: an entry that is not there or is no vector, two entries that would have one name, or nothing that
            could be observed.
    """
    entries = dict(_entries(space, ()))
    pictures = {path: box for path, box in entries.items() if _is_image(box)}
    numbers = _name_vectors([path for path, box in entries.items() if path not in pictures and _is_vector(box)])
    images = _name_images(pictures)
    vectors = _choose(numbers, state, environment_state)
    features = {key: Feature(_shape(pictures[path], first), "uint8") for key, (path, first) in images.items()}
    for key, paths in vectors.items():
        features[key] = Feature((sum(_size(entries[path]) for path in paths),))
    if not features:
        raise ConfigError(f"nothing can be observed: there is no image and no vector of numbers in {space}")
    return Layout(images, vectors, features)


def _entries(space: Any, path: Path) -> list[tuple[Path, Any]]:
    children = getattr(space, "spaces", None)
    if not isinstance(children, Mapping):
        return [(path, space)]
    return [entry for key, child in children.items() for entry in _entries(child, (*path, str(key)))]


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


def _name_images(pictures: Mapping[Path, Any]) -> dict[str, tuple[Path, bool]]:
    named: dict[str, tuple[Path, bool]] = {}
    for path, box in pictures.items():
        inner = path[1:] if path[:1] == ("pixels",) else path
        key = IMAGES + "_".join(inner) if inner else IMAGE
        if key in named:
            raise ConfigError(
                f"{_name(named[key][0])} and {_name(path)} would both be {key}: rename one of these entries, in a "
                "wrapper of the environment"
            )
        named[key] = (path, _channels_first(box))
    return named


def _is_image(box: Any) -> bool:
    return np.dtype(getattr(box, "dtype", None) or "O") == np.uint8 and len(box.shape or ()) == 3


def _is_vector(box: Any) -> bool:
    # Discrete has a dtype and the shape (), and is an index, not a quantity; so is MultiDiscrete.
    is_box = all(hasattr(box, name) for name in ("low", "high"))
    return is_box and np.dtype(box.dtype).kind in "biuf" and len(box.shape) >= 1


def _channels_first(box: Any) -> bool:
    return box.shape[0] in (1, 3, 4) and box.shape[-1] not in (1, 3, 4)


def _shape(box: Any, channels_first: bool) -> tuple[int, ...]:
    shape = tuple(int(n) for n in box.shape)
    return (*shape[1:], shape[0]) if channels_first else shape


def _size(box: Any) -> int:
    return int(np.prod(box.shape))


def _name(path: Path) -> str:
    return "/".join(path)


def _at(raw: Any, path: Path) -> Any:
    for key in path:
        raw = raw[key]
    return raw
