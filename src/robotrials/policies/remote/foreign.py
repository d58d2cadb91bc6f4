"""What the policies behind other projects' websocket servers have in common.

One connection an episode, one request at a time on it. After anything unexpected (a time-out, a reply to something
else, a message out of turn) the connection is closed and never used again, so no reply can outlive its request.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.errors import ConfigError, ContractError, RobotrialsError, WireError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy, Session
from robotrials.policies.remote.client import PolicyServerError
from robotrials.wire.stream import ConnectionLostError
from robotrials.wire.websocket import Websocket

CAVEAT = "another project's server computes the actions; whether they depend on batching or restarts cannot be seen"
"""Said in run.json and in the table."""

LOOK_S = 5.0
"""How long the coordinator waits for the server before anything starts."""
_RETRY_EVERY_S = 0.5


class ForeignPolicy(Policy):
    """A policy behind a websocket: ``_greet`` on every new connection, ``_ask`` for every chunk."""

    draws_globally = False

    def __init__(self, url: str, headers: Mapping[str, str], connect_s: float, reply_s: float) -> None:
        if not url.startswith(("ws://", "wss://")):
            raise ConfigError(f"--policy.url={url}: a websocket is ws://host:port or wss://host:port")
        self._url, self._headers = url, dict(headers)
        self._connect_s, self._reply_s = connect_s, reply_s
        self._line: Websocket | None = None
        self._greeting: dict[str, Any] | None = None
        self.infer_s: float | None = 0.0

    @abstractmethod
    def _greet(self, line: Websocket) -> dict[str, Any]:
        """Whatever is said first on a new connection; returns what the server tells of itself, as JSON values."""

    @abstractmethod
    def _begin(self, line: Websocket, episode: EpisodeSpec, task: TaskSpec) -> None:
        """Whatever begins an episode."""

    @abstractmethod
    def _ask(self, line: Websocket, observation: Observation) -> tuple[Any, float | None]:
        """One exchange: the actions as the server gave them, and its own seconds if it told them.

        Raises:
            WireError: the reply is not the answer to this request.
            PolicyServerError: the server says that it failed.
        """

    @property
    def greeting(self) -> dict[str, Any]:
        """What the server told of itself; connects if that has not happened yet."""
        if self._greeting is None:
            self._connect()
        assert self._greeting is not None
        return self._greeting

    def describe(self) -> dict[str, Any]:
        return {"server": self.greeting, "numerics": CAVEAT}

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Session:
        """A connection of its own: the only thing by which these servers tell episodes apart."""
        line = self._connect()
        try:
            self._begin(line, episode, task)
        except (WireError, RobotrialsError):
            self.close()
            raise
        return Session(episode, task, episode.rng("policy"), env)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """One session at a time; (1, T, A), or (1, 1, A) where the server gives single actions.

        Raises:
            ConnectionLostError: the server died or is silent; the episode may be tried again.
            ContractError: the answer holds no actions.
            WireError: the reply belongs to another request.
            PolicyServerError: the server says that it failed.
        """
        (session,), (observation,) = sessions, observations
        line = self._line
        if line is None:
            raise ConnectionLostError(f"the connection of {session.episode.name} is gone, and its state with it")
        began = time.perf_counter()
        try:
            line.refuse_waiting()
            answer, told = self._ask(line, observation)
            actions = _as_chunk(answer, self._url)
        except BaseException:  # whatever it was, a reply may still be on its way: it must find nobody
            self.close()
            raise
        took = time.perf_counter() - began
        self.infer_s = told if told is not None and math.isfinite(told) and 0.0 <= told <= took else 0.0
        return actions

    def close(self) -> None:
        """Drop the connection; the next episode makes a new one."""
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def _connect(self) -> Websocket:
        self.close()
        deadline = time.monotonic() + self._connect_s
        while True:
            try:
                line = Websocket(self._url, self._headers, timeout_s=min(10.0, self._connect_s))
                break
            except ConnectionLostError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_EVERY_S)
        try:
            greeting = self._greet(line)
            if self._greeting is not None and greeting != self._greeting:
                raise ContractError(
                    f"the server at {self._url} is another one now: it told {self._greeting}, and tells {greeting}"
                )
        except BaseException:
            line.close()
            raise
        self._line, self._greeting = line, greeting
        return line


def look(policy: ForeignPolicy) -> dict[str, Any]:
    """What the server tells of itself, asked by the coordinator before anything starts.

    Raises:
        ConfigError: nobody answers, or somebody else.
    """
    try:
        return policy.greeting
    except (RobotrialsError, WireError, PolicyServerError) as error:
        raise ConfigError(f"--policy.url={policy._url}: {error}") from None
    finally:
        policy.close()


def digest_of(greeting: Mapping[str, Any]) -> str:
    """First 16 hexadecimal digits of the SHA-256 of what a server told: all that tells it from another."""
    text = json.dumps(greeting, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def exception_in(text: str) -> str:
    """The exception at the end of a traceback (of the last one, where several follow each other), on one line; another
    text's last line."""
    lines = [line for line in text.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if line.lstrip().startswith("Traceback (most recent call")]
    if not starts:
        return lines[-1].strip() if lines else "nothing"
    after = lines[starts[-1] + 1 :]
    raised = next((number for number, line in enumerate(after) if not line.startswith((" ", "\t"))), None)
    return " ".join(line.strip() for line in after[raised:]) if raised is not None else lines[-1].strip()


def jsonable(value: Any) -> Any:
    """A peer's words as JSON values: arrays as lists, keys as text, what else there is as text."""
    if isinstance(value, Mapping):
        return {_text(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return _text(value)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _as_chunk(answer: Any, url: str) -> np.ndarray:
    if not isinstance(answer, np.ndarray):
        try:
            answer = np.asarray(answer, np.float64)
        except (TypeError, ValueError):
            raise ContractError(f"the server at {url} gave actions that are no numbers") from None
    if answer.dtype.kind not in "fiu" or answer.ndim not in (1, 2) or not answer.size:
        raise ContractError(
            f"the server at {url} gave actions of type {answer.dtype} and shape {answer.shape}; right is (T, A) or (A,)"
        )
    chunk: np.ndarray = answer.reshape(1, 1, -1) if answer.ndim == 1 else answer[None]
    return chunk
