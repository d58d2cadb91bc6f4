"""``--policy.type=openpi``: a policy behind a server that speaks openpi's websocket protocol (openpi-client 0.1).

The server sends its metadata first; then every message is an observation and every answer a map with a chunk of
actions. An answer names no request, so it can be told from another only by its turn; ``robotrials serve
--protocol=openpi`` says in its metadata that it repeats a number, and that number is then sent and checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError, ContractError, NotInstalledError, WireError
from robotrials.plan.config import PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import coerce
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import PolicySpec
from robotrials.policies.remote import foreign
from robotrials.policies.remote.client import PolicyServerError
from robotrials.policies.remote.observation_keys import ECHO, default_openpi_keys, place, read_keys
from robotrials.wire.plain_arrays import decode_plain, encode_openpi
from robotrials.wire.token import find_token
from robotrials.wire.websocket import Websocket, require_websockets, shown

PLACES = ("token_file", "connect_s", "reply_s")
CAVEAT = foreign.CAVEAT

_METADATA_S = 60.0


class OpenpiPolicy(foreign.ForeignPolicy):
    """An openpi client, one connection an episode."""

    def __init__(
        self,
        url: str,
        keys: dict[str, Any] | None = None,
        n_action_steps: int = 0,
        action_key: str = "actions",
        image_layout: str = "hwc",
        image_size: int = 0,
        token_file: str | None = None,
        connect_s: float = 60.0,
        reply_s: float = 120.0,
    ) -> None:
        """``keys`` maps the server's names, nested where it nests, to the benchmark's observation keys
        (``{"observation/image": "observation.image", "prompt": "task"}``). ``n_action_steps`` of each chunk are played
        (0: as the server's metadata says). ``image_layout`` is ``hwc`` or ``chw``; ``image_size`` N pads and scales
        images to N x N as openpi's examples do (0: as they are). The token goes into the header ``Authorization:
        Api-Key``.

        Raises:
            ConfigError: an option that cannot be meant.
        """
        token = find_token(token_file)
        super().__init__(url, {"Authorization": f"Api-Key {token}"} if token else {}, connect_s, reply_s)
        if image_layout not in ("hwc", "chw"):
            raise ConfigError(f"--policy.image_layout is hwc or chw, got {image_layout!r}")
        if min(n_action_steps, image_size) < 0:
            raise ConfigError("--policy.n_action_steps and --policy.image_size must not be negative")
        self._paths = read_keys(keys if keys is not None else default_openpi_keys((), ()), "--policy.keys")
        self._n_action_steps, self._action_key = n_action_steps, action_key
        self._image_layout, self._image_size = image_layout, image_size
        self._numbers = itertools.count(1)

    def spec(self) -> PolicySpec:
        steps = self._n_action_steps or self.greeting.get("n_action_steps")
        if not isinstance(steps, int) or steps < 1:
            raise ConfigError(
                f"--policy.n_action_steps is missing: {self._url} does not say how many actions of a chunk are played"
            )
        return PolicySpec("openpi", dict.fromkeys(self._paths.values()), n_action_steps=steps)

    def _greet(self, line: Websocket) -> dict[str, Any]:
        metadata: dict[str, Any] = foreign.jsonable(_decode(line.receive(_METADATA_S)))
        return metadata

    def _begin(self, line: Websocket, episode: EpisodeSpec, task: TaskSpec) -> None:
        """The protocol has no word for it."""

    def _ask(self, line: Websocket, observation: Observation) -> tuple[Any, float | None]:
        request = next(self._numbers)
        numbered = bool(self.greeting.get(ECHO))
        message = place(self._paths, {key: self._sendable(value) for key, value in observation.items()})
        line.send(encode_openpi({**message, ECHO: request} if numbered else message))
        answer = _decode(line.receive(self._reply_s))
        if numbered and answer.get(ECHO) != request:
            raise WireError(f"the server answered request {shown(answer.get(ECHO), 40)}, not {request}")
        if self._action_key not in answer:
            have = ", ".join(sorted(shown(key, 40) for key in answer)) or "nothing"
            raise ContractError(f"the server at {self._url} gave no {self._action_key!r}: {have} (--policy.action_key)")
        timing = answer.get("server_timing")
        told = timing.get("infer_ms") if isinstance(timing, Mapping) else None
        return answer[self._action_key], 1e-3 * float(told) if isinstance(told, (int, float)) else None

    def _sendable(self, value: np.ndarray | str) -> np.ndarray | str:
        if isinstance(value, str) or value.dtype != np.uint8 or value.ndim != 3:
            return value
        image = pad_and_scale(value, self._image_size) if self._image_size else value
        return np.ascontiguousarray(image.transpose(2, 0, 1)) if self._image_layout == "chw" else image


def _decode(message: bytes | str) -> dict[Any, Any]:
    """An answer of the server; a text in its place is the traceback of what went wrong there.

    Raises:
        PolicyServerError: such a text; the exception comes first, then all of it.
    """
    if isinstance(message, str):
        what = shown(foreign.exception_in(message), 300)
        whole = shown(message.strip(), 2000)
        raise PolicyServerError(f"the server says: {what}" + (f"\n{whole}" if whole != what else ""))
    return decode_plain(message)


def pad_and_scale(image: np.ndarray, size: int) -> np.ndarray:
    """(H, W, C) uint8 scaled to fit ``size`` x ``size``, bilinearly, and centred on black: what openpi's examples send
    (openpi-client 0.1, ``image_tools.resize_with_pad``)."""
    from PIL import Image

    height, width = image.shape[:2]
    if (height, width) == (size, size):
        return image
    ratio = max(width / size, height / size)
    new_height, new_width = int(height / ratio), int(width / ratio)
    scaled = Image.fromarray(image).resize((new_width, new_height), resample=Image.Resampling.BILINEAR)
    padded = np.zeros((size, size, image.shape[2]), np.uint8)
    top, left = max(0, (size - new_height) // 2), max(0, (size - new_width) // 2)
    padded[top : top + new_height, left : left + new_width] = np.asarray(scaled).reshape(new_height, new_width, -1)
    return padded


def validate(choice: PolicyChoice) -> None:
    """
    Raises:
        ConfigError: a path, which the server has, or an option that cannot be meant.
        NotInstalledError: websockets, or pillow for ``image_size``, is missing.
    """
    if choice.path is not None:
        raise ConfigError("--policy.type=openpi takes no --policy.path: the server has the weights")
    require_websockets()
    if int(choice.options.get("image_size", 0)):
        import importlib.util

        if importlib.util.find_spec("PIL") is None:
            raise NotInstalledError("--policy.image_size needs pillow: pip install pillow")
    _policy(choice)


def revision(choice: PolicyChoice) -> str:
    """A digest of the server's metadata: all that is known of what it serves."""
    return f"openpi metadata:{foreign.digest_of(foreign.look(_policy(choice, foreign.LOOK_S)))}"


def fitted(choice: PolicyChoice, tasks: Sequence[TaskSpec], rename_map: Mapping[str, str]) -> PolicyChoice:
    """With the names of openpi's LIBERO example for the benchmark's cameras and state, where none are given."""
    if choice.options.get("keys") is not None:
        return choice
    renamed = [rename_map.get(key, key) for key in tasks[0].observations]
    images = [rename_map.get(key, key) for key in tasks[0].images]
    return replace(choice, options={**choice.options, "keys": default_openpi_keys(renamed, images)})


def _policy(choice: PolicyChoice, connect_s: float | None = None) -> OpenpiPolicy:
    hints: dict[str, Any] = {
        "keys": dict,
        "n_action_steps": int,
        "image_size": int,
        "connect_s": float,
        "reply_s": float,
    }
    options = {k: coerce(v, hints.get(k, str), f"--policy.{k}") for k, v in choice.options.items() if v is not None}
    return OpenpiPolicy(**options) if connect_s is None else OpenpiPolicy(**{**options, "connect_s": connect_s})
