"""``robotrials serve --protocol=openpi``: our policies for openpi's clients (openpi-client 0.1).

A connection is an episode: what a policy remembers begins with it and ends with it. Connections wait in threads of
their own; one thread alone calls the policy, through the same batcher as our own protocol.
"""

from __future__ import annotations

import hmac
import itertools
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError, ContractError, RobotrialsError, WireError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import ActionSpec, Feature, TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.chunks import checked_session, reason_of
from robotrials.policies.remote.observation_keys import ECHO, Paths, default_openpi_keys, pick, read_keys
from robotrials.serving.admission import STRANGER_S, GuardedListener
from robotrials.serving.batcher import Answer, Batcher, Request
from robotrials.wire.plain_arrays import MAX_FOREIGN_BYTES, decode_plain, encode_openpi
from robotrials.wire.websocket import require_websockets

log = logging.getLogger(__name__)

MAX_CLIENTS = 256
_TICK_S = 0.5


_Reply = Answer | BaseException
"""An exception where the episode could not begin."""


@dataclass(frozen=True)
class _Question:
    """What a connection's thread asks of the policy's; ``observation`` None: the connection is closed."""

    client: int
    observation: Observation | None
    reply: queue.SimpleQueue[_Reply]


class OpenpiServer:
    """Serves ``policy`` on ``listener`` to clients that show ``token`` (none needed if it is empty)."""

    def __init__(
        self,
        policy: Policy,
        listener: socket.socket,
        token: str,
        about: Mapping[str, Any] | None = None,
        keys: Mapping[str, Any] | None = None,
    ) -> None:
        """``keys`` maps names in the client's observation to the policy's keys, nested where it nests.

        Raises:
            ConfigError: a policy that needs more than one observation at a time, or keys that it does not have.
            NotInstalledError: websockets is missing.
        """
        require_websockets()
        self._policy, self._spec = policy, policy.spec()
        if self._spec.n_obs_steps > 1:
            raise ConfigError(
                f"policy {self._spec.name} looks at {self._spec.n_obs_steps} observations in a row, but openpi's "
                "clients send one where a chunk begins: serve it with --protocol=robotrials"
            )
        self._paths = _paths(self._spec, keys or {})
        self._listener, self._token = GuardedListener(listener), token
        metadata = {
            **dict(about or {}),
            "policy": self._spec.name,
            "n_action_steps": self._spec.n_action_steps,
            "keys": {".".join(path): key for path, key in self._paths.items()},
            ECHO: True,
        }
        try:
            self._greeting = encode_openpi(metadata)
        except (TypeError, ValueError, OverflowError, WireError) as error:
            raise ConfigError(f"policy {self._spec.name} describes itself with what cannot be sent: {error}") from None
        self._batcher = Batcher(policy, self._spec.max_batch)
        self._questions: queue.SimpleQueue[_Question] = queue.SimpleQueue()
        self._sessions: dict[int, Session] = {}
        self._waiting: dict[int, queue.SimpleQueue[_Reply]] = {}
        self._numbers, self._clients = itertools.count(1), itertools.count(1)
        self._open: dict[int, Any] = {}
        self._ended = False

    @property
    def n_clients(self) -> int:
        return len(self._open)

    @property
    def n_sessions(self) -> int:
        return len(self._sessions)

    def serve(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Until ``goes_on`` says no."""
        from websockets.sync.server import serve

        server = serve(
            self._converse,
            sock=self._listener,
            process_request=self._admit,
            origins=[None],  # no page in a browser has any business here
            compression=None,
            max_size=MAX_FOREIGN_BYTES,
            ping_interval=None,
            open_timeout=STRANGER_S,
            server_header=None,
        )
        acceptor = threading.Thread(target=server.serve_forever, name="accept", daemon=True)
        acceptor.start()
        try:
            while goes_on():
                self._take(_TICK_S)
                while len(self._batcher):
                    patience = self._batcher.patience()
                    if patience > 0.0:
                        self._take(patience)
                        continue
                    for answer in self._batcher.run():
                        self._waiting.pop(answer.request.request).put(answer)
                    self._take(0.0)
        finally:
            self._ended = True
            server.shutdown()
            for connection in list(self._open.values()):
                connection.close()

    # The policy's thread ------------------------------------------------------------------------------------------

    def _take(self, timeout_s: float) -> None:
        """Take in all questions that have come; wait for the first up to ``timeout_s``."""
        try:
            self._accept(self._questions.get(timeout=timeout_s) if timeout_s else self._questions.get_nowait())
            while True:
                self._accept(self._questions.get_nowait())
        except queue.Empty:
            return

    def _accept(self, question: _Question) -> None:
        client = question.client
        if question.observation is None:
            self._sessions.pop(client, None)
            self._batcher.drop_client(client)
            return
        if client not in self._sessions:
            try:
                self._sessions[client] = self._session(client, question.observation)
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                log.exception("%s could not begin an episode", self._spec.name)
                question.reply.put(error)
                return
        number = next(self._numbers)
        self._waiting[number] = question.reply
        self._batcher.add(Request(client, number, client, self._sessions[client], question.observation))

    def _session(self, client: int, observation: Observation) -> Session:
        """An episode that stands for the connection: its seed is the connection's number."""
        instruction = str(observation.get("task", ""))
        episode = EpisodeSpec(client, "openpi", "connection", client, client, None, 2**31 - 1)
        features = {key: feature for key, feature in self._spec.observations.items() if feature is not None}
        action = ActionSpec(self._spec.action_dim or 0, (), ())
        task = TaskSpec("openpi", "connection", 0, instruction, episode.max_steps, 1.0, features, action)
        return checked_session(self._spec.name, self._policy.new_session(episode, task))

    # A connection's thread ----------------------------------------------------------------------------------------

    def _admit(self, connection: Any, request: Any) -> Any:
        """None to let the client in, or the HTTP answer that keeps it out."""
        if request.path == "/healthz":
            return connection.respond(HTTPStatus.OK, "OK\n")
        shown = request.headers.get("Authorization", "")
        if self._token and not hmac.compare_digest(shown.encode(errors="replace"), f"Api-Key {self._token}".encode()):
            return connection.respond(HTTPStatus.UNAUTHORIZED, "the token is not the one this server wants\n")
        if len(self._open) >= MAX_CLIENTS:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_CLIENTS} clients are connected\n")
        return None

    def _converse(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        client = next(self._clients)
        self._listener.let_in(connection.socket)
        self._open[client] = connection
        reply: queue.SimpleQueue[_Reply] = queue.SimpleQueue()
        try:
            connection.send(self._greeting)
            for message in connection:
                connection.send(self._answer(client, message, reply))
        except ConnectionClosed:
            pass
        finally:
            self._questions.put(_Question(client, None, reply))
            self._open.pop(client, None)

    def _answer(self, client: int, message: bytes | str, reply: queue.SimpleQueue[_Reply]) -> bytes | str:
        """The chunk for one observation, or in its place a text that says what is wrong, as openpi's servers do."""
        began = time.perf_counter()
        try:
            if isinstance(message, str):
                raise ContractError("an observation is a binary message, not a text")
            content = decode_plain(message)
            request = content.pop(ECHO, None)
            observation = self._observation(content)
        except RobotrialsError as error:
            return str(error)
        self._questions.put(_Question(client, observation, reply))
        while True:
            try:
                answer = reply.get(timeout=_TICK_S)
                break
            except queue.Empty:
                if self._ended:
                    return "the server has ended"
        failure = answer.error if isinstance(answer, Answer) else answer
        if not isinstance(answer, Answer) or answer.actions is None:
            log.error("%s", reason_of(failure))
            return reason_of(failure) if isinstance(failure, RobotrialsError) else f"the policy raised {_name(failure)}"
        timing = {"infer_ms": 1e3 * answer.infer_s, "total_ms": 1e3 * (time.perf_counter() - began)}
        content = {"actions": np.asarray(answer.actions), "server_timing": timing}
        try:
            return encode_openpi(content if request is None else {**content, ECHO: request})
        except Exception as odd:
            log.exception("an answer cannot be encoded")
            return f"the answer cannot be encoded: {_name(odd)}"

    def _observation(self, content: Mapping[Any, Any]) -> Observation:
        picked = pick(self._paths, content)
        return {key: _checked(key, value, self._spec.observations.get(key)) for key, value in picked.items()}


def _name(error: BaseException | None) -> str:
    return type(error).__name__


def _paths(spec: PolicySpec, keys: Mapping[str, Any]) -> Paths:
    wanted = dict(spec.observations)
    images = [key for key, feature in wanted.items() if (feature and feature.is_image) or "image" in key]
    named = keys or {n: k for n, k in default_openpi_keys(list(wanted), images).items() if k in wanted}
    if not named:
        return {}
    paths = read_keys(named, "--keys")
    odd = sorted(set(paths.values()) - set(wanted)) or sorted(set(wanted) - set(paths.values()))
    if odd:
        raise ConfigError(
            f"--keys and policy {spec.name} do not agree on {', '.join(odd)}; it reads {', '.join(wanted)}"
        )
    return paths


def _checked(key: str, value: Any, feature: Feature | None) -> np.ndarray | str:
    """
    Raises:
        ContractError: it is of another type or shape than the policy reads.
    """
    if key == "task":
        if not isinstance(value, str):
            raise ContractError(f"{key} must be text, got {type(value).__name__}")
        return value
    if not isinstance(value, (np.ndarray, list, tuple)):
        raise ContractError(f"{key} must be an array, got {type(value).__name__}")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ContractError(f"{key} is a ragged list") from None
    if array.dtype.kind not in "biuf":
        raise ContractError(f"{key} must hold numbers, got {array.dtype}")
    is_image = array.dtype == np.uint8 and array.ndim == 3
    array = array if is_image else np.asarray(array, np.float32)
    if feature is not None and (array.shape != feature.shape or is_image != feature.is_image):
        raise ContractError(f"{key} must be {feature}, got {array.dtype}{list(array.shape)}")
    return array
