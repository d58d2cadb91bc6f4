"""The policy server's loop: one thread that reads what has come, runs one forward pass, and answers.

While a pass runs, requests queue up in the sockets; when it ends all of them are read and make the next batch.
"""

from __future__ import annotations

import hmac
import logging
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.errors import ConfigError, ContractError, RobotrialsError, WireError
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.chunks import checked_session, reason_of
from robotrials.policies.remote.protocol import SERVER_TALK, Act, Attach, Attached, Chunk, Close, Open, Share, Trouble
from robotrials.serving.batcher import Answer, Batcher, Request
from robotrials.serving.connections import Connections, Peer
from robotrials.wire.arrays import ArrayLayout
from robotrials.wire.envelope import encode
from robotrials.wire.shared import SharedBytes
from robotrials.wire.stream import ConnectionLostError, Frame

log = logging.getLogger(__name__)

_MAX_SESSIONS_A_CLIENT = 1024
_STRANGER_BYTES = 64 * 1024


@dataclass
class _Client(Peer):
    """One worker's connection and what it has told."""

    name: str = ""
    layout: ArrayLayout | None = None
    memory: SharedBytes | None = None
    sessions: dict[int, Session] = field(default_factory=dict)
    failed: dict[int, tuple[str, bool]] = field(default_factory=dict)
    """Sessions that the policy could not begin: why, and whether trying again cannot help."""

    def next_frame(self) -> Frame | None:
        """The next message that has arrived whole. A peer that has not shown the token may send one small one; a body
        is as long as the observation that the client declared, and memory is taken for no more."""
        if not self.name:
            return self.stream.next_frame(max_header=_STRANGER_BYTES, max_body=0)
        inline = self.layout is not None and self.memory is None
        return self.stream.next_frame(max_body=self.layout.n_bytes if inline and self.layout else 0)


class PolicyServer:
    """Serves one policy to the workers that connect to ``listener`` and know ``token``."""

    def __init__(
        self,
        policy: Policy,
        listener: socket.socket,
        token: str,
        about: Mapping[str, Any] | None = None,
        cores: int | None = None,
    ) -> None:
        """``about`` is told to every client, beside the policy's spec. ``cores``: see ``Batcher``.

        Raises:
            ConfigError: the policy's spec or ``about`` holds what cannot be sent.
        """
        self._policy = policy
        self._spec = policy.spec()
        self._attached = _attached(self._spec, dict(about or {}))
        self._token = token
        self._batcher = Batcher(policy, self._spec.max_batch, cores)
        self._connections: Connections[_Client] = Connections(_Client)
        self.listen_at(listener)

    def listen_at(self, listener: socket.socket) -> None:
        """Take clients from this socket too."""
        self._connections.listen_at(listener)

    def serve(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """For ever, or until ``goes_on`` says no; it is asked about once a second, and before each pass."""
        while goes_on():
            self._read(1.0)
            while len(self._batcher) and goes_on():
                patience = self._batcher.patience()
                if patience > 0.0:
                    self._read(patience)
                    continue
                for answer in self._batcher.run():
                    self._answer(answer)
                self._read(0.0)
        for client in self._connections.clients:
            self._drop(client)
        self._connections.close()

    @property
    def n_clients(self) -> int:
        return len(self._connections.clients)

    @property
    def n_sessions(self) -> int:
        return sum(len(client.sessions) for client in self._connections.clients)

    def _read(self, timeout_s: float) -> None:
        """Take in all that has come; wait for it up to ``timeout_s`` if nothing has."""
        for client in self._connections.ready(timeout_s, self._batcher.is_fast):
            self._take(client)
        for client in self._connections.late() if self._connections.are_watched else ():
            if client.name:  # of strangers there can be any number
                log.warning("client %s stopped in the middle of a message", client.name)
            self._drop(client)

    def _take(self, client: _Client) -> None:
        """What one client has sent; whatever is wrong with it costs that client its connection, nobody else's."""
        try:
            client.stream.fill()
            frame = client.next_frame()
            while frame is not None:
                self._handle(client, frame)
                frame = client.next_frame() if client.stream.has_more else None
            self._connections.note(client)
        except ConnectionLostError:
            self._drop(client)
        except WireError as error:
            log.warning("client %s sent an invalid message: %s", client.name or client.number, error)
            self._drop(client)
        except Exception:
            log.exception("client %s was dropped", client.name or client.number)
            self._drop(client)

    def _handle(self, client: _Client, frame: Frame) -> None:
        message = SERVER_TALK.decode(frame.header)
        if isinstance(message, Attach):
            self._attach(client, message)
        elif not client.name:
            raise WireError(f"{message.kind} before attach")
        elif isinstance(message, Act):
            self._enqueue(client, message, frame)
        elif isinstance(message, Open):
            if len(client.sessions) + len(client.failed) >= _MAX_SESSIONS_A_CLIENT:
                raise WireError(f"more than {_MAX_SESSIONS_A_CLIENT} open sessions")
            self._open(client, message)
        elif isinstance(message, Close):
            client.sessions.pop(message.session, None)
            client.failed.pop(message.session, None)
            self._batcher.drop_session(client.number, message.session)
        elif isinstance(message, Share):
            self._share(client, message)
        else:
            raise WireError(f"{message.kind} is not for a server")

    def _attach(self, client: _Client, message: Attach) -> None:
        if not hmac.compare_digest(message.token.encode(), self._token.encode()):
            client.stream.send(encode(Trouble(0, "the token is not the one this server wants", contract=False)))
            raise WireError("a wrong token")
        client.name = message.client or f"client {client.number}"
        self._connections.let_in(client)
        client.stream.send(self._attached)

    def _open(self, client: _Client, message: Open) -> None:
        """An episode that the policy cannot begin is told when it asks for actions: opening has no answer."""
        try:
            session = self._policy.new_session(message.episode, message.task)
            client.sessions[message.session] = checked_session(self._spec.name, session)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            log.error("%s could not begin an episode", self._spec.name, exc_info=_unexpected(error))
            client.failed[message.session] = (reason_of(error), isinstance(error, ContractError))

    def _share(self, client: _Client, message: Share) -> None:
        if client.memory is not None:
            client.memory.close()
            client.memory = None
        if message.shared:
            descriptor = client.stream.take_descriptor()
            if descriptor is None:
                raise WireError("shared memory without a descriptor")
            client.memory = SharedBytes.attach(descriptor)
        message.layout.check()
        if client.memory is not None and client.memory.size < message.layout.n_bytes:
            raise WireError("the shared memory is smaller than its layout")
        client.layout = message.layout

    def _enqueue(self, client: _Client, act: Act, frame: Frame) -> None:
        session = client.sessions.get(act.session)
        if act.session in client.failed:
            self._trouble(client, act.request, *client.failed[act.session])
            return
        if session is None:
            self._trouble(client, act.request, f"no session {act.session} is open here: was the server restarted?")
            return
        if client.layout is None:
            raise WireError("an observation before its layout")
        # Views into the client's memory: it waits for the answer before it writes there again.
        source = client.memory.bytes if client.memory is not None else memoryview(frame.body)
        observation: Observation = {**client.layout.read(source), **act.texts}
        self._batcher.add(Request(client.number, act.request, act.session, session, observation))

    def _answer(self, answer: Answer) -> None:
        """Whatever is wrong with one answer is told to the session that asked for it, and to nobody else."""
        request = answer.request
        client = self._connections.get(request.client)
        if client is None:
            return
        error = answer.error
        try:
            if answer.actions is not None:
                error = self._send_chunk(client, answer, answer.actions)
            if error is not None:
                log.error("the policy failed in an episode", exc_info=_unexpected(error))
                self._trouble(client, request.request, reason_of(error), isinstance(error, ContractError))
            if client.stream.has_unsent:
                self._connections.note(client)
        except ConnectionLostError:
            self._drop(client)

    def _send_chunk(self, client: _Client, answer: Answer, actions: np.ndarray) -> Exception | None:
        """Send the chunk; returns why it cannot be encoded.

        Raises:
            ConnectionLostError: the client is gone.
        """
        request = answer.request
        try:
            actions = np.ascontiguousarray(actions)
            shape, dtype = actions.shape, actions.dtype.str
            chunk = Chunk(request.request, request.session_number, dtype, shape, answer.infer_s, answer.rows)
            header, body = encode(chunk), actions.data.cast("B")
        except Exception as error:  # noqa: BLE001  an array's own class may raise anything
            return error
        client.stream.send(header, body)
        return None

    def _trouble(self, client: _Client, request: int, reason: str, contract: bool = False) -> None:
        log.error("%s", reason)
        client.stream.send(encode(Trouble(request, reason, contract)))

    def _drop(self, client: _Client) -> None:
        if not self._connections.drop(client):
            return
        self._batcher.drop_client(client.number)
        if client.memory is not None:
            client.memory.close()


def _attached(spec: PolicySpec, about: dict[str, Any]) -> bytes:
    try:
        return encode(Attached(spec, about))
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"policy {spec.name} describes itself with what cannot be sent ({error}): spec() and describe() hold plain "
            "numbers, texts, lists and maps"
        ) from None


def _unexpected(error: BaseException) -> BaseException | None:
    """The error whose traceback belongs into the log; None for those whose message says all."""
    return None if isinstance(error, RobotrialsError) else error
