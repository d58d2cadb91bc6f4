"""``--policy.type=vla_eval``: a model server of the vla-eval project (0.8, protocol 1), which buffers chunks itself.

Every message is a msgpack map ``{type, payload, seq, timestamp}``; a reply bears the ``seq`` of its observation, and
here (unlike in vla-eval's own client) any other is an error, never an action. Images are sent raw.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError, ContractError, WireError
from robotrials.plan.config import PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.options import coerce
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import PolicySpec
from robotrials.policies.checks import at_least_one
from robotrials.policies.remote import foreign
from robotrials.policies.remote.client import PolicyServerError
from robotrials.version import __version__
from robotrials.wire.plain_arrays import decode_plain, encode_vla_eval
from robotrials.wire.websocket import Websocket, require_websockets, shown

PLACES = ("connect_s", "reply_s")
CAVEAT = foreign.CAVEAT

_PROTOCOL = 1
_HELLO_S = 60.0


class VlaEvalPolicy(foreign.ForeignPolicy):
    """A vla-eval client in synchronous mode, one connection an episode."""

    def __init__(
        self,
        url: str,
        cameras: dict[str, Any] | None = None,
        state: str | None = "observation.state",
        state_key: str = "state",
        n_action_steps: int = 1,
        action_key: str = "actions",
        connect_s: float = 60.0,
        reply_s: float = 120.0,
    ) -> None:
        """``cameras`` maps the server's camera names to observation keys, as in ``{"agentview":
        "observation.images.image"}``. ``state`` is the key of the state vector, null for none, sent as ``state_key``
        (vla-eval's LIBERO says ``states``). ``n_action_steps`` > 1 plays so many of each answer, for servers that
        return whole chunks.

        Raises:
            ConfigError: an option that cannot be meant.
        """
        super().__init__(url, {}, connect_s, reply_s)
        self._cameras = dict(cameras or {})
        for name, key in self._cameras.items():
            if not isinstance(key, str):
                raise ConfigError(
                    f"--policy.cameras maps the server's names to observation keys, got {name!r}: {key!r}"
                )
        self._state, self._state_key, self._action_key = state, state_key, action_key
        observations = [*self._cameras.values(), *([state] if state else []), "task"]
        steps = at_least_one("n_action_steps", n_action_steps)
        self._spec = PolicySpec("vla-eval", dict.fromkeys(observations), n_action_steps=steps)
        self._numbers = itertools.count(1)

    def spec(self) -> PolicySpec:
        _ = self.greeting  # a server that does not answer is told before any simulator is built
        return self._spec

    def _greet(self, line: Websocket) -> dict[str, Any]:
        seq = self._send(line, "hello", {"harness_version": f"robotrials {__version__}", "protocol_version": _PROTOCOL})
        payload = self._reply(line, seq, "hello", _HELLO_S)
        spoken = payload.get("protocol_version")
        if spoken != _PROTOCOL:
            raise WireError(f"the server speaks vla-eval protocol {shown(spoken, 40)}, this is {_PROTOCOL}")
        greeting: dict[str, Any] = foreign.jsonable(payload)
        return greeting

    def _begin(self, line: Websocket, episode: EpisodeSpec, task: TaskSpec) -> None:
        about = {"name": task.instruction, "suite": task.suite, "task": task.name, "episode_idx": episode.index}
        self._send(line, "episode_start", {"task": about})

    def _ask(self, line: Websocket, observation: Observation) -> tuple[Any, float | None]:
        payload: dict[str, Any] = {
            "images": {name: observation[key] for name, key in self._cameras.items()},
            "task_description": observation["task"],
        }
        if self._state:
            payload[self._state_key] = observation[self._state]
        seq = self._send(line, "observation", payload)
        answer = self._reply(line, seq, "action", self._reply_s)
        if self._action_key not in answer:
            have = ", ".join(sorted(shown(key, 40) for key in answer)) or "nothing"
            raise ContractError(f"the server at {self._url} gave no {self._action_key!r}: {have} (--policy.action_key)")
        return answer[self._action_key], None

    def _send(self, line: Websocket, kind: str, payload: Mapping[str, Any]) -> int:
        seq = next(self._numbers)
        line.send(encode_vla_eval({"type": kind, "payload": payload, "seq": seq, "timestamp": time.time()}))
        return seq

    def _reply(self, line: Websocket, seq: int, kind: str, timeout_s: float) -> Mapping[Any, Any]:
        """The payload of the reply to ``seq``, which must be of ``kind``."""
        data = line.receive(timeout_s)
        if isinstance(data, str):
            raise WireError("the server answered with a text; vla-eval's messages are binary")
        message = decode_plain(data)
        payload = message.get("payload")
        if message.get("type") == "error":
            raise PolicyServerError(f"the server says: {shown(payload)}")
        if message.get("seq") != seq or message.get("type") != kind:
            raise WireError(
                f"the server answered {shown(message.get('type'), 40)} of message {shown(message.get('seq'), 40)}, "
                f"not {kind} of {seq}"
            )
        if not isinstance(payload, Mapping):
            raise WireError(f"the payload of the server's {kind} is no map")
        return payload


def validate(choice: PolicyChoice) -> None:
    """
    Raises:
        ConfigError: a path, which the server has, or an option that cannot be meant.
        NotInstalledError: websockets is missing.
    """
    if choice.path is not None:
        raise ConfigError("--policy.type=vla_eval takes no --policy.path: the server has the weights")
    require_websockets()
    _policy(choice)


def revision(choice: PolicyChoice) -> str:
    """A digest of what the server says of itself when greeted."""
    return f"vla-eval hello:{foreign.digest_of(foreign.look(_policy(choice, foreign.LOOK_S)))}"


def fitted(choice: PolicyChoice, tasks: Sequence[TaskSpec], rename_map: Mapping[str, str]) -> PolicyChoice:
    """With all of the benchmark's cameras, by their short names, where none are given."""
    if choice.options.get("cameras") is not None:
        return choice
    keys = [rename_map.get(key, key) for key in tasks[0].images]
    short = {key.removeprefix("observation.images.").removeprefix("observation."): key for key in keys}
    return replace(choice, options={**choice.options, "cameras": short})


def _policy(choice: PolicyChoice, connect_s: float | None = None) -> VlaEvalPolicy:
    hints: dict[str, Any] = {"cameras": dict, "state": str | None, "n_action_steps": int}
    hints |= {"connect_s": float, "reply_s": float}
    options = {key: coerce(value, hints.get(key, str), f"--policy.{key}") for key, value in choice.options.items()}
    return VlaEvalPolicy(**options) if connect_s is None else VlaEvalPolicy(**{**options, "connect_s": connect_s})
