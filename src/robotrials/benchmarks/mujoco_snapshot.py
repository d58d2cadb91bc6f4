"""A MuJoCo environment put back, bit for bit, to a moment of its past.

Meta-World's tasks carry hidden state from episode to episode: they move bodies and sites of the model, keep attributes
that the next reset reads, and step the physics before they reset it. Seeding alone therefore does not fix the scene.
Putting everything back to one and the same moment first does, by construction, for any task.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

# Tables no task writes to: they are the 20 MB of a 20 MB model.
_CONSTANT = ("bvh_", "hfield_", "mesh_", "oct_", "skin_", "tex_", "names", "paths", "text", "_")
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, np.ndarray, list, tuple, dict)


class Snapshot:
    """``env``'s model, data and plain attributes as they are now; ``env`` is a ``gymnasium`` MujocoEnv.

    Everything is restored in place, since environments, renderers and attributes of tasks hold views of the
    simulator's memory. Attributes that are not plain values (spaces, the renderer, generators) stay as they are.
    """

    def __init__(self, env: Any) -> None:
        import mujoco  # not above: what imports this file is imported where there is no simulator

        self._reset_data = mujoco.mj_resetData
        self._env = env
        self._arrays = [(a, a.copy()) for a in (*_model_arrays(env.model), *data_arrays(env.data))]
        self._time = env.data.time
        plain = {name: value for name, value in vars(env).items() if isinstance(value, _PLAIN)}
        self._views = _simulator_views(plain)
        self._attributes = self._copied(plain)
        self._kept = frozenset(vars(env)) - frozenset(plain)

    def restore(self) -> None:
        """Put ``env`` back. Costs about 0.2 ms."""
        env = self._env
        # Clears what no array shows: counts of contacts and constraints, the arena, lazy flags.
        self._reset_data(env.model, env.data)
        for array, value in self._arrays:
            array[...] = value
        env.data.time = self._time
        attributes = vars(env)
        for name in [name for name in attributes if name not in self._attributes and name not in self._kept]:
            del attributes[name]
        attributes.update(self._copied(self._attributes))

    def _copied(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """A deep copy in which values that shared memory still do, and views of the simulator are themselves."""
        return copy.deepcopy(attributes, {id(view): view for view in self._views})


def _model_arrays(model: Any) -> list[np.ndarray]:
    names = [name for name in dir(model) if not name.startswith(_CONSTANT)]
    return [value for name in names if isinstance(value := getattr(model, name), np.ndarray) and value.size]


def data_arrays(data: Any) -> list[np.ndarray]:
    """The arrays of fixed size; those in the arena (contacts, constraints) move, and every step recomputes them."""
    arrays = [value for name in dir(data) if isinstance(value := getattr(data, name), np.ndarray) and value.size]
    start = _address(data.qpos)  # first in the buffer
    return [array for array in arrays if start <= _address(array) < start + data.nbuffer]


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _simulator_views(attributes: dict[str, Any]) -> list[np.ndarray]:
    """Attributes that look into the simulator's memory (``init_left_pad`` does): they must go on doing so."""
    views = []
    for value in attributes.values():
        base = value
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        if isinstance(value, np.ndarray) and not isinstance(base, np.ndarray):
            views.append(value)
    return views
